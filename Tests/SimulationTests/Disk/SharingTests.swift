import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Connections that share a file", .hangLimit)
struct SharingTests {
  let world = DiskWorld()

  @Test("connections see each other's commits")
  func commits() throws {
    let first = try world.connect()
    let second = try world.connect()
    let reader = try world.connect(mode: .readOnly)
    try first.execute("CREATE TABLE t(a)")
    for number in 1...20 {
      let writer = number.isMultiple(of: 2) ? first : second
      try writer.execute("INSERT INTO t VALUES (\(number))")
      for connection in [first, second, reader] {
        #expect(try connection.integer("SELECT count(*) FROM t") == number)
      }
    }
  }

  @Test("a reader keeps its snapshot while others write and checkpoint")
  func snapshot() throws {
    let writer = try world.connect(checkpoint: 2)
    let reader = try world.connect(mode: .readOnly)
    try writer.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    try reader.execute("BEGIN")
    #expect(try reader.integer("SELECT count(*) FROM t") == 1)
    for number in 2...50 { try writer.execute("INSERT INTO t VALUES (\(number))") }
    #expect(try reader.integer("SELECT count(*) FROM t") == 1)
    try reader.execute("COMMIT")
    #expect(try reader.integer("SELECT count(*) FROM t") == 50)
  }

  @Test(
    "a second writer is refused at once while the first one is busy", arguments: ["WAL", "DELETE"])
  func busy(journal: String) throws {
    let first = try world.connect(journal: journal)
    try first.execute("CREATE TABLE t(a); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    let second = try world.connect("/device/replica.db", mode: .readWrite, journal: journal)
    #expect(failure { try second.execute("BEGIN IMMEDIATE") }?.isBusy == true)
    #expect(try second.integer("SELECT count(*) FROM t") == 0)
    try first.execute("COMMIT")
    try second.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (2); COMMIT")
    #expect(try first.integer("SELECT count(*) FROM t") == 2)
  }

  @Test("a commit without a write-ahead log waits for readers")
  func readersInTheWay() throws {
    let writer = try world.connect(journal: "DELETE")
    try writer.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    let reader = try world.connect(mode: .readOnly)
    try reader.execute("BEGIN")
    #expect(try reader.integer("SELECT count(*) FROM t") == 1)
    try writer.execute("BEGIN; INSERT INTO t VALUES (2)")
    #expect(failure { try writer.execute("COMMIT") }?.isBusy == true)
    let late = try world.connect(mode: .readOnly)
    #expect(failure { _ = try late.integer("SELECT count(*) FROM t") }?.isBusy == true)
    try reader.execute("COMMIT")
    try writer.execute("COMMIT")
    #expect(try late.integer("SELECT count(*) FROM t") == 2)
  }

  @Test("a kill frees the locks of the dead process, open readers and writers included")
  func killFreesLocks() throws {
    let writer = try world.connect()
    let reader = try world.connect(mode: .readOnly)
    try writer.execute("CREATE TABLE t(a)")
    try reader.execute("BEGIN; SELECT * FROM t")
    try writer.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    world.disk.kill(under: "/device")
    let next = try world.connect()
    #expect(try next.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
    try next.execute("BEGIN EXCLUSIVE; INSERT INTO t VALUES (2); COMMIT")
    #expect(try next.integer("SELECT sum(a) FROM t") == 2)
  }

  @Test("the last connection to close leaves one file, without its log")
  func lastClose() throws {
    var connections = [try world.connect(), try world.connect()]
    try connections[0].execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    connections.removeFirst()
    #expect(world.disk.fileNames(under: "/") == [world.path, world.path + "-wal"])
    connections.removeFirst()
    #expect(world.disk.fileNames(under: "/") == [world.path])
    #expect(try world.connect().integer("SELECT count(*) FROM t") == 1)
  }
}
