import FerryConformance
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation

@testable import FerrySyncClient

/// A replica's file, worked on by the product's own steps, one at a time.
final class DirectDevice {
  let name: String
  let directory: TemporaryDirectory
  let limits: Limits
  private(set) var file: ReplicaFile
  /// As any reader opens the file: without Ferry's functions.
  private(set) var reader: SQLiteConnection
  let clock: DirectClock
  var level = 0
  /// Reported as committed, not yet as confirmed.
  var committed: [OperationID] = []

  var path: String { directory.file("replica.db").path }

  init(
    _ name: String, limits: Limits, clock: DirectClock, copyOf original: DirectDevice? = nil
  ) throws {
    self.name = name
    self.limits = limits
    self.clock = clock
    directory = try TemporaryDirectory()
    if let original { try original.copyFiles(to: directory) }
    (file, reader) = try Self.open(directory, limits, clock)
    guard original == nil else { return }
    try file.write { database in
      for statement in Workload.schema { try database.execute(statement) }
    }
    try file.track(Workload.tables)
  }

  private static func open(
    _ directory: TemporaryDirectory, _ limits: Limits, _ clock: DirectClock
  ) throws -> (ReplicaFile, SQLiteConnection) {
    let path = directory.file("replica.db").path
    let file = try ReplicaFile(
      path: path, limits: limits, wallClock: { clock.now }, random: { clock.random() })
    return (file, try SQLiteConnection(path: path, mode: .readOnly))
  }

  /// Opens the file again, or an earlier copy of it.
  func reopen(from backup: TemporaryDirectory? = nil) throws {
    if let backup {
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: path + suffix)
      }
      try Self.copyFiles(backup, directory)
    }
    (file, reader) = try Self.open(directory, limits, clock)
  }

  func copyFiles(to other: TemporaryDirectory) throws { try Self.copyFiles(directory, other) }

  private static func copyFiles(_ from: TemporaryDirectory, _ to: TemporaryDirectory) throws {
    for suffix in ["", "-wal"] {
      let name = "replica.db" + suffix
      guard FileManager.default.fileExists(atPath: from.file(name).path) else { continue }
      try FileManager.default.copyItem(at: from.file(name), to: to.file(name))
    }
  }

  // MARK: Work

  /// Runs one action as one transaction. Returns the recorded operations.
  func perform(_ planned: PlannedAction, sizes: Workload.Sizes) throws -> [LocalOperation] {
    try file.write { database in
      let before = try RecordedOperations.lastSequence(file.connection)
      let statements = try Workload.statements(
        for: planned, deviceName: name, level: level, sizes: sizes
      ) { try database.query($0).map(\.values) }
      for statement in statements { try database.execute(statement) }
      if let batch = Workload.batch(for: planned) {
        try database.batch(batch.table, where: batch.predicate, set: batch.columns)
      }
      return try RecordedOperations.read(file.connection, after: before)
    }
  }

  /// The upgrades with new columns. After the other upgrades, only a sync with a separate server
  /// compares tables.
  static let upgrades = Workload.upgrades.filter { $0.contains("ADD COLUMN") }

  /// Upgrades to the next version of the schema.
  func upgrade() throws {
    guard level < Self.upgrades.count else { return }
    try file.write { _ = try $0.execute(Self.upgrades[level]) }
    try file.connection.execute("UPDATE ferry_tables SET since = NULL")
    level += 1
  }

  func evidence() throws -> ReplicaEvidence { try ReplicaEvidence.read(reader) }
}

/// A wall clock moved by a test, and numbers from a seed.
final class DirectClock {
  var now: Int64 = 1_800_000_000_000
  private var numbers: SeededRandom

  init(seed: UInt64) { numbers = SeededRandom(seed, "identifiers") }

  func random() -> UInt64 { numbers.next() }
}
