import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("The memory of pages that are built", .hangLimit)
struct PageRoomTests {
  private static let limit = 256 << 20

  /// Takes all memory of a budget.
  private static func fill(_ budget: MemoryBudget) throws -> [MemoryGrant] {
    var grants: [MemoryGrant] = []
    while let grant = budget.grantAtOnce(limit / 16, account: nil) { grants.append(grant) }
    try #require(budget.used == limit)
    return grants
  }

  /// Calls a store in a task whose answer takes this memory.
  private static func read<Value>(
    _ room: PageRoom, _ body: () async throws -> Value
  ) async throws -> Value {
    let read = await room.run { () async -> Result<Value, any Error> in
      do { return .success(try await body()) } catch { return .failure(error) }
    }
    return try read.get()
  }

  private static func check(_ store: some SyncStore) async throws {
    let space = try await store.createSpace(.known("notes"), by: nil)
    let packet = Packet.serviceSample(1, operations: 3)
    let batch = try await store.ingest(
      [IncomingPacket(packet, byteCount: 100)], into: space.id, now: ServiceClockDouble.wall,
      room: .sliced)
    #expect(batch.head == 3)
    let budget = MemoryBudget(limit: limit)
    var grants = try fill(budget)
    let wanted = 12 << 20
    let room = PageRoom(budget, bytes: wanted, account: nil)
    let request = PullRequest(cursor: nil, limit: 10, byteLimit: 1 << 20, device: nil)
    let keys = packet.operations.map(\.key)
    await #expect(throws: StoreError.needsMemory) {
      try await read(room) { try await store.changes(in: space.id, request, now: 0) }
    }
    await #expect(throws: StoreError.needsMemory) {
      try await read(room) { try await store.missions(in: space.id, after: nil, limit: 1) }
    }
    grants = []
    let page = try await read(room) {
      try await store.changes(in: space.id, request, now: 0).get()
    }
    #expect(try PageReader.head(of: page).count == 3)
    // The caller holds the memory until the answer has a separate share.
    #expect(budget.used == wanted)
    let records = try await read(room) {
      try await store.records(keys, in: space.id, now: 0).get()
    }
    #expect(try PageReader.head(of: records).count == 3)
    #expect(budget.used == wanted)
    _ = room.passOn()
    #expect(budget.used == 0)
    withExtendedLifetime(grants) {}
    await store.close()
  }

  @Test("SQLite: a page is built when there is memory for it")
  func embedded() async throws {
    let directory = try TemporaryDirectory()
    try await Self.check(SQLiteStore(directory: directory.url.path))
  }

  @Test("PostgreSQL: a page is built when there is memory for it")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    try await Self.check(PostgresStore(url: url))
  }

  @Test("a small budget builds several pages of one account at once")
  func smallBudget() {
    let budget = MemoryBudget(limit: 64 << 20)
    let rooms = (0..<4).map { _ in PageRoom(budget, bytes: 12 << 20, account: "ada") }
    #expect(rooms.allSatisfy { $0.reserve() && $0.reserve() })
    #expect(budget.used == 4 * (4 << 20))
    withExtendedLifetime(rooms) {}
  }

  private static func service(
    _ store: ServiceStoreDouble, _ budget: MemoryBudget
  ) -> SyncService {
    let clock = ServiceClockDouble().clock
    var parts = SyncService.Parts(
      store: store, gate: AccessGate(store: store, clock: clock, checksLoopback: false),
      hub: HeadHub(store, turn: .zero, sleep: { _ in }), metrics: ServiceMetrics(),
      log: ServiceLog(level: .debug, sink: LogRecorder(), clock: clock), clock: clock,
      limits: .standard, quotas: .standard)
    parts.memory = budget
    return SyncService(parts)
  }

  private static let pull = HTTPRequest(
    method: "GET", path: "/v1/spaces/notes/changes",
    segments: ["v1", "spaces", "notes", "changes"], query: [:], headers: [:], body: [],
    bodyWireBytes: 0, remoteAddress: "127.0.0.1")

  @Test("a pull waits for memory, and gives it back after its answer")
  func waits() async throws {
    let budget = MemoryBudget(limit: Self.limit, patience: .seconds(3_600))
    let service = Self.service(ServiceStoreDouble(spaces: ["notes"]), budget)
    var grants = try Self.fill(budget)
    var answer: Task<HTTPResponse, Never>? = Task { await service.respond(to: Self.pull) }
    try await eventually("the pull to wait for memory") { budget.counts.waiting == 1 }
    grants = []
    var response = await answer?.value
    #expect(response?.status == 200)
    #expect(budget.used > 0)
    (response, answer) = (nil, nil)
    try await eventually("the memory to be free") { budget.used == 0 }
    withExtendedLifetime(grants) {}
  }

  @Test("a pull without memory is answered with 503 after its wait")
  func refused() async throws {
    let budget = MemoryBudget(limit: Self.limit, patience: .zero)
    let service = Self.service(ServiceStoreDouble(spaces: ["notes"]), budget)
    let grants = try Self.fill(budget)
    let answer = await service.respond(to: Self.pull)
    #expect(answer.status == 503)
    #expect(answer.headers["Retry-After"] != nil)
    #expect(budget.used == Self.limit)
    withExtendedLifetime(grants) {}
  }
}
