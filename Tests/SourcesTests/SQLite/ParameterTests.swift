import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Parameters", .hangLimit)
struct ParameterTests {
  let connection: SQLiteConnection

  init() throws {
    connection = try SQLiteConnection.inMemory()
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
  }

  @Test("values of each type reach their parameter in order and in their storage class")
  func types() throws {
    let row = try connection.first(
      "SELECT typeof(?1), ?1, typeof(?2), ?2, typeof(?3), ?3, typeof(?4), ?4, typeof(?5), ?5",
      Int64.min, 0.5, "é", [0xC3, 0xA9] as [UInt8], SQLiteText([0xC3, 0xA9])
    ) { row in
      #expect([0, 2, 4, 6, 8].map { row.text($0) } == ["integer", "real", "text", "blob", "text"])
      #expect(row.int64(1) == .min && row.double(3) == 0.5 && row.text(5) == "é")
      return (row.blob(7), row.text(9))
    }
    let (blob, text) = try #require(row)
    #expect(blob == [0xC3, 0xA9] && text == "é")
  }

  @Test("an optional binds its value, or NULL")
  func optionals() throws {
    let types = "SELECT typeof(?) || ' ' || typeof(?) || ' ' || typeof(?)"
    #expect(
      try connection.first(types, nil as Int?, nil as [UInt8]?, nil as String?) { $0.text(0) }
        == "null null null")
    #expect(
      try connection.first(types, 1 as Int?, [1] as [UInt8]?, "" as String?) { $0.text(0) }
        == "integer blob text")
  }

  @Test("a truth value is 1 or 0, and an unsigned integer keeps its bits")
  func bits() throws {
    let row = try connection.rows("SELECT ?, ?, ?", true, false, UInt64.max) { row in
      [row.int64(0), row.int64(1), row.int64(2)]
    }
    #expect(row == [[1, 0, -1]])
  }

  @Test("a list takes one parameter for each value, between others")
  func lists() throws {
    let sum = "SELECT ? || ':' || ? || ? || ? || ':' || ?"
    let text = try connection.first(sum, "a", SQLiteList([1, 2, 3]), "b") { $0.text(0) }
    #expect(text == "a:123:b")
    #expect(try connection.first("SELECT ?", 7, SQLiteList([Int]())) { $0.int64(0) } == 7)
  }

  @Test("a write returns the number of rows that it changed")
  func changes() throws {
    let insert = try connection.statement("INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING")
    #expect(try insert.run(1, "one") == 1)
    #expect(try insert.run(1, "another") == 0)
    #expect(try insert.run(2, nil as String?) == 1)
    #expect(try connection.run("UPDATE t SET name = ?", "both") == 2)
    #expect(try connection.run("DELETE FROM t WHERE id > ?", 2) == 0)
    #expect(try connection.run("DELETE FROM t") == 2)
  }

  @Test("rows come back in order, the first alone, or none")
  func reading() throws {
    let insert = try connection.statement("INSERT INTO t VALUES (?, ?)")
    for (id, name) in [(1, "a"), (2, "b"), (3, "c")] { try insert.run(id, name) }
    let sql = "SELECT name FROM t WHERE id >= ? AND id <= ? ORDER BY id"
    #expect(try connection.rows(sql, 2, 3) { $0.text(0) } == ["b", "c"])
    #expect(try connection.first(sql, 2, 3) { $0.text(0) } == "b")
    #expect(try connection.first(sql, 4, 9) { $0.text(0) } == nil)
    #expect(try connection.exists(sql, 1, 1))
    #expect(try !connection.exists(sql, 4, 9))
    var seen = ""
    try connection.forEach(sql, 1, 3) { seen += $0.text(0) }
    #expect(seen == "abc")
  }

  @Test("a held statement runs with new values after each kind of use")
  func held() throws {
    struct Stop: Error {}
    let find = try connection.prepare("SELECT ? UNION ALL SELECT ?")
    #expect(try find.first(1, 2) { $0.int64(0) } == 1)
    #expect(try find.exists(3, 4))
    #expect(throws: Stop.self) { try find.forEach(5, 6) { _ in throw Stop() } }
    #expect(throws: Stop.self) { try find.first(7, 8) { _ in throw Stop() } }
    #expect(try find.rows(9, 10) { $0.int64(0) } == [9, 10])
    find.bind(11, 12)
    #expect(try find.step() && find.int64(0) == 11)
    find.reset()
    #expect(try find.rows(13, nil as Int?) { $0.optionalInt64(0) } == [13, nil])
  }

  @Test("a failing write throws the error of SQLite, and the statement can run again")
  func failing() throws {
    let insert = try connection.statement("INSERT INTO t VALUES (?, ?)")
    try insert.run(1, "one")
    #expect(throws: SQLiteError.self) { try insert.run(1, "again") }
    #expect(try insert.run(2, "two") == 1)
    #expect(throws: SQLiteError.self) { try connection.run("INSERT INTO absent VALUES (?)", 1) }
  }

  @Test("too few or too many values end the process")
  func count() async {
    await #expect(processExitsWith: .failure) {
      _ = try SQLiteConnection(path: ":memory:").exists("SELECT ?, ?", 1)
    }
    await #expect(processExitsWith: .failure) {
      _ = try SQLiteConnection(path: ":memory:").exists("SELECT ?", 1, 2)
    }
    await #expect(processExitsWith: .failure) {
      try SQLiteConnection(path: ":memory:").run("SELECT ?")
    }
  }
}
