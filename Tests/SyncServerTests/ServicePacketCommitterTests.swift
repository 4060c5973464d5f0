import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct ServicePacketCommitterTests {
  let store = ServiceStoreDouble(spaces: ["a", "b"])
  let metrics = ServiceMetrics()
  let recorder = LogRecorder()
  var memory = MemoryBudget(limit: 256 << 20)

  func committer(_ bounds: CommitQueue<PacketCommitter.Ticket>.Bounds = .init()) -> PacketCommitter
  {
    let clock = ServiceClockDouble().clock
    return PacketCommitter(
      store: store, clock: clock, metrics: metrics,
      log: ServiceLog(level: .debug, sink: recorder, clock: clock), memory: memory,
      bounds: bounds)
  }

  static func packet(_ seed: UInt64, record: String? = nil) -> IncomingPacket {
    IncomingPacket(.serviceSample(seed, record: record), byteCount: 100)
  }

  /// Returns when so many packets wait in the space.
  private static func waiting(_ count: Int, in committer: PacketCommitter) async throws {
    try await eventually("\(count) waiting packets") { committer.waitingCount(in: 1) >= count }
  }

  /// Commits, and returns the code of the problem if there is one.
  static func commit(
    _ packet: IncomingPacket, _ committer: PacketCommitter, space: Int64 = 1
  ) async -> Result<PacketAnswer, Problem> {
    do {
      return .success(try await committer.commit(packet, into: space))
    } catch {
      return .failure(error)
    }
  }

  @Test("packets that wait together share a transaction, and each gets its own answer")
  func sharesTransactions() async throws {
    let committer = committer()
    store.hold()
    async let first = Self.commit(Self.packet(1), committer)
    await store.waitUntilHeld()
    let answers = try await withThrowingTaskGroup(
      of: (UInt64, Result<PacketAnswer, Problem>).self
    ) { group in
      for seed in UInt64(2)...40 {
        group.addTask { (seed, await Self.commit(Self.packet(seed), committer)) }
      }
      group.addTask { [store] in
        defer { store.release() }
        try await Self.waiting(39, in: committer)
        return (0, .failure(Problem(.notFound, "")))
      }
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    for seed in UInt64(2)...40 {
      let answer = try #require(answers[seed]).get()
      #expect(answer.receipt.tail == Self.packet(seed).packet.tail)
      #expect(answer.head == 40)
    }
    #expect(try await first.get().head == 1)
    #expect(store.state.withLock { $0.batches } == [1, 39])
  }

  @Test("a space does not wait for another one")
  func spacesAreIndependent() async throws {
    let committer = committer()
    store.hold()
    async let slow = Self.commit(Self.packet(1), committer)
    await store.waitUntilHeld()
    store.state.withLock { $0.isHolding = false }
    #expect(try await Self.commit(Self.packet(2), committer, space: 2).get().head == 1)
    store.release()
    #expect(try await slow.get().head == 1)
  }

  @Test("packets of other devices do not wait while a packet's batches are matched")
  func searchesBeside() async throws {
    let committer = committer()
    var maker = PacketMaker(1)
    let batch = maker.packet([try maker.batch(where: "true", [Column("v", 1)])])
    store.hold()
    async let slow = Self.commit(IncomingPacket(batch, byteCount: 100), committer)
    await store.waitUntilHeld()
    store.state.withLock { $0.isHolding = false }
    #expect(await Self.commit(Self.packet(2), committer).problemCode == nil)
    store.release()
    #expect(await slow.problemCode == nil)
  }

  @Test("one packet that the database refuses does not affect the others")
  func isolatesPoison() async throws {
    let committer = committer()
    store.state.withLock { $0.poisonedRecord = "bad" }
    store.hold()
    async let first = Self.commit(Self.packet(1), committer)
    await store.waitUntilHeld()
    async let good = Self.commit(Self.packet(2), committer)
    async let bad = Self.commit(Self.packet(3, record: "bad"), committer)
    async let fine = Self.commit(Self.packet(4), committer)
    try await Self.waiting(3, in: committer)
    store.release()
    #expect(await first.problemCode == nil)
    #expect(await good.problemCode == nil)
    #expect(await bad.problemCode == .internalError)
    #expect(await fine.problemCode == nil)
    #expect(recorder.lines.contains { $0.contains("a record cannot be written") })
  }

  @Test("a caller that cancels does not affect other callers' answers")
  func cancellation() async throws {
    let committer = committer()
    store.hold()
    async let first = Self.commit(Self.packet(1), committer)
    await store.waitUntilHeld()
    let gone = Task { await Self.commit(Self.packet(2), committer) }
    async let third = Self.commit(Self.packet(3), committer)
    try await Self.waiting(2, in: committer)
    gone.cancel()
    store.release()
    #expect(await first.problemCode == nil)
    #expect(try await third.get().head == 3)
    #expect(try await gone.value.get().head == 3, "it is committed all the same")
  }

  @Test("a full queue answers with a time to retry")
  func fullQueue() async throws {
    let committer = committer(.init(waitingPackets: 1))
    store.hold()
    async let first = Self.commit(Self.packet(1), committer)
    await store.waitUntilHeld()
    async let second = Self.commit(Self.packet(2), committer)
    try await Self.waiting(1, in: committer)
    let third = await Self.commit(Self.packet(3), committer)
    #expect(third.problemCode == .unavailable)
    store.release()
    #expect(await first.problemCode == nil)
    #expect(await second.problemCode == nil)
  }

  @Test("an unavailable store is reported, and serves again when it is back")
  func storeAway() async throws {
    let committer = committer()
    store.fail(.unavailable("the database is away"))
    #expect(await Self.commit(Self.packet(1), committer).problemCode == .unavailable)
    store.fail(nil)
    #expect(await Self.commit(Self.packet(1), committer).problemCode == nil)
    #expect(metrics.snapshot.storeErrors == 1)
    #expect(metrics.snapshot.packets["applied"] == 1)
  }
}
