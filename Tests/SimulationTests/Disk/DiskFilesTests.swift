import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Files of a simulated disk", .hangLimit)
struct DiskFilesTests {
  let world = DiskWorld()

  @Test("a copy of files in use is equal byte for byte, and opens separately")
  func copy() throws {
    let ledger = Ledger(world.numbers)
    let connection = try world.connect(checkpoint: 10)
    for _ in 0..<20 { try ledger.commit(on: connection) }
    try world.connect("/clone/old.db").execute("CREATE TABLE old(a)")
    world.disk.copyFiles(under: "/device/", to: "/clone")
    let names = world.disk.fileNames(under: "/clone")
    #expect(names == ["/clone/replica.db", "/clone/replica.db-wal"])
    for name in names {
      let original = "/device" + name.dropFirst("/clone".count)
      #expect(world.disk.bytes(of: name) == world.disk.bytes(of: original))
    }
    world.disk.losePower(under: "/clone")
    let clone = try world.connect("/clone/replica.db")
    #expect(try ledger.find(on: clone) == ledger.acknowledged)
    try clone.execute("DELETE FROM rows")
    #expect(try ledger.find(on: connection) == ledger.acknowledged)
  }

  @Test("a copy of a database contains the files that belong to it, and no others")
  func copyOfOne() throws {
    let connection = try world.connect()
    try connection.execute("CREATE TABLE t(a)")
    try world.connect(world.path + "2").execute("CREATE TABLE t(a)")
    world.disk.copyFiles(under: world.path, to: "/backup/b.db")
    #expect(world.disk.fileNames(under: "/backup") == ["/backup/b.db", "/backup/b.db-wal"])
  }

  @Test("removed files are gone permanently, even if a process had them open")
  func remove() throws {
    let connection = try world.connect()
    try connection.execute("CREATE TABLE t(a)")
    world.disk.removeFiles(under: "/device")
    #expect(world.disk.fileNames(under: "/") == [])
    #expect(world.disk.bytes(of: world.path) == nil)
    #expect(failure { try connection.execute("INSERT INTO t VALUES (1)") } != nil)
    world.disk.losePower(under: "/")
    #expect(failure { _ = try world.connect(mode: .readWrite) }?.primaryCode == 14)
    #expect(try world.connect().integer("SELECT count(*) FROM sqlite_schema") == 0)
  }

  @Test("a relative path begins at the root")
  func relativePath() throws {
    try world.connect("a.db").execute("CREATE TABLE t(a)")
    #expect(world.disk.fileNames(under: "a.db") == ["/a.db"])
    #expect(try world.connect("/a.db").integer("SELECT count(*) FROM t") == 0)
  }

  @Test("temporary files leave no trace")
  func temporary() throws {
    let connection = try world.connect()
    try connection.execute("PRAGMA cache_size=10; CREATE TEMP TABLE t(a)")
    for _ in 0..<100 { try connection.execute("INSERT INTO t VALUES (zeroblob(4000))") }
    #expect(try connection.integer("SELECT sum(length(a)) FROM t") == 400_000)
    #expect(world.disk.fileNames(under: "/").allSatisfy { $0.hasPrefix(world.path) })
  }

  @Test("SQL's date functions read the disk's clock")
  func clock() throws {
    let connection = try world.connect()
    #expect(try connection.text("SELECT datetime('now')") == "2026-01-01 00:00:00")
  }

  @Test("a large unsynced file is partly written back, and stays sound")
  func writeBack() throws {
    let ledger = Ledger(world.numbers)
    let connection = try world.connect(synchronous: "NORMAL", checkpoint: 1_000_000)
    try ledger.commit(on: connection)
    try connection.execute("CREATE TABLE bulk(a)")
    for _ in 0..<10 { try connection.execute("INSERT INTO bulk VALUES (zeroblob(3000000))") }
    world.disk.losePower(under: "/")
    let found = try world.connect()
    #expect(try found.text("PRAGMA integrity_check") == "ok")
    #expect(try found.integer("SELECT count(*) FROM bulk") ?? 0 >= 4)
  }
}
