import FerryHTTPServer
import FerryProtocol

// The requests about one space.
extension SyncService {
  func createSpace(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    info(try await makeSpace(name, by: admission.principal), admission.role)
  }

  /// Returns the space; it is made if it is not there and the principal may have one more.
  func makeSpace(
    _ name: SpaceName, by principal: Principal
  ) async throws(Problem) -> SpaceSummary {
    let (store, quota, mark) = (parts.store, parts.quotas.spaces, mark(principal))
    let space = try await ask { () async throws(StoreError) in
      try await store.createSpace(name, by: mark, quota: quota)
    }
    guard let space else {
      throw Problem(
        .storageQuota,
        "you have created \(quota) spaces, the limit of one user. Use one of them, or ask the "
          + "server's administrator")
    }
    return space
  }

  func spaceInfo(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let store = parts.store
    let space = try await ask { () async throws(StoreError) in
      try await store.space(named: name)
    }
    guard let space else { throw .unknownSpace(name) }
    return info(space, admission.role)
  }

  func receivePacket(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    var space: Int64?
    do throws(Problem) {
      return try await commitPacket(&context, name, admission, into: &space)
    } catch {
      // Only the transaction looks whether the server is still open.
      if admission.assumesOpenServer {
        _ = try await admit(context.request, .packets, to: name, need: .writer)
      }
      if let space { recordRejection(error, context, space) }
      throw error
    }
  }

  /// - Parameter found: Gets the space, once it is known.
  private func commitPacket(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission,
    into found: inout Int64?
  ) async throws(Problem) -> HTTPResponse {
    let version = try Self.protocolVersion(of: context.request)
    let query = context.request.query
    let cursor = try ChangesQuery.cursor { query[$0] }.get()
    let body = context.request.body
    let space = try await find(name)
    found = space.id
    let packet = try read(body, Packet.init(decoding:limits:))
    context.device = packet.device
    let answer = try await committer.commit(
      IncomingPacket(
        packet, byteCount: body.count, principal: admission.principal, role: admission.role,
        protocolVersion: version, cursor: cursor,
        needsOpenServer: admission.assumesOpenServer),
      into: space.id)
    recordAnswer(answer, context, space.id, cursor: cursor)
    let status = answer.receipt.status == .buffered ? 202 : 200
    return .json(answer.encoded(quoting: parts.limits.pageBytes), status: status)
  }

  func changes(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let query = context.request.query
    var request = try ChangesQuery.read({ query[$0] }, limits: parts.limits).get()
    request.protocolVersion = try Self.protocolVersion(of: context.request)
    request.principal = admission.principal
    context.device = request.device
    let space = try await find(name)
    let (store, now, wanted) = (parts.store, parts.clock.wall(), request)
    let page = try await ask { () async throws(StoreError) in
      try await store.changes(in: space.id, wanted, now: now)
    }.get()
    parts.metrics.countPage(changes: PageCount.read(page))
    recordPull(wanted.cursor, context, space.id)
    return .json(page)
  }

  func events(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    if lifecycle.isStopping { throw Problem(.unavailable, "the server is stopping") }
    let space = try await find(name)
    let request = context.request
    let heard = request.headers["Last-Event-ID"].flatMap { SequenceNumber($0) }
    let stream = HTTPStream()
    let (store, hub, streams) = (parts.store, parts.hub, streams)
    let entry = EventStreams.Entry(
      stream: stream, principal: admission.principal, visitor: Self.visitor(request, .events),
      space: name)
    let number = try streams.begin(entry, quota: parts.quotas.streams)
    do {
      try await ask { () async throws(StoreError) in
        try await hub.add(stream, to: space, heard: heard) { () async throws(StoreError) in
          try await store.space(named: name)
        }
      }
    } catch {
      streams.end(number)
      throw error
    }
    stream.onClose { streams.end(number) }
    return HTTPResponse(
      status: 200,
      // X-Accel-Buffering: nginx passes events on as they come.
      headers: [
        "Content-Type": "text/event-stream", "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      ],
      body: .stream(stream))
  }

  private func info(_ space: SpaceSummary, _ role: Role) -> HTTPResponse {
    .json(
      SpaceInfo(
        space: space.name, epoch: space.epoch, head: space.head, role: role,
        serverTime: parts.clock.wall()
      ).encoded())
  }

  /// Reads a request's body within the limits.
  func read<Message>(
    _ body: [UInt8], _ decode: ([UInt8], Limits) throws(MalformedMessage) -> Message
  ) throws(Problem) -> Message {
    guard body.count <= parts.limits.messageBytes else {
      throw Problem(
        .limitExceeded,
        "the message has \(body.count) bytes; \(parts.limits.messageBytes) are allowed")
    }
    do {
      return try decode(body, parts.limits)
    } catch {
      throw Problem(.malformedMessage, error.description)
    }
  }

  func find(_ name: SpaceName) async throws(Problem) -> SpaceSummary {
    let directory = directory
    let space = try await ask { () async throws(StoreError) in try await directory.find(name) }
    guard let space else { throw .unknownSpace(name) }
    return space
  }
}

extension Problem {
  fileprivate static func unknownSpace(_ name: SpaceName) -> Problem {
    Problem(
      .unknownSpace, "there is no space \(name); an admin creates it with PUT /v1/spaces/\(name)")
  }
}
