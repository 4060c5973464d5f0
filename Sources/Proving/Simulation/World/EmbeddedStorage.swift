import FerryConformance
import FerryLaboratory
import FerryProtocol
import FerrySQLite
import FerrySyncServer
import Synchronization

/// The embedded store on the world's disk.
final class EmbeddedStorage: SimulatedStorage {
  static let directory = "/server"

  private let scheduler: Scheduler
  private let disk: SimulatedDisk
  private let limits: Limits
  private var random: SeededRandom
  /// The simulation's own look at the file.
  private var reader: SQLiteConnection?

  init(_ scheduler: Scheduler, disk: SimulatedDisk, limits: Limits, random: SeededRandom) {
    (self.scheduler, self.disk) = (scheduler, disk)
    (self.limits, self.random) = (limits, random)
  }

  func open(_ isAlive: @escaping () -> Bool) async throws -> any SyncStore {
    let (scheduler, seed) = (scheduler, random.next())
    let epochs = Drawer(SeededRandom(seed, "epochs"))
    let randoms = Drawer(SeededRandom(seed, "identifiers"))
    return try await SQLiteStore(
      directory: Self.directory, limits: limits, fileSystem: disk.fileSystem,
      makeExecutor: { name in
        Processor(scheduler, random: SeededRandom(seed, name), isAlive: isAlive)
      },
      makeEpoch: { Epoch(epochs.next()) }, makeRandom: { randoms.next() })
  }

  func kill() {
    reader = nil
    disk.kill(under: Self.directory + "/")
  }

  func losePower() {
    reader = nil
    disk.losePower(under: Self.directory + "/")
  }

  func evidence(of space: SpaceName) throws -> ServerEvidence {
    try ServerEvidence.read(try connection(), space: space)
  }

  func installPruning() throws { try PrunedHistory.install(in: try connection()) }

  func newest(in space: SpaceName) throws -> (head: SequenceNumber, anchor: Cursor.Anchor?) {
    try connection().first(
      """
      SELECT head, newest, history_hash FROM spaces
      WHERE id = (SELECT id FROM space_names WHERE name = ?)
      """, space.value
    ) { row in
      let (head, historyHash) = (row.int64(0), UInt64(bitPattern: row.int64(2)))
      return (
        head,
        UniqueID(bytes: row.blobBytes(1)).map {
          Cursor.Anchor(head: head, operation: OperationID($0), historyHash: historyHash)
        }
      )
    } ?? (0, nil)
  }

  func makeCopy(_ name: String) -> String? {
    disk.copyFiles(under: Self.directory + "/", to: "/" + name + "/")
    return "/" + name + "/"
  }

  func goBack(to copy: String) {
    kill()
    disk.removeFiles(under: Self.directory + "/")
    disk.copyFiles(under: copy, to: Self.directory + "/")
  }

  func forget(copy: String) { disk.removeFiles(under: copy) }

  func close() { reader = nil }

  /// Returns the simulation's own connection to the store's file.
  func connection() throws -> SQLiteConnection {
    let connection =
      try reader
      ?? SQLiteConnection(
        path: Self.directory + "/ferry.sqlite", mode: .readWrite, fileSystem: disk.fileSystem)
    reader = connection
    return connection
  }
}

/// Random numbers for closures with callers anywhere in the product.
final class Drawer: Sendable {
  private let random: Mutex<SeededRandom>
  init(_ random: SeededRandom) { self.random = Mutex(random) }
  func next() -> UInt64 { random.withLock { $0.next() } }
}
