import Compression
import FerryProtocol
import Networking
import Synchronization

/// The server's endpoints as a client calls them (Protocol/openapi.yaml).
struct SyncAPI: Sendable {
  let address: ServerAddress
  private let transport: any Transport
  private let surroundings: Surroundings
  private let shared: Shared

  /// What is learnt of a server and kept between calls.
  final class Shared: Sendable {
    fileprivate let acceptsZstandard = Mutex(false)
    private let offset = Mutex<Int64?>(nil)

    init() {}

    /// The server's clock minus this device's by the last answer, milliseconds.
    var clockOffset: Int64? { offset.withLock { $0 } }

    func note(offset: Int64) { self.offset.withLock { $0 = offset } }
  }

  init(
    address: ServerAddress, transport: any Transport, surroundings: Surroundings, shared: Shared
  ) {
    self.address = address
    self.transport = transport
    self.surroundings = surroundings
    self.shared = shared
  }

  /// The space, made when absent where the server lets this caller make it.
  func space(create: Bool) async throws -> SpaceInfo {
    let sent = surroundings.wallClock()
    let info = try SpaceInfo(decoding: try await send(create ? .put : .get, "").body)
    noteClock(sent, info.serverTime)
    return info
  }

  /// What the space declares of its tables.
  func schema() async throws -> SpaceSchema {
    try SpaceSchema(decoding: try await send(.get, "/schema").body, limits: surroundings.limits)
  }

  /// Puts a schema in force; answers with it.
  func applySchema(_ document: SpaceSchema) async throws -> SpaceSchema {
    let answer = try await send(.put, "/schema", body: document.encoded())
    return try SpaceSchema(decoding: answer.body, limits: surroundings.limits)
  }

  func push(_ packet: Packet) async throws -> PacketAnswer {
    let answer = try await send(.post, "/packets", body: packet.encoded())
    return try PacketAnswer(decoding: answer.body, limits: surroundings.limits)
  }

  /// One page of the pull list, undecoded.
  ///
  /// - Parameter names: whose applied tail and notices to tell; a sync may find that the device
  ///   needs another name.
  func changes(cursor: Cursor?, limit: Int, names: OwnNames) async throws -> [UInt8] {
    let from = cursor.map { "&cursor=\($0)" } ?? ""
    let former = names.former.suffix(Limits.standard.formerDevices).map { "\($0.device)" }
    let also = former.isEmpty ? "" : "&former=" + former.joined(separator: ",")
    let sent = surroundings.wallClock()
    let query = "limit=\(limit)&device=\(names.device)\(also)\(from)"
    let body = try await send(.get, "/changes?\(query)").body
    noteClock(sent, try PageReader.head(of: body).serverTime)
    return body
  }

  /// The whole state of these records as the server has it now, as a page, undecoded: one that is
  /// not there is a delete at sequence 0. At most ``Limits/recordsPerRequest`` keys, none twice;
  /// those that the page does not name have to be asked for again.
  func records(_ keys: [RecordKey]) async throws -> [UInt8] {
    try await send(.post, "/records", body: RecordsRequest(keys: keys).encoded()).body
  }

  private func noteClock(_ sent: Int64, _ server: Int64) {
    let received = surroundings.wallClock()
    shared.note(offset: ClockOffset.estimate(sent: sent, server: server, received: received))
  }

  /// The event stream; ends when the server or the network ends it.
  func events(after head: SequenceNumber?, silence: Duration) async throws -> TransportStream {
    var request = makeRequest(.get, "/events")
    request.headers.add("Accept", "text/event-stream")
    if let head { request.headers.add("Last-Event-ID", "\(head)") }
    request.timeout = silence
    let stream = try await transport.stream(request)
    guard stream.status == 200 else {
      stream.body.cancel()
      throw ReplicaError.unexpectedAnswer(status: stream.status, "no event stream")
    }
    return stream
  }

  // MARK: Requests

  private func makeRequest(_ method: TransportMethod, _ path: String) -> TransportRequest {
    var base = address.url
    while base.hasSuffix("/") { base.removeLast() }
    var request = TransportRequest(method, "\(base)/v1/spaces/\(address.space)\(path)")
    request.headers.add(ProtocolVersion.header, "\(ProtocolVersion.current)")
    if let token = address.token { request.headers.add("Authorization", "Bearer \(token)") }
    return request
  }

  func send(
    _ method: TransportMethod, _ path: String, body: [UInt8]? = nil
  ) async throws -> TransportResponse {
    var request = makeRequest(method, path)
    if let body {
      request.headers.add("Content-Type", "application/json")
      request.body = body
      if body.count >= 1_024, shared.acceptsZstandard.withLock({ $0 }) {
        request.headers.add("Content-Encoding", ContentCoding.zstd.rawValue)
        request.body = try ContentCoding.zstd.compress(body)
      }
    }
    let response = try await transport.send(request)
    if let accepted = response.headers["Accept-Encoding"] {
      shared.acceptsZstandard.withLock { $0 = accepted.contains("zstd") }
    }
    guard response.isSuccess else { throw failure(response) }
    return response
  }

  private func failure(_ response: TransportResponse) -> ReplicaError {
    if let problem = Problem(decoding: response.body) { return .refused(problem) }
    if let detail = Problem.detail(in: response.body) {
      return .unexpectedAnswer(status: response.status, detail)
    }
    let text = String(decoding: response.body.prefix(200), as: UTF8.self)
    return .unexpectedAnswer(
      status: response.status, "this does not look like a Ferry server: \(text)")
  }
}
