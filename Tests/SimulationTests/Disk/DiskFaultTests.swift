import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Disk faults", .hangLimit)
struct DiskFaultTests {
  @Test(
    "a fault at any step fails that statement, and the work continues",
    arguments: [SimulatedDisk.Fault.diskFull, .syncFailure, .ioFailure], ["NORMAL", "FULL"])
  func everyStep(fault: SimulatedDisk.Fault, synchronous: String) throws {
    var (step, failures) = (0, 0)
    var isReached = true
    while isReached {
      let world = DiskWorld(seed: UInt64(step))
      let ledger = Ledger(world.numbers)
      try ledger.commit(on: try world.connect())
      world.plan(fault, at: step)
      for _ in 0..<2 {
        guard let connection = try? world.connect(synchronous: synchronous, checkpoint: 4) else {
          failures += 1
          continue
        }
        for _ in 0..<3 where failure({ try ledger.commit(on: connection) }) != nil {
          failures += 1
          #expect(try ledger.find(on: connection, "step \(step)") == ledger.acknowledged)
        }
      }
      isReached = world.stepCount > step
      world.heal()
      try finish(world, ledger, "\(fault) at step \(step)")
      step += 1
    }
    #expect(step > 60 && failures > 0)
  }

  /// Checks that everything is there after one more transaction, also for a process with a new
  /// connection.
  private func finish(_ world: DiskWorld, _ ledger: Ledger, _ comment: Comment) throws {
    do {
      let connection = try world.connect()
      #expect(try ledger.find(on: connection, comment) == ledger.acknowledged, comment)
      try ledger.commit(on: connection)
    }
    world.disk.kill(under: "/")
    let anew = try world.connect()
    #expect(try ledger.find(on: anew, comment) == ledger.acknowledged, comment)
  }

  @Test("a full disk is reported as such, and nothing is written")
  func diskFull() throws {
    let world = DiskWorld()
    let connection = try world.connect()
    try connection.execute("CREATE TABLE t(a)")
    let before = world.disk.bytes(of: world.path + "-wal")
    world.disk.faults = { $0.operation == .write ? .diskFull : nil }
    #expect(failure { try connection.execute("INSERT INTO t VALUES (1)") }?.isDiskFull == true)
    #expect(world.disk.bytes(of: world.path + "-wal") == before)
    world.heal()
    try connection.execute("INSERT INTO t VALUES (1)")
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test("a failed sync is reported as such, and the data to be synced may be lost")
  func syncFailure() throws {
    var survived: Set<Int> = []
    for seed: UInt64 in 0..<30 {
      let world = DiskWorld(seed: seed)
      let connection = try world.connect()
      try connection.execute("CREATE TABLE t(a)")
      world.disk.faults = { $0.operation == .sync ? .syncFailure : nil }
      let error = failure { try connection.execute("INSERT INTO t VALUES (1)") }
      #expect(error?.code == 1034)
      world.heal()
      world.disk.losePower(under: "/device")
      survived.insert(try world.connect().integer("SELECT count(*) FROM t") ?? -1)
    }
    #expect(survived == [0, 1])
  }

  @Test("a commit that failed at its sync returns when the process is killed right after")
  func resurrection() throws {
    let world = DiskWorld()
    let connection = try world.connect()
    try connection.execute("CREATE TABLE t(a)")
    world.disk.faults = { $0.operation == .sync ? .syncFailure : nil }
    #expect(failure { try connection.execute("INSERT INTO t VALUES (1)") } != nil)
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    world.heal()
    world.disk.kill(under: "/device")
    // SQLite's own way with a real disk too: the log holds the whole transaction.
    #expect(try world.connect().integer("SELECT count(*) FROM t") == 1)
  }

  @Test("each step reports its file and size, and only those of named files are reported")
  func steps() throws {
    let world = DiskWorld()
    var steps: [SimulatedDisk.Step] = []
    world.disk.faults = {
      steps.append($0)
      return nil
    }
    let connection = try world.connect(synchronous: "FULL")
    try connection.execute(
      """
      CREATE TABLE t(a); CREATE TEMP TABLE u(a);
      INSERT INTO u SELECT value FROM (WITH RECURSIVE n(value) AS
        (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 100000) SELECT value FROM n);
      PRAGMA wal_checkpoint(TRUNCATE);
      """)
    for operation in SimulatedDisk.SyncOperation.allCases {
      #expect(steps.contains { $0.operation == operation }, "\(operation)")
    }
    #expect(steps.allSatisfy { $0.path.hasPrefix(world.path) })
    #expect(steps.contains { $0.operation == .write && $0.byteCount == 4096 })
  }
}
