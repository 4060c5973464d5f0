import FerryConformance
import FerryCryptography
import FerryHTTPServer
import FerryProtocol
import FerrySyncServer
import Foundation
import Synchronization

/// A server's service with an embedded store, for whole requests without a socket.
///
/// A request is a text: a line with method and target, headers, an empty line and the body.
final class FuzzService: Sendable {
  static let name = "request"
  static let space = "fuzz"
  private static let secret = Array("a secret of thirty-two characters".utf8)
  private static let now: Int64 = 1_790_000_000_000

  private let service: SyncService
  private let store: SQLiteStore
  /// Elapsed milliseconds: one for each request, so no rate ends a run.
  private let ticks = FuzzTicks()
  private let folder: URL

  init(seed: UInt64, scratch: URL) async throws {
    folder = scratch.appending(path: "store-\(seed)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let epochs = FuzzDrawer(SeededRandom(seed, "epochs"))
    let randoms = FuzzDrawer(SeededRandom(seed, "identifiers"))
    store = try await SQLiteStore(
      directory: folder.path, limits: .standard,
      makeEpoch: { Epoch(epochs.next()) },
      makeRandom: { randoms.next() })
    let ticks = ticks
    let clock = ServiceClock(
      wall: { Self.now + ticks.value }, uptime: { .milliseconds(ticks.value) })
    let log = ServiceLog(level: .error, sink: FuzzLog(), clock: clock)
    let verifier = SignedTokenVerifier(
      ClaimRules(issuer: "https://id.example", audiences: ["ferry"]),
      keys: KeySource(takesSecrets: true) { () throws(KeySourceError) in Self.keys }, clock: clock,
      log: log)
    try await verifier.start()
    var rates = RateLimits(requests: 0, requestBurst: 0, bytes: 0, failures: 0)
    (rates.spaceRequests, rates.spaceBytes) = (0, 0)
    let gate = AccessGate(
      store: store, clock: clock, policy: .trusted, limits: rates, verifier: verifier)
    service = SyncService(
      SyncService.Parts(
        store: store, gate: gate, hub: HeadHub(store), metrics: ServiceMetrics(), log: log,
        clock: clock, limits: .standard))
    if let space = SpaceName(Self.space) { _ = try await store.createSpace(space) }
  }

  /// Closes the store and removes the files.
  func close() { try? FileManager.default.removeItem(at: folder) }

  /// Responds to a request, and judges the answer.
  func read(_ bytes: [UInt8]) async throws -> String {
    ticks.advance()
    guard let request = Self.request(bytes) else { return "no request" }
    let response = await service.respond(to: request)
    if case .stream(let stream) = response.body {
      stream.connectionEnded()
      return "\(response.status) stream"
    }
    guard case .bytes(let content) = response.body else { return "\(response.status)" }
    guard response.status < 500 || response.status == 503 || response.status == 507 else {
      throw FuzzFinding(
        "\(request.method) is answered with \(response.status): "
          + String(decoding: content.prefix(300), as: UTF8.self))
    }
    guard response.status >= 400 else { return "\(response.status)" }
    guard let problem = Problem(decoding: content), problem.code.status == response.status else {
      throw FuzzFinding("\(response.status) without a problem document of its code")
    }
    return "\(response.status) \(problem.code.rawValue) " + FuzzTarget.kind(problem.detail)
  }

  // MARK: Requests

  /// Reads a request's text; `nil` if the HTTP layer would refuse it.
  private static func request(_ bytes: [UInt8]) -> HTTPRequest? {
    let end = bytes.indices.first { $0 > 0 && bytes[$0] == 0x0A && bytes[$0 - 1] == 0x0A }
    let head = String(decoding: bytes[..<(end ?? bytes.count)], as: UTF8.self)
    let lines = head.split(separator: "\n")
    let words = (lines.first ?? "").split(separator: " ", maxSplits: 1)
    guard words.count == 2, let target = try? RequestTarget(parsing: String(words[1])) else {
      return nil
    }
    var headers = HTTPHeaders()
    for line in lines.dropFirst() {
      let sides = line.split(separator: ":", maxSplits: 1)
      guard sides.count == 2 else { continue }
      headers.append(String(sides[0]), sides[1].trimmingCharacters(in: .whitespaces))
    }
    let body = end.map { Array(bytes[($0 + 1)...]) } ?? []
    return HTTPRequest(
      method: String(words[0]), path: target.path, segments: target.segments, query: target.query,
      headers: headers, body: body, bodyWireBytes: body.count, remoteAddress: "127.0.0.1")
  }

  /// Requests of every route, with bodies of the fixtures.
  static func samples(_ fixtures: [String: [[UInt8]]]) -> [[UInt8]] {
    let plain = [
      "GET /healthz", "GET /readyz", "GET /metrics", "GET /v1/spaces?limit=5", "GET /console/",
      "GET /v1/user", "GET /v1/tokens", "GET /v1/audit?space=fuzz&since=1&after=2&limit=3",
      "DELETE /v1/tokens/1",
    ]
    let ofSpace = [
      "GET ", "PUT ", "GET /overview", "GET /tables?limit=3", "GET /schema", "GET /events",
      "GET /history?table=tasks&record=0199c82c-0000-7000-8000-0000000000a1&limit=2",
      "GET /conflicts?limit=4", "GET /rejections", "GET /activity?hours=3", "GET /missions",
      "GET /bundles", "GET /changes?limit=10", "GET /devices", "DELETE /missions/m",
      "GET /changes?cursor=5f3c9a1be2d40718.9.9&device=0199c306-6400-7000-800a-11ce00000001"
        + "&former=0199c368-0c00-7000-800b-0b0000000002",
      "GET /tables?after=tasks", "GET /bundles/app", "DELETE /bundles/app",
      "GET /members", "GET /invitations", "DELETE /membership", "DELETE /invitations/1",
    ]
    var requests = plain.map { text($0, []) }
    requests += ofSpace.map { line in
      let words = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
      return text("\(words[0]) /v1/spaces/\(space)\(words[1])", [])
    }
    let bodies: [(String, String)] = [
      ("POST /packets", "packet"), ("POST /packets?cursor=5f3c9a1be2d40718.0.0", "packet"),
      ("POST /records", "records"), ("POST /digests", "digest-query"), ("POST /devices", "devices"),
      ("PUT /schema", "schema"), ("PUT /schema?records=keep", "schema"),
      ("PUT /devices/0199c306-6400-7000-800a-11ce00000001", "device-name"),
      ("PUT /missions/m", "manifest"), ("POST /bundle-reports", "bundle-reports"),
      ("POST /bundles/app", "bundle-change"), ("PUT /members", "member-request"),
      ("POST /invitations", "invitation-request"),
    ]
    for (line, target) in bodies {
      let words = line.split(separator: " ")
      for body in fixtures[target] ?? [] {
        requests.append(text("\(words[0]) /v1/spaces/\(space)\(words[1])", body))
      }
    }
    for (path, target) in [("spaces", "space-request"), ("invitations", "accept")] {
      requests += (fixtures[target] ?? []).map { text("POST /v1/\(path)", $0) }
    }
    requests.append(
      text(
        "POST /v1/tokens",
        Array(#"{"name":"x","owner":"y","spaces":{"fuzz":"reader"},"expiresIn":60}"#.utf8)))
    return requests
  }

  private static func text(_ line: String, _ body: [UInt8]) -> [UInt8] {
    let headers = [
      "Host: 127.0.0.1", "Authorization: Bearer \(token)", "Content-Type: application/json",
      "Ferry-Protocol: 1", "Accept-Encoding: gzip", "If-None-Match: \"x\"",
    ]
    return Array(([line] + headers).joined(separator: "\n").utf8) + [0x0A, 0x0A] + body
  }

  // MARK: Tokens

  private static let keys = Array(
    "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"k\",\"k\":\"\(encoded(secret))\"}]}".utf8)

  /// A token of an admin of all spaces, signed with the secret.
  private static let token: String = {
    let head = encoded(Array(#"{"alg":"HS256","typ":"JWT","kid":"k"}"#.utf8))
    let claims = encoded(
      Array(
        (#"{"iss":"https://id.example","aud":"ferry","sub":"ada","exp":4000000000,"#
          + #""ferry":{"*":"admin"}}"#).utf8))
    let signature = HMACSHA256.code(for: Array("\(head).\(claims)".utf8), key: secret)
    return "\(head).\(claims).\(encoded(signature))"
  }()

  private static func encoded(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }
}

/// The time of a run, moved by requests alone.
private final class FuzzTicks: Sendable {
  private let count = Mutex(Int64(0))
  var value: Int64 { count.withLock { $0 } }
  func advance() { count.withLock { $0 += 1 } }
}

/// Random numbers for closures with callers anywhere in the store.
private final class FuzzDrawer: Sendable {
  private let random: Mutex<SeededRandom>
  init(_ random: SeededRandom) { self.random = Mutex(random) }
  func next() -> UInt64 { random.withLock { $0.next() } }
}

/// Drops all lines.
private struct FuzzLog: LogSink {
  var droppedLines: Int { 0 }
  func write(_ line: [UInt8]) {}
  func flush() {}
}
