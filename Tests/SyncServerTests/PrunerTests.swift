import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

@Suite("The pruner", .hangLimit)
struct PrunerTests {
  /// A wall clock moved by a test, and the pauses so far.
  final class Harness: Sendable {
    struct Ended: Error {}

    let wall = Mutex(Int64(1_800_000_000_000))
    let pauses = Mutex([Duration]())
    let metrics = ServiceMetrics()
    let recorder = LogRecorder()

    var clock: ServiceClock {
      ServiceClock(wall: { self.wall.withLock { $0 } }, uptime: { .zero })
    }

    func advance(_ duration: Duration) {
      wall.withLock { $0 += duration.components.seconds * 1_000 }
    }

    /// Returns a pruner, ended after so many pauses.
    func pruner(_ store: any SyncStore, rows: Int = 100, pauses most: Int = 1_000) -> Pruner {
      Pruner(
        store: store, clock: clock, metrics: metrics,
        log: ServiceLog(level: .debug, sink: recorder, clock: clock),
        pace: Pruner.Pace(interval: .seconds(600), pause: .milliseconds(20), rows: rows),
        sleep: { pause in
          let count = self.pauses.withLock {
            $0.append(pause)
            return $0.count
          }
          if count > most { throw Ended() }
        })
    }
  }

  static func fill(_ store: any SyncStore, _ name: String, packets: Int) async throws -> Int64 {
    let space = try await store.createSpace(try #require(SpaceName(name)))
    var maker = PacketMaker(UInt64(space.id))
    for number in 0..<packets {
      let packet = maker.packet("a\(number % 5)", "b\(number)")
      _ = try await store.ingest([IncomingPacket(packet, byteCount: 9)], into: space.id, now: 1)
    }
    return space.id
  }

  @Test("a run prunes each space by its own retention, in slices, and reports it")
  func run() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    let day = try await Self.fill(store, "day", packets: 150)
    let ever = try await Self.fill(store, "ever", packets: 150)
    try await store.setRetention(Retention(milliseconds: 86_400_000), of: day)
    try await store.setRetention(.forever, of: ever)
    let harness = Harness()
    let pruner = harness.pruner(store)
    var debt = ReclaimDebt()
    #expect(try await pruner.pruneAll(&debt).rows == PrunedRows())
    harness.advance(.seconds(90_000))
    let run = try await pruner.pruneAll(&debt)
    // The device was last seen in 1970.
    var rows = PrunedRows(operations: 299)
    rows.devices = 1
    #expect(run.rows == rows)
    #expect(run.historyAge == 90_000_000)
    #expect(run.unreclaimed == 299)
    #expect(harness.pauses.withLock { $0.count } >= 3)
    #expect(try await store.spaces().map(\.retentionHorizon) == [300, 0])
    let page = MetricsPage(
      counts: harness.metrics.snapshot, listeners: 0, droppedLogLines: 0, version: "v",
      startedAt: 0
    ).text()
    #expect(page.contains("ferry_pruned_rows_total{kind=\"operation\"} 299\n"))
    #expect(page.contains("ferry_prune_runs_total 2\n"))
    #expect(page.contains("ferry_history_age_seconds 90000.0\n"))
    let line = try #require(harness.recorder.lines.last)
    #expect(line.contains("\"message\":\"pruned\""))
    #expect(line.contains("299 operations, 0 tombstones, 0 buffered packets"))
    await store.close()
  }

  @Test("the next run completes the work of a killed run")
  func killed() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    _ = try await Self.fill(store, "notes", packets: 150)
    let harness = Harness()
    let summary = try #require(try await store.spaces().first)
    let all = Retention(milliseconds: 0)
    await #expect(throws: Harness.Ended.self) {
      _ = try await harness.pruner(store, rows: 10, pauses: 3).prune(summary, keeping: all)
    }
    let rest = try await harness.pruner(store).prune(summary, keeping: all)
    #expect(rest.rows.operations == 299 - 40)
    await store.close()
  }

  @Test("a space that cannot be pruned is reported, and the others are pruned")
  func oneFails() async throws {
    let store = ServiceStoreDouble(spaces: ["first", "second"])
    let pruning = "prune(_:of:)"
    store.failNext(pruning, with: .busy("locked"))
    let harness = Harness()
    func run() async throws {
      var debt = ReclaimDebt()
      _ = try await harness.pruner(store).pruneAll(&debt)
    }
    await #expect(throws: StoreError.busy("locked")) { try await run() }
    #expect(store.calls(pruning) == 1, "the second space")
    #expect(harness.metrics.snapshot.pruneRuns == 1)
    store.failNext(pruning, with: .unavailable("away"))
    await #expect(throws: StoreError.unavailable("away")) { try await run() }
    #expect(store.calls(pruning) == 1, "the store is away for all spaces")
  }

  @Test("a failing store is logged, and the next run continues")
  func failing() async {
    let store = ServiceStoreDouble(spaces: ["notes"])
    store.fail(.unavailable("away"))
    let harness = Harness()
    await harness.pruner(store, pauses: 2).run()
    #expect(harness.recorder.lines.count { $0.contains("cannot be reached") } == 2)
    #expect(harness.pauses.withLock { $0 } == [Duration](repeating: .seconds(600), count: 3))
  }
}
