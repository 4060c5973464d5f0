import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Loss of power", .hangLimit)
struct PowerLossTests {
  /// Runs transactions until the power fails, perhaps in the middle of a step, three times over.
  /// Returns how many acknowledged transactions were lost.
  private func run(
    seed: UInt64, synchronous: String, journal: String = "WAL", mayLose: Bool
  ) throws -> Int {
    let world = DiskWorld(seed: seed)
    let ledger = Ledger(world.numbers)
    var lost = 0
    for round in 0..<3 {
      let before = ledger.acknowledged
      runUntilDark(world, ledger, synchronous: synchronous, journal: journal)
      let comment: Comment = "seed \(seed), round \(round)"
      let connection = try world.connect(synchronous: synchronous, journal: journal)
      let found = try #require(try ledger.find(on: connection, comment), comment)
      #expect(found >= before, comment)
      #expect(found >= ledger.acknowledged || mayLose, comment)
      lost += max(0, ledger.acknowledged - found)
      ledger.goOn(from: found)
      try ledger.commit(on: connection)
    }
    return lost
  }

  private func runUntilDark(
    _ world: DiskWorld, _ ledger: Ledger, synchronous: String, journal: String
  ) {
    var isDark = false
    world.disk.onCrash = { [unowned disk = world.disk] _ in
      disk.losePower(under: "/device")
      isDark = true
    }
    world.plan(.crash, at: world.numbers.below(300))
    let checkpoint = 3 + world.numbers.below(40)
    // Errors here come from the crash; the file shows afterwards which data was kept. A commit may
    // succeed although the power failed in the checkpoint after it.
    _ = failure {
      for _ in 0..<2 where !isDark {
        let connection = try world.connect(
          synchronous: synchronous, journal: journal, checkpoint: checkpoint)
        for _ in 0..<1 + world.numbers.below(15) { try ledger.commit(on: connection) }
      }
    }
    world.heal()
    world.disk.losePower(under: "/device")
  }

  @Test(
    "a power loss leaves a prefix of the transactions if commits are not synced", arguments: 0..<5)
  func normal(part: UInt64) throws {
    var lost = 0
    for seed in part * 50..<part * 50 + 50 {
      lost += try run(seed: seed, synchronous: "NORMAL", mayLose: true)
    }
    #expect(lost > 0, "the disk loses nothing")
  }

  @Test(
    "a power loss leaves every acknowledged transaction if commits are synced", arguments: 0..<5)
  func full(part: UInt64) throws {
    for seed in part * 50..<part * 50 + 50 {
      _ = try run(seed: seed, synchronous: "FULL", mayLose: false)
    }
  }

  @Test(
    "after a power loss the journal can undo the torn pages", arguments: ["DELETE", "TRUNCATE"])
  func rollbackJournal(journal: String) throws {
    for seed: UInt64 in 0..<60 {
      _ = try run(seed: seed, synchronous: "EXTRA", journal: journal, mayLose: false)
    }
  }

  @Test("a power loss corrupts a database that is never synced")
  func unsynced() throws {
    var harmed = 0
    for seed: UInt64 in 0..<40 {
      let world = DiskWorld(seed: seed)
      let ledger = Ledger(world.numbers)
      do {
        let connection = try world.connect(synchronous: "OFF", journal: "OFF")
        for _ in 0..<20 { try ledger.commit(on: connection) }
      }
      world.disk.losePower(under: "/device")
      let isSound = failure {
        let connection = try world.connect(synchronous: "OFF", journal: "OFF")
        if try connection.text("PRAGMA integrity_check") != "ok" {
          throw SQLiteError(code: 11, message: "corrupt")
        }
      }
      harmed += isSound == nil ? 0 : 1
    }
    #expect(harmed > 5)
  }

  @Test("a power loss affects only the files below the path, and no other machine")
  func otherMachines() throws {
    let world = DiskWorld()
    let mine = try world.connect("/device-1/a.db", synchronous: "OFF")
    let other = try world.connect("/device-10/a.db", synchronous: "OFF")
    for connection in [mine, other] { try connection.execute("CREATE TABLE t(a)") }
    world.disk.losePower(under: "/device-1")
    #expect(failure { try mine.execute("INSERT INTO t VALUES (1)") }?.primaryCode == 10)
    try other.execute("INSERT INTO t VALUES (1)")
    #expect(try other.integer("SELECT count(*) FROM t") == 1)
  }
}
