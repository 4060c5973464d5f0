import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Crashes", .hangLimit)
struct CrashTests {
  /// Transactions on two connections in turn, with checkpoints, a reader and a close.
  private func work(_ world: DiskWorld, _ ledger: Ledger) throws {
    let reader = try world.connect(mode: .readOnly)
    for _ in 0..<2 {
      let writer = try world.connect(synchronous: "NORMAL", checkpoint: 4)
      for _ in 0..<3 {
        try ledger.commit(on: writer)
        _ = try reader.integer("SELECT last FROM ledger")
      }
    }
  }

  @Test("a process killed at any step leaves every acknowledged transaction")
  func everyStep() throws {
    var step = 0
    while true {
      let world = DiskWorld(seed: UInt64(step))
      let ledger = Ledger(world.numbers)
      try ledger.commit(on: try world.connect())
      var crashes = 0
      world.disk.onCrash = { path in
        #expect(path.hasPrefix("/device/"))
        crashes += 1
      }
      world.plan(.crash, at: step)
      let error = failure { try work(world, ledger) }
      world.heal()
      if crashes == 0 {
        #expect(error == nil)
        break
      }
      let connection = try world.connect()
      let found = try #require(try ledger.find(on: connection, "step \(step)"))
      #expect(found >= ledger.acknowledged, "step \(step)")
      ledger.goOn(from: found)
      try ledger.commit(on: connection)
      step += 1
    }
    #expect(step > 100)
  }

  @Test("a dead connection fails in every way, and never writes again")
  func deadConnection() throws {
    let world = DiskWorld()
    let ledger = Ledger(world.numbers)
    let dead = try world.connect()
    for _ in 0..<5 { try ledger.commit(on: dead) }
    try dead.execute("BEGIN IMMEDIATE; DELETE FROM rows")
    world.disk.kill(under: world.path)
    let names = world.disk.fileNames(under: "/")
    let bytes = names.map { world.disk.bytes(of: $0) }
    #expect(failure { try dead.execute("COMMIT") }?.primaryCode == 10)
    dead.rollback()
    #expect(failure { try dead.execute("SELECT * FROM rows") }?.primaryCode == 10)
    #expect(failure { try dead.execute("INSERT INTO rows VALUES (99, 1, 1)") }?.primaryCode == 10)
    #expect(failure { try dead.execute("PRAGMA wal_checkpoint(TRUNCATE)") } != nil)
    #expect(names == world.disk.fileNames(under: "/"))
    #expect(bytes == names.map { world.disk.bytes(of: $0) })

    let alive = try world.connect()
    try ledger.commit(on: alive)
    #expect(try ledger.find(on: alive) == ledger.acknowledged)
  }

  @Test("closing a dead connection does not affect the live ones")
  func closingDead() throws {
    let world = DiskWorld()
    let ledger = Ledger(world.numbers)
    var dead: SQLiteConnection? = try world.connect()
    if let dead {
      try ledger.commit(on: dead)
      try dead.execute("BEGIN IMMEDIATE; DELETE FROM rows")
    }
    world.disk.kill(under: "/device/")
    let alive = try world.connect()
    try alive.execute("BEGIN IMMEDIATE")
    try alive.execute("DELETE FROM ledger")
    dead = nil
    #expect(failure { try world.connect().execute("BEGIN IMMEDIATE") }?.isBusy == true)
    try alive.execute("ROLLBACK")
    try ledger.commit(on: alive)
    #expect(try ledger.find(on: alive) == ledger.acknowledged)
  }

  @Test("a kill during a step fails that step, including the step of opening")
  func killWithinStep() throws {
    let world = DiskWorld()
    try world.connect().execute("CREATE TABLE t(a)")
    world.disk.faults = { [unowned disk = world.disk] _ in
      disk.kill(under: "/device")
      return nil
    }
    #expect(failure { _ = try world.connect(mode: .readWrite) }?.primaryCode == 14)
    world.heal()
    #expect(try world.connect().integer("SELECT count(*) FROM t") == 0)
  }
}
