import Compression
import FerryProtocol
import Networking
import Synchronization

/// The server's endpoints as a client calls them (Protocol/openapi.yaml).
struct SyncAPI: Sendable {
  private let client: NetworkClient
  private let surroundings: Surroundings
  private let shared: Shared

  /// What is learnt of a server and kept between calls.
  final class Shared: Sendable {
    fileprivate let acceptsZstandard = Mutex(false)
    private let offset = Mutex<Int64?>(nil)
    private let packetBytes = Mutex<Int?>(nil)

    init() {}

    /// The server's clock minus this device's by the last answer, milliseconds.
    var clockOffset: Int64? { offset.withLock { $0 } }

    func note(offset: Int64) { self.offset.withLock { $0 = offset } }

    /// Bytes of a packet that a proxy on the way was found to take.
    var packetBytesMax: Int? { packetBytes.withLock { $0 } }

    func note(packetBytesMax: Int) { packetBytes.withLock { $0 = packetBytesMax } }
  }

  init(
    _ server: ServerAccess, transport: any Transport, surroundings: Surroundings, shared: Shared
  ) {
    client = NetworkClient(
      Self.configuration(server, surroundings.limits), transport: transport,
      connectivity: surroundings.connectivity,
      surroundings: surroundings.network)
    self.surroundings = surroundings
    self.shared = shared
  }

  /// Only the sync knows what may be sent again, and when.
  private static func configuration(
    _ server: ServerAccess, _ limits: Limits
  ) -> NetworkConfiguration {
    let address = server.address
    var base = BaseURL(address.url)
    while base.url.hasSuffix("/") { base.url.removeLast() }
    base.url += "/v1/spaces/\(address.space)"
    base.headers.add(ProtocolVersion.header, "\(ProtocolVersion.current)")
    if let token = server.token { base.headers.add("Authorization", "Bearer \(token)") }
    var configuration = NetworkConfiguration(base)
    configuration.retry = .never
    configuration.responseLimit = limits.answerBytes
    // Requests and answers concern this server alone.
    configuration.redirects = .withinOrigin
    configuration.certificateAuthorities = address.certificateAuthorities
    return configuration
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
  func applySchema(_ document: SpaceSchema, keepsRecords: Bool) async throws -> SpaceSchema {
    let query = keepsRecords ? [QueryItem("records", "keep")] : []
    let answer = try await send(.put, "/schema", query: query, body: document.encoded())
    return try SpaceSchema(decoding: answer.body, limits: surroundings.limits)
  }

  /// - Parameter cursor: what the device knows of the history: the server takes the packet only
  ///   where it has that.
  func push(_ packet: Packet, cursor: Cursor?) async throws -> PacketAnswer {
    let query = cursor.map { [QueryItem("cursor", "\($0)")] } ?? []
    let answer = try await send(.post, "/packets", query: query, body: packet.encoded())
    return try PacketAnswer(decoding: answer.body, limits: surroundings.limits)
  }

  /// One page of the pull list, undecoded.
  ///
  /// - Parameter names: whose applied tail and notices to tell; a sync may find that the device
  ///   needs another name.
  func changes(cursor: Cursor?, limit: Int, names: OwnNames) async throws -> [UInt8] {
    var query = [QueryItem("limit", "\(limit)"), QueryItem("device", "\(names.device)")]
    let former = names.former.suffix(Limits.standard.formerDevices).map { "\($0.device)" }
    if !former.isEmpty { query.append(QueryItem("former", former.joined(separator: ","))) }
    if let cursor { query.append(QueryItem("cursor", "\(cursor)")) }
    let sent = surroundings.wallClock()
    let body = try await send(.get, "/changes", query: query).body
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
    var request = NetworkRequest("/events", headers: ["Accept": "text/event-stream"])
    if let head { request.headers.add("Last-Event-ID", "\(head)") }
    request.timeout = silence
    do throws(NetworkError) {
      return try await client.stream(request)
    } catch {
      guard case .rejected(let status, _) = error.kind else { throw error }
      throw ReplicaError.unexpectedAnswer(status: status, "no event stream")
    }
  }

  // MARK: Requests

  func send(
    _ method: TransportMethod, _ path: String, query: [QueryItem] = [], body: [UInt8]? = nil
  ) async throws -> NetworkResponse {
    var request = NetworkRequest(path, method: method, query: query)
    if let body {
      request.body = .bytes(body, contentType: "application/json")
      if body.count >= 1_024, shared.acceptsZstandard.withLock({ $0 }) {
        request.headers.add("Content-Encoding", ContentCoding.zstd.rawValue)
        request.body = .bytes(
          try ContentCoding.zstd.compress(body), contentType: "application/json")
      }
    }
    let bytesSent = request.body?.byteCount ?? 0
    let response: NetworkResponse
    do throws(NetworkError) {
      response = try await client.send(request)
    } catch {
      guard let response = error.response else { throw error }
      note(response)
      let failure = failure(response, bytesSent: bytesSent)
      guard let pause = error.retryAfter else { throw failure }
      throw AskedToWait(pause: pause, failure: ReplicaError(failure))
    }
    if ForeignAnswer.isWebPage(response) { throw ForeignAnswer(response, bytesSent: bytesSent) }
    note(response)
    return response
  }

  private func note(_ response: NetworkResponse) {
    if let accepted = response.headers["Accept-Encoding"] {
      shared.acceptsZstandard.withLock { $0 = accepted.contains("zstd") }
    }
  }

  private func failure(_ response: NetworkResponse, bytesSent: Int) -> any Error {
    if let problem = Problem(decoding: response.body) { return ReplicaError.refused(problem) }
    if let detail = Problem.detail(in: response.body) {
      return ReplicaError.unexpectedAnswer(status: response.status, detail)
    }
    return ForeignAnswer(response, bytesSent: bytesSent)
  }
}

extension NetworkBody {
  /// Bytes in memory that it sends.
  fileprivate var byteCount: Int {
    if case .bytes(let bytes, _) = self { bytes.count } else { 0 }
  }
}

/// The server's answer and its wish for a pause before the next attempt (`Retry-After`).
struct AskedToWait: Error {
  var pause: Duration
  var failure: ReplicaError

  /// The failure, with what the server asked for.
  var explained: ReplicaError {
    let wish = "the server asks not to be asked again for \(pause.inWords)"
    switch failure {
    case .refused(let problem):
      return .refused(
        Problem(
          problem.code, "\(problem.detail); \(wish)", refusals: problem.refusals,
          violations: problem.violations, violationCount: problem.violationCount))
    case .unexpectedAnswer(let status, let found):
      return .unexpectedAnswer(status: status, "\(found); \(wish)")
    default: return failure
    }
  }
}

extension Duration {
  /// Roughly, for a person.
  var inWords: String {
    let seconds = max(0, components.seconds)
    return switch seconds {
    case ..<120: "\(seconds) s"
    case ..<7_200: "\(seconds / 60) minutes"
    case ..<172_800: "\(seconds / 3_600) hours"
    default: "\(seconds / 86_400) days"
    }
  }
}
