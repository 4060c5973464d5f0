import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@Suite("Statements", .hangLimit)
struct StatementTests {
  let connection: SQLiteConnection

  init() throws {
    connection = try SQLiteConnection.inMemory()
    try connection.execute("CREATE TABLE t(a, b)")
  }

  @Test(
    "integers are read back in all 64 bits", arguments: [0, 1, -1, 1 << 53, .max, .min] as [Int64])
  func integers(value: Int64) throws {
    let row = try connection.prepare("SELECT ?1, typeof(?1), ?1")
    row.bind(value)
    #expect(try row.step())
    #expect(row.type(0) == .integer && row.int64(0) == value && row.text(1) == "integer")
    #expect(row.optionalInt64(2) == value)
  }

  @Test(
    "reals are read back bit by bit",
    arguments: [
      0, -0.0, 0.1, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity, -.infinity,
    ])
  func reals(value: Double) throws {
    let row = try connection.prepare("SELECT ?1")
    row.bind(value)
    #expect(try row.step())
    #expect(row.type(0) == .real)
    #expect(row.double(0).bitPattern == value.bitPattern)
  }

  @Test(
    "text is read back byte by byte, U+0000 included",
    arguments: [
      "", "a", "a\0b", "\0", "é", "e\u{301}", "👩‍👩‍👧",
      String(repeating: "x", count: 100_000),
    ])
  func texts(value: String) throws {
    let row = try connection.prepare("SELECT ?1, length(CAST(?1 AS BLOB))")
    row.bind(value)
    #expect(try row.step())
    #expect(row.type(0) == .text)
    #expect(row.text(0).utf8.elementsEqual(value.utf8))
    #expect(row.int64(1) == value.utf8.count)
  }

  @Test("blobs are read back byte by byte", arguments: [[], [0], Array(0...255)] as [[UInt8]])
  func blobs(value: [UInt8]) throws {
    let row = try connection.prepare("SELECT ?1")
    row.bind(value)
    #expect(try row.step())
    #expect(row.type(0) == .blob)
    #expect(row.blob(0) == value)
  }

  @Test("empty text, empty blob and NULL are three different values, in storage too")
  func empty() throws {
    let insert = try connection.statement("INSERT INTO t VALUES (?, ?)")
    try insert.run("", [UInt8]())
    try insert.run(nil as String?, nil as [UInt8]?)
    try insert.run(NoBytes())
    try insert.run(SQLiteText([]), [] as [UInt8]?)
    let types = try connection.texts("SELECT typeof(a) || ' ' || typeof(b) FROM t ORDER BY rowid")
    #expect(types == ["text blob", "null null", "text blob", "text blob"])
    let nothing = try connection.prepare("SELECT a FROM t WHERE a IS NULL")
    #expect(try nothing.step())
    #expect(nothing.isNull(0) && nothing.optionalText(0) == nil && nothing.optionalInt64(0) == nil)
    #expect(nothing.textBytes(0).count == 0)
  }

  @Test("one text of SQL is prepared once, and returned reset and without bindings")
  func cache() throws {
    let first = try connection.statement("SELECT ?1")
    first.bind(7)
    #expect(try first.step())
    let second = try connection.statement("SELECT ?1")
    #expect(first === second)
    #expect(try second.step())
    #expect(second.isNull(0), "the binding is gone")
    #expect(try connection.prepare("SELECT ?1") !== first)
  }

  @Test("texts of SQL beyond the cache are prepared again, and those in use stay valid")
  func fullCache() throws {
    let held = try connection.statement("SELECT 'held' UNION ALL SELECT 'on'")
    #expect(try held.step())
    for number in 0..<1_100 {
      #expect(try connection.statement("SELECT \(number)").first { $0.int64(0) } == Int64(number))
    }
    #expect(try held.step())
    #expect(held.text(0) == "on")
  }

  @Test("a statement can run again after it failed, or after its reader threw")
  func reset() throws {
    struct Stop: Error {}
    try connection.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    let rows = try connection.statement("SELECT a FROM t ORDER BY a")
    #expect(throws: Stop.self) { try rows.forEach { _ in throw Stop() } }
    #expect(try rows.rows { $0.int64(0) } == [1, 2])
    #expect(try rows.first { $0.int64(0) } == 1)
    try connection.execute("CREATE UNIQUE INDEX i ON t(a)")
    let insert = try connection.statement("INSERT INTO t VALUES (?, 0)")
    #expect(throws: SQLiteError.self) { try insert.run(1) }
    #expect(try insert.run(3) == 1)
  }

  @Test("a script is split into statements, past comments and stray semicolons")
  func scripts() throws {
    var script = """
      -- one; two
      INSERT INTO t VALUES ('a;b', 'é'); ;; /* three; */
      UPDATE t SET b = '--' ; SELECT a, b FROM t -- the last
      """[...]
    var seen: [String] = []
    while let statement = try connection.prepareNext(&script) {
      seen.append("\(statement.isReadOnly) \(statement.columnCount)")
      try statement.forEach { row in
        #expect(row.text(0) == "a;b" && row.text(1) == "--")
        #expect(row.columnName(1) == "b")
      }
    }
    #expect(seen == ["false 0", "false 0", "true 2"])
    #expect(script.isEmpty)
    for blank in ["", "  \n", ";", "-- only a comment", "/* open"] {
      var script = blank[...]
      #expect(try connection.prepareNext(&script) == nil, "\(blank)")
    }
  }

  @Test("a fault in a script is reported after the statements before it have been prepared")
  func faultyScript() throws {
    var script = "SELECT 1; SELEC 2; SELECT 3"[...]
    #expect(try connection.prepareNext(&script) != nil)
    let error = failure { _ = try connection.prepareNext(&script) }
    #expect(error?.message.contains("SELEC") == true)
    #expect(error?.sql?.contains("SELEC 2") == true)
  }

  @Test("exactly one statement can be prepared at a time")
  func single() throws {
    #expect(throws: SQLiteError.self) { try connection.prepare("") }
    #expect(throws: SQLiteError.self) { try connection.prepare("SELECT 1; SELECT 2") }
    #expect(throws: SQLiteError.self) { try connection.prepare("SELECT 1;\0 SELECT 2") }
    #expect(try connection.prepare("SELECT 1; \n").first { $0.int64(0) } == 1)
  }

  @Test("a statement knows its parameters, and whether it reads or changes the schema")
  func facts() throws {
    let table: [(sql: String, parameters: Int, reads: Bool, schema: Bool)] = [
      (sql: "SELECT ?, ?, ?2", parameters: 2, reads: true, schema: false),
      (sql: "INSERT INTO t VALUES (?, :b)", parameters: 2, reads: false, schema: false),
      (sql: " \n;create table u(x)", parameters: 0, reads: false, schema: true),
      (sql: "ALTER TABLE t ADD COLUMN c", parameters: 0, reads: false, schema: true),
      (sql: "DROP TABLE t", parameters: 0, reads: false, schema: true),
    ]
    for row in table {
      let statement = try connection.prepare(row.sql)
      #expect(statement.parameterCount == row.parameters, "\(row.sql)")
      #expect(statement.isReadOnly == row.reads, "\(row.sql)")
      #expect(statement.changesSchema == row.schema, "\(row.sql)")
    }
  }
}

/// Text and a blob without any byte, with `nil` pointers.
private struct NoBytes: SQLiteBindable {
  func bind(to parameters: inout SQLiteParameters) {
    parameters.append(text: UnsafeRawBufferPointer(start: nil, count: 0))
    parameters.append(blob: UnsafeRawBufferPointer(start: nil, count: 0))
  }
}
