import FerryCompression
import FerryNetworking
import FerryPlatform
import FerryProtocol
import Synchronization

/// The server's endpoints as a client calls them (Protocol/openapi.yaml).
struct SyncAPI: Sendable {
  private let client: NetworkClient
  private let server: ServerAccess
  private let surroundings: ReplicaSurroundings
  private let shared: Shared
  /// The trace of all requests; `nil` if they name none. Each request has a separate span.
  let trace: TraceContext?
  /// The names of devices seen by this round.
  let names = NewestNames()
  var limits: Limits { surroundings.limits }
  /// The server's clock minus this device's as of the last answer, in milliseconds.
  var clockOffset: Int64? { shared.clockOffset }

  /// Facts about a server, kept between calls.
  final class Shared: Sendable {
    fileprivate let bodyCoding = Mutex<ContentCoding?>(nil)
    private let offset = Mutex<Int64?>(nil)
    private let packetBytes = Mutex<Int?>(nil)

    init() {}

    /// The server's clock minus this device's as of the last answer, in milliseconds.
    var clockOffset: Int64? { offset.withLock { $0 } }

    func update(offset: Int64) { self.offset.withLock { $0 = offset } }

    /// The largest packet, in bytes, accepted by a proxy on the way.
    var packetBytesMax: Int? { packetBytes.withLock { $0 } }

    func update(packetBytesMax: Int) { packetBytes.withLock { $0 = packetBytesMax } }
  }

  /// The addresses of requests.
  enum Scope {
    case space
    /// The server's own, about no single space.
    case server
  }

  init(
    _ server: ServerAccess, transport: any Transport, surroundings: ReplicaSurroundings,
    shared: Shared, scope: Scope = .space
  ) {
    client = NetworkClient(
      Self.configuration(server.address, scope, surroundings.limits), transport: transport,
      connectivity: surroundings.connectivity,
      surroundings: surroundings.network)
    self.server = server
    self.surroundings = surroundings
    self.shared = shared
    trace = surroundings.traceRandom.map { TraceContext(random: $0) }
  }

  /// Returns the client's settings, without retries: only the sync knows when to repeat a request.
  private static func configuration(
    _ address: ServerAddress, _ scope: Scope, _ limits: Limits
  ) -> NetworkConfiguration {
    var base = BaseURL(address.url)
    while base.url.ends(with: "/") { base.url.removeLast() }
    base.url += scope == .space ? "/v1/spaces/\(address.space)" : "/v1"
    base.headers.add(ProtocolVersion.header, "\(ProtocolVersion.current)")
    var configuration = NetworkConfiguration(base)
    configuration.retry = .never
    configuration.responseLimit = limits.answerBytes
    // Requests and answers concern this server alone.
    configuration.redirects = .withinOrigin
    configuration.certificateAuthorities = address.certificateAuthorities
    return configuration
  }

  /// Fetches the space; creates an absent one if the server permits it.
  func space(create: Bool) async throws -> SpaceInfo {
    let sent = surroundings.wallClock()
    let info = try SpaceInfo(decoding: try await send(create ? .put : .get, "").body)
    recordClock(sent, info.serverTime)
    return info
  }

  /// Fetches the schema of the space.
  func schema() async throws -> SpaceSchema {
    try SpaceSchema(decoding: try await send(.get, "/schema").body, limits: surroundings.limits)
  }

  /// Puts a schema in force and returns it.
  func applySchema(
    _ document: SpaceSchema, keepsRecords: Bool, dropsRules: Bool
  ) async throws -> SpaceSchema {
    let query =
      (keepsRecords ? [QueryItem("records", "keep")] : [])
      + (dropsRules ? [QueryItem("losses", "accept")] : [])
    let answer = try await send(.put, "/schema", query: query, body: document.encoded())
    return try SpaceSchema(decoding: answer.body, limits: surroundings.limits)
  }

  /// Sends a packet. Returns the server's answer.
  ///
  /// - Parameter cursor: the device's place in the history; the server accepts the packet only if
  ///   it has this place.
  func push(_ packet: Packet, cursor: Cursor?) async throws -> PacketAnswer {
    let query = cursor.map { [QueryItem("cursor", "\($0)")] } ?? []
    let answer = try await send(.post, "/packets", query: query, body: packet.encoded())
    return try PacketAnswer(decoding: answer.body, limits: surroundings.limits)
  }

  /// Fetches one page of the pull list.
  ///
  /// - Parameter names: the device identifiers for the page's applied tail and notices. During a
  ///   sync, the device may need another one.
  func changes(cursor: Cursor?, limit: Int, names: OwnNames) async throws -> PulledPage {
    var query = [QueryItem("limit", "\(limit)"), QueryItem("device", "\(names.device)")]
    let former = names.former.suffix(Limits.standard.formerDevices).map { "\($0.device)" }
    if !former.isEmpty { query.append(QueryItem("former", former.joined(separator: ","))) }
    if let cursor { query.append(QueryItem("cursor", "\(cursor)")) }
    let sent = surroundings.wallClock()
    let body = try await send(.get, "/changes", query: query).body
    let head = try PageReader.head(of: body)
    recordClock(sent, head.serverTime)
    self.names.update(head, for: names.device)
    return PulledPage(head: head, body: body)
  }

  /// Fetches the whole present state of these records from the server, as an undecoded page. An
  /// absent record is a delete at sequence 0. Accepts at most ``Limits/recordsPerRequest`` distinct
  /// keys; the caller requests keys missing from the page again.
  func records(_ keys: [RecordKey]) async throws -> [UInt8] {
    try await send(.post, "/records", body: RecordsRequest(keys: keys).encoded()).body
  }

  private func recordClock(_ sent: Int64, _ server: Int64) {
    let received = surroundings.wallClock()
    shared.update(offset: ClockOffset.estimate(sent: sent, server: server, received: received))
  }

  /// Opens the event stream; it ends when the server or the network ends it.
  func events(after head: SequenceNumber?, silence: Duration) async throws -> TransportStream {
    var request = NetworkRequest("/events", headers: ["Accept": "text/event-stream"])
    if let head { request.headers.add("Last-Event-ID", "\(head)") }
    request.timeout = silence
    do {
      return try await authorised(request) { request throws(NetworkError) in
        try await client.stream(request)
      }
    } catch let error as NetworkError {
      guard case .rejected(let status, _) = error.kind else { throw error }
      throw ReplicaError.unexpectedAnswer(status: status, "no event stream")
    }
  }

  // MARK: Requests

  func send(
    _ method: TransportMethod, _ path: String, query: [QueryItem] = [], body: [UInt8]? = nil
  ) async throws -> NetworkResponse {
    var request = NetworkRequest(path, method: method, query: query)
    guard let body else { return try await exchange(request) }
    if body.count >= 1_024, let coding = shared.bodyCoding.withLock({ $0 }) {
      var coded = request
      coded.headers.add("Content-Encoding", coding.rawValue)
      coded.body = .bytes(try coding.compress(body), contentType: "application/json")
      do {
        return try await exchange(coded)
      } catch let error where Self.mayConcernCoding(error) {
        // The message itself may be acceptable.
      }
    }
    request.body = .bytes(body, contentType: "application/json")
    return try await exchange(request)
  }

  /// Returns true if an answer may reject the coding of a body, and not the message in it.
  private static func mayConcernCoding(_ error: any Error) -> Bool {
    switch error {
    case ReplicaError.refused(let problem):
      [.limitExceeded, .unsupportedCoding].contains(problem.code)
    case let foreign as ForeignAnswer: !foreign.isTooLarge && foreign.mayConcernContent
    default: false
    }
  }

  private func exchange(_ request: NetworkRequest) async throws -> NetworkResponse {
    let bytesSent = request.body?.byteCount ?? 0
    let response: NetworkResponse
    do {
      response = try await authorised(request) { request throws(NetworkError) in
        try await client.send(request)
      }
    } catch let error as NetworkError {
      guard let response = error.response else { throw error }
      record(response)
      let failure = failure(response, bytesSent: bytesSent)
      guard let pause = error.retryAfter else { throw failure }
      throw AskedToWait(pause: pause, failure: ReplicaError(failure))
    }
    if ForeignAnswer.isWebPage(response) { throw ForeignAnswer(response, bytesSent: bytesSent) }
    record(response)
    return response
  }

  /// Sends a request with the token. If the server rejects a token fetched by the application,
  /// sends it once more with another one.
  private func authorised<Answer>(
    _ request: NetworkRequest, _ send: (NetworkRequest) async throws(NetworkError) -> Answer
  ) async throws -> Answer {
    var request = request
    let token = try await server.token()
    beginSpan(&request)
    if let token { request.headers["Authorization"] = "Bearer \(token)" }
    do throws(NetworkError) {
      return try await send(request)
    } catch {
      guard case .rejected(401, _) = error.kind, server.fetched != nil,
        let other = try await server.token(otherThan: token)
      else { throw error }
      request.headers["Authorization"] = "Bearer \(other)"
      beginSpan(&request)
      return try await send(request)
    }
  }

  /// Names the trace, and a new span in it (W3C Trace Context).
  private func beginSpan(_ request: inout NetworkRequest) {
    guard let trace, let random = surroundings.traceRandom else { return }
    request.headers["traceparent"] = trace.child(random: random).traceparent
  }

  private func record(_ response: NetworkResponse) {
    if let accepted = response.headers["Accept-Encoding"] {
      shared.bodyCoding.withLock { $0 = ContentCoding.negotiate(acceptEncoding: accepted) }
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

/// A page of a pull list, undecoded but for the head.
struct PulledPage: Sendable {
  let head: PageHead
  let body: [UInt8]
}

extension NetworkBody {
  /// The bytes in memory sent by the body.
  fileprivate var byteCount: Int {
    if case .bytes(let bytes, _) = self { bytes.count } else { 0 }
  }
}

/// The server's answer, and the requested pause before the next attempt (`Retry-After`).
struct AskedToWait: Error {
  var pause: Duration
  var failure: ReplicaError

  /// The failure with the requested pause.
  var explained: ReplicaError {
    let wish = "the server asks for a pause of \(pause.inWords)"
    switch failure {
    case .refused(let problem):
      return .refused(problem.detailed("\(problem.detail); \(wish)"))
    case .unexpectedAnswer(let status, let found):
      return .unexpectedAnswer(status: status, "\(found); \(wish)")
    default: return failure
    }
  }
}

extension Duration {
  /// An approximate duration in words, for the user.
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
