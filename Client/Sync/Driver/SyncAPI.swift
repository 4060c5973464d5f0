import Compression
import FerryProtocol
import Networking
import Synchronization

/// The server's endpoints as a client calls them (Protocol/openapi.yaml).
struct SyncAPI: Sendable {
  let address: ServerAddress
  private let client: NetworkClient
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
    client = NetworkClient(
      Self.configuration(address), transport: transport, connectivity: surroundings.connectivity,
      surroundings: surroundings.network)
    self.surroundings = surroundings
    self.shared = shared
  }

  /// Only the sync knows what may be sent again, and when.
  private static func configuration(_ address: ServerAddress) -> NetworkConfiguration {
    var base = BaseURL(address.url)
    while base.url.hasSuffix("/") { base.url.removeLast() }
    base.url += "/v1/spaces/\(address.space)"
    base.headers.add(ProtocolVersion.header, "\(ProtocolVersion.current)")
    if let token = address.token { base.headers.add("Authorization", "Bearer \(token)") }
    var configuration = NetworkConfiguration(base)
    configuration.retry = .never
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
    do throws(NetworkError) {
      let response = try await client.send(request)
      note(response)
      return response
    } catch {
      guard let response = error.response else { throw error }
      note(response)
      guard let pause = error.retryAfter else { throw failure(response) }
      throw AskedToWait(pause: pause, failure: failure(response))
    }
  }

  private func note(_ response: NetworkResponse) {
    if let accepted = response.headers["Accept-Encoding"] {
      shared.acceptsZstandard.withLock { $0 = accepted.contains("zstd") }
    }
  }

  private func failure(_ response: NetworkResponse) -> ReplicaError {
    if let problem = Problem(decoding: response.body) { return .refused(problem) }
    if let detail = Problem.detail(in: response.body) {
      return .unexpectedAnswer(status: response.status, detail)
    }
    let text = String(decoding: response.body.prefix(200), as: UTF8.self)
    return .unexpectedAnswer(
      status: response.status, "this does not look like a Ferry server: \(text)")
  }
}

/// The server's answer and its wish for a pause before the next attempt (`Retry-After`).
struct AskedToWait: Error {
  var pause: Duration
  var failure: ReplicaError
}
