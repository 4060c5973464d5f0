import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// Disk space of deleted rows is released, once, as soon as no other transaction is in the way.
@Suite(.hangLimit)
struct ReclaimingTests {
  @Test(
    "space is reclaimed after 10,000 deleted rows, or a tenth of a larger history",
    arguments: [
      (9_999, 0, false), (10_000, 0, true), (10_000, 100_000, true), (10_000, 100_010, false),
      (1_000_000, 10_000_000, true), (999_999, 10_000_000, false),
    ])
  func due(_ rows: Int, _ history: SequenceNumber, _ isDue: Bool) {
    var debt = ReclaimDebt()
    debt.add(PrunedRows(operations: rows - 10, tombstones: 4, notices: 3, buffered: 3))
    #expect(debt.rows == rows && debt.isDue(keeping: history) == isDue)
    debt.reset()
    #expect(debt == ReclaimDebt())
  }

  @Test("deletions of several runs add up until their space is reclaimed")
  func addsUp() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    let harness = PrunerTests.Harness()
    let pruner = harness.pruner(store, rows: 10_000)
    var debt = ReclaimDebt()
    var unreclaimed: [Int] = []
    for round in 0..<3 {
      let space = try await PrunerTests.fill(store, "space-\(round)", packets: 2_000)
      try await store.setRetention(Retention(milliseconds: 0), of: space)
      unreclaimed.append(try await pruner.pruneAll(&debt).unreclaimed)
    }
    // Of 4,000 operations of a space the newest stays.
    #expect(unreclaimed == [3_999, 7_998, 0])
    await store.close()
  }

  @Test("a table that a vacuum or a long read of PostgreSQL locks is reclaimed later")
  func held() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let holder = try PostgresConnection(url: url)
    try holder.execute("BEGIN")
    // As a vacuum locks it.
    try holder.execute("LOCK TABLE records IN SHARE UPDATE EXCLUSIVE MODE")
    #expect(try await store.reclaim() == .busy)
    let pruner = PrunerTests.Harness().pruner(store)
    #expect(try await !pruner.reclaim())
    try holder.execute("COMMIT")
    #expect(try await store.reclaim() == .done)
    #expect(try await pruner.reclaim())
    await store.close()
  }

  @Test("a server that finds another one reclaiming tries again later, with its own settings")
  func claimed() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    // With an address for maintenance, which has one connection.
    let store = try await PostgresStore(PostgresAddresses(url, direct: url), limits: .standard)
    let holder = try PostgresConnection(url: url)
    try holder.execute("SELECT pg_advisory_lock(\(PostgresReclaiming.key))")
    #expect(try await store.reclaim() == .busy)
    try holder.execute("SELECT pg_advisory_unlock(\(PostgresReclaiming.key))")
    #expect(try await store.reclaim() == .done)
    let limits = try await store.sessionPool.run { connection in
      try ["lock_timeout", "statement_timeout"].map { name in
        try connection.query(.once("SHOW \(name)"))[0].text(0)
      }
    }
    #expect(limits == ["10s", "30s"])
    await store.close()
  }
}
