import FerryTestSupport
import Glibc
import Testing

@testable import FerrySQLite

@Suite("SQLite's errors", .hangLimit)
struct FailureTests {
  @Test(
    "constraints are distinguished",
    arguments: [
      ("INSERT INTO t(id) VALUES (1)", 1555), ("INSERT INTO t(u) VALUES (7)", 2067),
      ("INSERT INTO t(n) VALUES (NULL)", 1299), ("INSERT INTO t(c) VALUES (-1)", 275),
      ("INSERT INTO t(p) VALUES (99)", 787), ("INSERT INTO s VALUES ('x')", 3091),
    ])
  func constraints(sql: String, code: Int32) throws {
    let connection = try SQLiteConnection.inMemory()
    try connection.execute(
      """
      PRAGMA foreign_keys=ON;
      CREATE TABLE t(id INTEGER PRIMARY KEY DESC, u UNIQUE, n NOT NULL DEFAULT 0,
        c CHECK (c >= 0), p REFERENCES t(id));
      CREATE TABLE s(i INTEGER) STRICT;
      INSERT INTO t(id, u) VALUES (1, 7);
      """)
    let error = try #require(failure { try connection.execute(sql) })
    #expect(error.isConstraint)
    #expect(error.code == code)
    #expect(error.primaryCode == 19)
    #expect(error.isForeignKey == (code == 787))
    #expect(error.sql == sql)
    #expect(!error.isBusy && !error.isDiskFull && !error.isNotADatabase)
  }

  @Test("a full or read-only disk is reported as such; other errors keep SQLite's reason")
  func diskFaults() {
    for (fault, code, word) in [(ENOSPC, 13, "space"), (EROFS, 8, "Read-only")] {
      let error = SQLiteError(diskFault: fault, path: "a.db")
      #expect(error?.primaryCode == Int32(code) && error?.concernsDisk == true)
      #expect(error?.message.contains("a.db: ") == true && error?.message.contains(word) == true)
    }
    #expect(SQLiteError(diskFault: EACCES, path: "a.db") == nil)
    #expect(SQLiteError(diskFault: 0, path: "a.db") == nil)
  }

  @Test("a file that is not a database is reported at its first use")
  func notADatabase() throws {
    let file = try DatabaseFile()
    try file.write(Array(repeating: 0x41, count: 4_096))
    let connection = try file.open()
    let error = try #require(
      failure { _ = try connection.integer("SELECT count(*) FROM sqlite_schema") })
    #expect(error.isNotADatabase)
    #expect(error.description.contains("not a database"))
  }

  @Test("a read-only connection reads, never writes, and creates no file")
  func readOnly() throws {
    let file = try DatabaseFile()
    #expect(failure { _ = try file.open(.readOnly) }?.primaryCode == 14)
    #expect(failure { _ = try file.open(.readWrite) }?.message.contains(file.path) == true)
    try file.open().execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    let reader = try file.open(.readOnly)
    #expect(try reader.integer("SELECT a FROM t") == 1)
    #expect(failure { try reader.execute("DELETE FROM t") }?.primaryCode == 8)
    #expect(try file.open(.readWrite).integer("SELECT count(*) FROM t") == 1)
  }

  @Test("a database that must not grow is full, and its content stays")
  func full() throws {
    let connection = try SQLiteConnection.inMemory()
    try connection.execute(
      "PRAGMA page_size=512; CREATE TABLE t(a); INSERT INTO t VALUES (1); PRAGMA max_page_count=4")
    let error = failure { try connection.execute("INSERT INTO t VALUES (zeroblob(100000))") }
    #expect(error?.isDiskFull == true)
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test("a fault in SQL is reported with its statement")
  func syntax() throws {
    let connection = try SQLiteConnection.inMemory()
    let error = try #require(failure { _ = try connection.statement("SELECT * FROM nowhere") })
    #expect(error.message == "no such table: nowhere")
    #expect(error.sql == "SELECT * FROM nowhere")
    #expect(error.code == 1)
  }
}
