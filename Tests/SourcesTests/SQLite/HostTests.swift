import CFerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySQLite

@Suite("An extension of another program", .hangLimit)
struct HostTests {
  @Test("a host with this copy of SQLite is told from one with another copy")
  func copies() {
    var routines = sqlite3_api_routines()
    routines.prepare_v2 = sqlite3_prepare_v2
    routines.step = sqlite3_step
    withUnsafePointer(to: &routines) { #expect(SQLiteHost(routines: $0).isShared) }
    routines.step = { _ in SQLITE_MISUSE }
    withUnsafePointer(to: &routines) { #expect(!SQLiteHost(routines: $0).isShared) }
  }

  @Test(
    "a statement's first word is read by bytes, as SQLite does",
    arguments: [
      "DROP TABLE t", " ;\u{FEFF}\n drop TABLE t", "-- a line\r\nDROP TABLE t",
      "--\u{301} a mark\nDROP TABLE t", "/* a mark *\u{301}/ */DROP TABLE t",
      "/* a mark */\u{FEFF}DROP TABLE t",
    ])
  func firstWord(_ sql: String) {
    #expect(SQLiteConnection.begins(sql, with: "drop"))
    #expect(!SQLiteConnection.begins(sql, with: "alter"))
  }

  @Test("joined transactions are reported at their end, and others are not")
  func transactions() throws {
    let connection = try SQLiteConnection.inMemory()
    var ends: [Bool] = []
    try connection.observeJoinedTransactions(ended: { ends.append($0) }, closing: {})
    try connection.execute("CREATE TABLE t(x); BEGIN; INSERT INTO t VALUES (1)")
    try connection.joinTransaction()
    #expect(ends == [])
    try connection.execute("COMMIT; BEGIN; INSERT INTO t VALUES (2)")
    #expect(ends == [true])
    try connection.joinTransaction()
    #expect(connection.lastInsertedRow == 2)
    try connection.execute("ROLLBACK; BEGIN; INSERT INTO t VALUES (3); COMMIT")
    #expect(ends == [true, false])
    #expect(try connection.prepare("SELECT * FROM ferry_transaction").rows { $0.isNull(0) } == [])
  }
}
