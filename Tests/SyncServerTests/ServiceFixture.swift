import FerryHTTPServer
import FerryProtocol
import Synchronization
import Testing

@testable import FerrySyncServer

/// A clock moved only by a test.
final class ServiceClockDouble: Sendable {
  private let time = Mutex(Duration.seconds(1_000))
  private let later = Mutex(Int64(0))
  static let wall: Int64 = 1_790_000_000_000

  func advance(_ duration: Duration) { time.withLock { $0 += duration } }

  /// Moves the wall clock alone.
  func advanceWall(milliseconds: Int64) { later.withLock { $0 += milliseconds } }

  var clock: ServiceClock {
    ServiceClock(
      wall: { Self.wall + self.later.withLock { $0 } }, uptime: { self.time.withLock { $0 } })
  }
}

extension SyncStore {
  /// Keeps a token with this secret. Returns it as it is kept.
  @discardableResult
  func addToken(
    _ secret: AccessToken, _ grants: AccessGrants, owner: String? = nil, expiresAt: Int64? = nil
  ) async throws -> StoredToken {
    let token = StoredToken(
      id: TokenID(hash: secret.hash), owner: owner, grants: grants,
      createdAt: ServiceClockDouble.wall, expiresAt: expiresAt)
    try await addToken(token, hash: secret.hash, by: nil)
    return token
  }
}

/// Keeps the lines of a log.
final class LogRecorder: LogSink {
  private let kept = Mutex([String]())

  var lines: [String] { kept.withLock { $0 } }
  var droppedLines: Int { 0 }

  func write(_ line: [UInt8]) {
    kept.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
  }

  func flush() {}
}

/// A service over the store double, without a socket.
struct ServiceFixture {
  let store: ServiceStoreDouble
  let clock: ServiceClockDouble
  let recorder = LogRecorder()
  let hub: HeadHub
  let service: SyncService

  init(
    spaces: [String] = ["notes"], checksLoopback: Bool = false, limits: Limits = .standard,
    quotas: Quotas = .standard, streamLimit: Int = .max
  ) {
    let (store, clock) = (ServiceStoreDouble(spaces: spaces), ServiceClockDouble())
    self.init(
      store: store,
      gate: AccessGate(store: store, clock: clock.clock, checksLoopback: checksLoopback),
      clock: clock, limits: limits, quotas: quotas, streamLimit: streamLimit)
  }

  init(
    store: ServiceStoreDouble, gate: AccessGate, clock: ServiceClockDouble,
    limits: Limits = .standard, quotas: Quotas = .standard, streamLimit: Int = .max,
    userSpaces: SpacePattern? = nil
  ) {
    (self.store, self.clock) = (store, clock)
    hub = HeadHub(store, turn: .zero, sleep: { _ in })
    let log = ServiceLog(level: .debug, sink: recorder, clock: clock.clock)
    var parts = SyncService.Parts(
      store: store, gate: gate, hub: hub, metrics: ServiceMetrics(), log: log,
      clock: clock.clock, limits: limits, quotas: quotas)
    parts.streamLimit = streamLimit
    parts.userSpaces = userSpaces
    service = SyncService(parts)
  }

  /// Makes a token and keeps the hash.
  func token(_ role: Role, of space: String = "notes") async throws -> AccessToken {
    var random = SystemRandomNumberGenerator()
    let token = AccessToken(random: &random)
    let name = try #require(SpaceName(space))
    try await store.addToken(token, AccessGrants(name, role))
    return token
  }

  /// Sends a request; `target` may have a query of plain characters.
  func send(
    _ method: String, _ target: String, token: AccessToken? = nil,
    headers: HTTPHeaders = [:], body: [UInt8] = []
  ) async -> HTTPResponse {
    var headers = headers
    if let token { headers["Authorization"] = "Bearer \(token.text)" }
    let parts = target.split(separator: "?", maxSplits: 1)
    var query: [String: String] = [:]
    for pair in parts.dropFirst().first?.split(separator: "&") ?? [] {
      let sides = pair.split(separator: "=", maxSplits: 1)
      query[String(sides[0])] = sides.count > 1 ? String(sides[1]) : ""
    }
    let segments = parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    return await service.respond(
      to: HTTPRequest(
        method: method, path: String(parts[0]),
        segments: segments == [""] ? [] : segments.map(String.init), query: query,
        headers: headers, body: body, bodyWireBytes: body.count, remoteAddress: "127.0.0.1"))
  }
}

extension HTTPResponse {
  /// The body, when it is known in full.
  var bytes: [UInt8] {
    if case .bytes(let bytes) = body { bytes } else { [] }
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The problem of the response.
  var problem: Problem? { Problem(decoding: bytes) }
}

extension SpaceName {
  /// Returns a space's name from a text known to be one.
  static func known(_ text: String) -> SpaceName {
    guard let name = SpaceName(text) else { preconditionFailure("\(text) is no space's name") }
    return name
  }
}
