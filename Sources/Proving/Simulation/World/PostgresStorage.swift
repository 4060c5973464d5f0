import FerryConformance
import FerryPostgres
import FerryProtocol
import FerrySyncServer

/// A separate database on a real PostgreSQL. Virtual time stops while it works, so the run is as
/// repeatable as with the embedded store.
final class PostgresStorage: SimulatedStorage {
  private let scheduler: Scheduler
  private let url: String
  private let limits: Limits
  private let epochs: Drawer
  private let randoms: Drawer
  private var stores: [PostgresStore] = []

  init(_ scheduler: Scheduler, url: String, limits: Limits, random: SeededRandom) {
    (self.scheduler, self.url, self.limits) = (scheduler, url, limits)
    epochs = Drawer(random)
    var seeds = random
    randoms = Drawer(SeededRandom(seeds.next(), "identifiers"))
  }

  func open(_ isAlive: @escaping () -> Bool) async throws -> any SyncStore {
    let (url, limits, epochs, randoms) = (url, limits, epochs, randoms)
    let store = try await scheduler.standStill { () async throws(StoreError) in
      try await PostgresStore(
        PostgresAddresses(url), limits: limits, makeEpoch: { Epoch(epochs.next()) },
        makeRandom: { randoms.next() })
    }
    stores.append(store)
    return StandStillStore(scheduler, store)
  }

  /// Does nothing: a server's process that dies between two transactions leaves nothing behind. It
  /// cannot die within one here, since virtual time stops then. ferry-chaos kills it there.
  func kill() {}

  /// Does nothing: PostgreSQL keeps all commits.
  func losePower() {}

  func makeCopy(_ name: String) -> String? { nil }

  func goBack(to copy: String) {}

  func forget(copy: String) {}

  func evidence(of space: SpaceName) throws -> ServerEvidence {
    try ServerEvidence.read(try PostgresConnection(url: url), space: space)
  }

  func installPruning() throws { try PrunedHistory.install(in: try PostgresConnection(url: url)) }

  func newest(in space: SpaceName) throws -> (head: SequenceNumber, anchor: Cursor.Anchor?) {
    let rows = try PostgresConnection(url: url).query(
      .once(
        """
        SELECT head, newest, history_hash FROM spaces
        WHERE id = (SELECT id FROM space_names WHERE name = $1)
        """), [.text(space.value)])
    guard let row = rows.first else { return (0, nil) }
    let (head, historyHash) = (try row.int8(0), UInt64(bitPattern: try row.int8(2)))
    guard !row.isNull(1), let id = try row.uuidBytes(1).withUnsafeBytes({ UniqueID(bytes: $0) })
    else { return (head, nil) }
    return (head, Cursor.Anchor(head: head, operation: OperationID(id), historyHash: historyHash))
  }

  func close() {
    let (scheduler, stores) = (scheduler, stores)
    scheduler.task {
      for store in stores { await scheduler.standStill { await store.close() } }
    }
    _ = scheduler.run(limit: 100_000) { false }
  }
}
