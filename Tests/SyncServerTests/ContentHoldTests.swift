import FerryPostgres
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

@Suite("Locks of content among nodes", .hangLimit)
struct ContentHoldTests {
  private final class Events: Sendable {
    private let kept = Mutex([String]())

    var all: [String] { kept.withLock { $0 } }

    func note(_ event: String) { kept.withLock { $0.append(event) } }
  }

  /// Returns when a session waits for a lock.
  private func waiting(_ url: String) async throws {
    let look = PostgresStatement.once(
      """
      SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      """)
    let pool = try PostgresPool(url: url, connections: 1)
    try await eventually("a session to wait for the lock") {
      try await pool.run { try $0.query(look)[0].int8(0) } > 0
    }
    await pool.close()
  }

  @Test("a collector waits for the publishers of other nodes, and they wait for it")
  func nodes() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await PostgresStore(url: url), try await PostgresStore(url: url))
    let events = Events()
    var first = try await east.lockContent(isExclusive: false)
    // Publishers do not wait for each other.
    var second = try await west.lockContent(isExclusive: false)
    #expect(first != nil && second != nil)
    let (begun, hasBegun) = AsyncStream<Never>.makeStream()
    let (ended, end) = AsyncStream<Never>.makeStream()
    let collecting = Task {
      let hold = try await west.lockContent(isExclusive: true)
      events.note("collects")
      hasBegun.finish()
      for await _ in ended {}
      withExtendedLifetime(hold) {}
    }
    second = nil
    try await waiting(url)
    events.note("published")
    first = nil
    for await _ in begun {}
    let publishing = Task {
      _ = try await east.lockContent(isExclusive: false)
      events.note("publishes")
    }
    try await waiting(url)
    events.note("collected")
    end.finish()
    try await collecting.value
    try await publishing.value
    #expect(events.all == ["published", "collects", "collected", "publishes"])
    await east.close()
    await west.close()
  }
}
