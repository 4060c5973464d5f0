import FerryLaboratory
import FerrySQLite

/// SplitMix64: the same numbers for the same seed.
final class SeededNumbers {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// A disk with a clock, randomness and one database on it.
final class DiskWorld {
  let disk: SimulatedDisk
  /// Of the workload; the disk draws separate numbers.
  let numbers: SeededNumbers
  let path = "/device/replica.db"
  private(set) var stepCount = 0

  /// 2026-01-01T00:00:00Z, in milliseconds since 1970.
  static let start: Int64 = 1_767_225_600_000

  init(seed: UInt64 = 1, name: String = "world") {
    let diskNumbers = SeededNumbers(seed &+ 1000)
    numbers = SeededNumbers(seed)
    disk = SimulatedDisk(name: name, clock: { Self.start }, random: { diskNumbers.next() })
  }

  func connect(
    _ path: String? = nil, mode: SQLiteConnection.Mode = .create, synchronous: String = "FULL",
    journal: String = "WAL", checkpoint: Int = 1000
  ) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(
      path: path ?? self.path, mode: mode, fileSystem: disk.fileSystem)
    if mode != .readOnly {
      try connection.execute(
        """
        PRAGMA synchronous=\(synchronous); PRAGMA temp_store=FILE;
        PRAGMA wal_autocheckpoint=\(checkpoint); PRAGMA journal_mode=\(journal);
        """)
    }
    return connection
  }

  /// Plans `fault` for the step with this number only, counted from 0 from now on.
  func plan(_ fault: SimulatedDisk.Fault, at step: Int) {
    stepCount = 0
    disk.faults = { [unowned self] _ in
      stepCount += 1
      return stepCount == step + 1 ? fault : nil
    }
  }

  /// Ends all faults.
  func heal() {
    disk.faults = { _ in nil }
    disk.onCrash = { _ in }
  }
}

extension SQLiteConnection {
  func integer(_ sql: String) throws -> Int? {
    try prepare(sql).first { Int($0.int64(0)) }
  }

  func text(_ sql: String) throws -> String? { try prepare(sql).first { $0.text(0) } }
}

/// Returns the error thrown by `body`; `nil` without any.
func failure(_ body: () throws -> Void) -> SQLiteError? {
  do {
    try body()
    return nil
  } catch {
    return error as? SQLiteError
  }
}
