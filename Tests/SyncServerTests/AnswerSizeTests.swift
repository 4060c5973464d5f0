import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("The memory of answers", .hangLimit)
struct AnswerSizeTests {
  private static let limit = 256 << 20

  /// The requests whose answers are built from the store.
  private static let requests: [(method: String, target: String, body: String)] = [
    ("GET", "/v1/spaces", ""), ("GET", "/v1/tokens", ""), ("GET", "/v1/audit", ""),
    ("GET", "changes", ""), ("GET", "records?table=t", ""), ("GET", "history?table=t&record=a", ""),
    ("GET", "conflicts", ""), ("GET", "rejections", ""), ("GET", "activity", ""),
    ("GET", "feed", ""),
    ("GET", "overview", ""), ("GET", "tables", ""), ("GET", "devices", ""), ("GET", "schema", ""),
    ("GET", "missions", ""), ("GET", "missions/tour", ""), ("GET", "bundles", ""),
    ("GET", "bundles/app", ""), ("GET", "members", ""), ("GET", "invitations", ""),
    ("POST", "records", #"{"records":[["t","a"]]}"#),
    ("POST", "devices", #"{"devices":["00000000-0000-0000-0000-000000000001"]}"#),
    ("POST", "digests", #"{"cursor":null}"#),
  ]

  private static func request(_ row: (method: String, target: String, body: String)) -> HTTPRequest
  {
    let target = row.target.hasPrefix("/") ? row.target : "/v1/spaces/notes/" + row.target
    let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
    var query: [String: String] = [:]
    for pair in parts.dropFirst().first?.split(separator: "&") ?? [] {
      let sides = pair.split(separator: "=")
      query[String(sides[0])] = String(sides[1])
    }
    return HTTPRequest(
      method: row.method, path: parts[0],
      segments: parts[0].dropFirst().split(separator: "/").map(String.init), query: query,
      headers: [:], body: Array(row.body.utf8), bodyWireBytes: row.body.utf8.count,
      remoteAddress: "127.0.0.1")
  }

  private static func service(_ store: some SyncStore, _ budget: MemoryBudget) -> SyncService {
    let clock = ServiceClockDouble().clock
    var parts = SyncService.Parts(
      store: store, gate: AccessGate(store: store, clock: clock, checksLoopback: false),
      hub: HeadHub(store, turn: .zero, sleep: { _ in }), metrics: ServiceMetrics(),
      log: ServiceLog(level: .debug, sink: LogRecorder(), clock: clock), clock: clock,
      limits: .standard, quotas: .standard)
    parts.memory = budget
    return SyncService(parts)
  }

  private static func check(_ store: some SyncStore) async throws {
    let space = try await store.createSpace(.known("notes"), by: nil)
    let packet = Packet.serviceSample(1, operations: 3)
    _ = try await store.ingest(
      [IncomingPacket(packet, byteCount: 100)], into: space.id, now: ServiceClockDouble.wall,
      room: .sliced)
    let budget = MemoryBudget(limit: limit, patience: .zero)
    let service = service(store, budget)
    var grants: [MemoryGrant] = []
    while let grant = budget.grantAtOnce(limit / 16, account: nil) { grants.append(grant) }
    let cursor = Cursor(epoch: space.epoch, applied: 0).description
    func send(_ row: (method: String, target: String, body: String)) async -> HTTPResponse {
      let body = row.body.replacing("null", with: "\"\(cursor)\"")
      return await service.respond(to: request((row.method, row.target, body)))
    }
    for row in requests {
      let answer = await send(row)
      #expect(answer.status == 503, "\(row.method) \(row.target)")
      #expect(budget.used == limit, "\(row.method) \(row.target)")
    }
    grants = []
    for row in requests {
      let answer = await send(row)
      #expect([200, 404].contains(answer.status), "\(row.method) \(row.target): \(answer.text)")
      // The memory stays taken until the answer has a separate share.
      #expect(answer.status == 404 || budget.used > 0, "\(row.method) \(row.target)")
      withExtendedLifetime(answer) {}
    }
    #expect(budget.used == 0)
    withExtendedLifetime(grants) {}
    await store.close()
  }

  @Test("SQLite: answers that are built from the store take memory first, and return it")
  func embedded() async throws {
    let directory = try TemporaryDirectory()
    try await Self.check(SQLiteStore(directory: directory.url.path))
  }

  @Test("PostgreSQL: answers that are built from the store take memory first, and return it")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    try await Self.check(PostgresStore(url: url))
  }

  @Test("every route that is not listed here has a small answer, or memory of its own")
  func routes() {
    let listed = Self.requests.map { row in
      let request = Self.request(row)
      let match = RouteMatch(method: row.method, segments: request.segments)
      return "\(row.method) \(match.route.rawValue)"
    }
    var sized: [String] = []
    for route in Route.allCases {
      for endpoint in route.endpoints where endpoint.memory.bytes(.standard) != nil {
        // A HEAD is answered like a GET.
        if endpoint.method != "HEAD" { sized.append("\(endpoint.method) \(route.rawValue)") }
      }
    }
    // The callers of an open server have no spaces of their own to read.
    #expect(Set(sized).subtracting(["GET /v1/user"]) == Set(listed))
  }
}
