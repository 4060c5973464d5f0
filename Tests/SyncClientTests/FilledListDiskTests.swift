import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Lists that are filled in beside their tables, on a disk that fails", .hangLimit)
struct FilledListDiskTests {
  /// How a process ends in the middle of a step.
  enum End: CaseIterable {
    /// The power fails: unsynced writes may be lost or torn.
    case powerCut
    /// The process is killed: its writes stay.
    case kill
  }

  /// How long a disk is full.
  enum Shortage: CaseIterable {
    case oneWrite
    case untilHealed
  }

  @Test(
    "a cut before, within or after the exchange leaves the old tables or the new ones, and the next sync ends the list",
    arguments: End.allCases)
  func cut(_ end: End) throws {
    let device = try FilledDevice(end == .powerCut ? 1 : 2)
    var (old, new, filling) = (0, 0, 0)
    for step in 0... {
      var file = try device.begin()
      if end == .powerCut {
        device.disk.onCrash = { [unowned disk = device.disk] _ in
          disk.losePower(under: FilledDevice.folder)
        }
      }
      let wasCut = device.plan(.crash, at: step)
      do {
        _ = try device.applyList(file)
      } catch {
        #expect(wasCut(), "step \(step): \(error)")
      }
      device.heal()
      if end == .powerCut { device.disk.losePower(under: FilledDevice.folder) }
      file = try device.open()
      let hadCopies = try file.firstList.shadows.isAny()
      let isNew = try device.checkState(of: file)
      if isNew { new += 1 } else { old += 1 }
      if hadCopies { filling += 1 }
      #expect(!(isNew && hadCopies), "step \(step)")
      try device.complete(file, isNew: isNew)
      if !wasCut() { break }
    }
    #expect(old > 0 && new > 0 && filling > 0)
  }

  @Test(
    "a full disk at any write is an error that changes nothing, and the next sync with room ends the list",
    arguments: Shortage.allCases)
  func full(_ shortage: Shortage) throws {
    let device = try FilledDevice(3)
    var failures = 0
    for step in 0... {
      let file = try device.begin()
      let wasFull = device.plan(.diskFull, at: step, isForGood: shortage == .untilHealed)
      do {
        _ = try device.applyList(file)
      } catch let error as SQLiteError {
        #expect(error.isDiskFull, "step \(step): \(error)")
        failures += 1
        if shortage == .oneWrite { #expect(try !file.firstList.shadows.isAny(), "step \(step)") }
        #expect(try !device.checkState(of: file), "step \(step)")
      }
      device.heal()
      let isNew = try device.checkState(of: file)
      try device.complete(file, isNew: isNew)
      if !wasFull() { break }
    }
    #expect(failures > 0)
  }

  @Test(
    "work that is cancelled at any instruction leaves the old tables, and a schema that another process changes next is read"
  )
  func cancelled() throws {
    struct Stop: Error {}
    let device = try FilledDevice(4)
    for look in 0... {
      let file = try device.begin()
      var looks = 0
      var wasStopped = false
      do {
        _ = try file.connection.interrupting(when: {
          looks += 1
          if looks <= look { return nil }
          wasStopped = true
          return Stop()
        }) { try device.applyList(file) }
      } catch is Stop {}
      let isNew = try device.checkState(of: file)
      let other = try device.open()
      _ = try other.write { try $0.execute("CREATE INDEX by_title ON task(title)") }
      try device.complete(file, isNew: isNew)
      if !wasStopped { break }
    }
  }
}

/// A device with two related tables and the pages of a first list, all of them staged but the last one.
private final class FilledDevice {
  static let folder = "/device"
  private static let prepared = "/prepared"
  private static let now: Int64 = 1_800_000_000_000

  let disk: SimulatedDisk
  private let maker = PageMaker()
  private let numbers: DrawnNumbers

  init(_ seed: UInt64) throws {
    let numbers = DrawnNumbers(seed)
    self.numbers = numbers
    disk = SimulatedDisk(name: "filled", clock: { Self.now }, random: { numbers.next() })
    let file = try open(in: Self.prepared)
    _ = try file.write {
      try $0.execute("CREATE TABLE list(id TEXT PRIMARY KEY, up TEXT REFERENCES list(id))")
      try $0.execute(
        """
        CREATE TABLE task(id TEXT PRIMARY KEY, list TEXT REFERENCES list(id) ON DELETE CASCADE,
          title TEXT UNIQUE)
        """)
      try $0.execute("CREATE INDEX by_list ON task(list, title DESC)")
    }
    try file.track(["list", "task"])
    for start in [0, 4] {
      let page = maker.page(Array(changes[start..<start + 4]), head: 12, more: true)
      try file.incoming.stage(page.body, page.head, changes: 4)
    }
    try file.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// Children come before their parents.
  private var changes: [Change] {
    (0..<8).map {
      maker.change(
        SequenceNumber($0 + 1), "task", Name("t\($0)"),
        [
          Column("list", .text("l\($0 % 4)")),
          Column("title", .text(String(repeating: "\($0)", count: 900))),
        ])
    }
      + (0..<4).map {
        maker.change(SequenceNumber($0 + 9), "list", Name("l\($0)"), [Column("up", "l0")])
      }
  }

  // MARK: Files

  func open(in folder: String = folder) throws -> ReplicaFile {
    let file = try ReplicaFile(
      path: "\(folder)/replica.db", wallClock: { Self.now }, random: numbers.next,
      fileSystem: disk.fileSystem, busyTimeout: .zero)
    file.fillInSlices()
    // Checkpoints come within the fill and the exchange, too.
    try file.connection.execute("PRAGMA wal_autocheckpoint=12")
    return file
  }

  /// Opens a copy of the prepared device.
  func begin() throws -> ReplicaFile {
    disk.copyFiles(under: Self.prepared, to: Self.folder)
    return try open()
  }

  func applyList(_ file: ReplicaFile) throws -> AppliedPull {
    let last = maker.page(Array(changes[8...]), head: 12)
    return try file.pullList(last.body, last.head)
  }

  // MARK: Faults

  /// Plans a fault at the step with a number, of those that change files. Returns whether it has come.
  ///
  /// - Parameter isForGood: whether all later steps have it, too.
  func plan(
    _ fault: SimulatedDisk.Fault, at step: Int, isForGood: Bool = false
  ) -> () -> Bool {
    var steps = 0
    disk.faults = { now in
      if now.operation == .read || now.operation == .open { return nil }
      steps += 1
      return steps == step + 1 || (isForGood && steps > step) ? fault : nil
    }
    return { steps > step }
  }

  func heal() {
    disk.faults = { _ in nil }
    disk.onCrash = { _ in }
  }

  // MARK: Checks

  /// Expects the state before the list or the one after it. Returns whether it is the one after it.
  func checkState(of file: ReplicaFile) throws -> Bool {
    let counts = try ["list", "task", "ferry_staged"].map {
      try file.connection.count("SELECT count(*) FROM \($0)")
    }
    let isNew = try file.syncState().applied != 0
    #expect(counts == (isNew ? [4, 8, 0] : [0, 0, 2]))
    try checkIntegrity(of: file)
    return isNew
  }

  private func checkIntegrity(of file: ReplicaFile) throws {
    let found = try file.connection.rows("PRAGMA integrity_check") { $0.text(0) }
    #expect(found == ["ok"])
  }

  /// Runs the next sync, and expects all of the list, no copies, and triggers that record.
  func complete(_ file: ReplicaFile, isNew: Bool) throws {
    if isNew {
      let empty = maker.page([], head: 12)
      _ = try file.pullList(empty.body, empty.head)
    } else {
      #expect(try applyList(file) == AppliedPull(applied: 12, refused: 0))
    }
    #expect(try checkState(of: file))
    #expect(try !file.firstList.shadows.isAny())
    #expect(try !file.connection.prepare("PRAGMA foreign_key_check").exists())
    _ = try file.write {
      try $0.execute(
        "UPDATE task SET list = 'l1' WHERE id = 't0'; DELETE FROM list WHERE id = 'l2'")
    }
    #expect(try file.queue.oldest(9).count == 4)
    try checkIntegrity(of: file)
  }
}

/// SplitMix64: the same numbers for the same seed.
private final class DrawnNumbers {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
