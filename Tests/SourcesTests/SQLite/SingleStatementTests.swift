import FerrySQLite
import FerryTestSupport
import Testing

/// SQL with names from outside: no text after the end is run, and no statement is confused with
/// another.
@Suite("One statement", .hangLimit)
struct SingleStatementTests {
  private func open() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute("CREATE TABLE t(a); CREATE TABLE kept(a)")
    return connection
  }

  private func tables(_ connection: SQLiteConnection) throws -> [String] {
    try connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").rows { $0.text(0) }
  }

  @Test(
    "a second statement is refused, and neither is run",
    arguments: [
      "DROP TABLE t; DROP TABLE kept", "DROP TABLE t;;", "DROP TABLE t; -- and more",
      "DROP TABLE t;\u{A0}", "DROP TABLE t\u{0}; DROP TABLE kept", "", "-- nothing", "\u{0}",
    ])
  func refused(sql: String) throws {
    let connection = try open()
    #expect(throws: SQLiteError.self) { try connection.execute(single: sql) }
    #expect(try tables(connection) == ["kept", "t"])
  }

  @Test("one statement is run, with white space and a semicolon behind it")
  func run() throws {
    let connection = try open()
    try connection.execute(single: "DROP TABLE t ; \n\t")
    #expect(try tables(connection) == ["kept"])
  }

  @Test("a script with U+0000 is refused whole")
  func script() throws {
    let connection = try open()
    #expect(throws: SQLiteError.self) {
      try connection.execute("DROP TABLE t;\u{0}DROP TABLE kept")
    }
    var rest = "DROP TABLE t;\u{0}DROP TABLE kept"[...]
    #expect(throws: SQLiteError.self) { try connection.prepareNext(&rest) }
    #expect(try tables(connection) == ["kept", "t"])
  }

  @Test("cached statements are distinguished by their bytes")
  func bytes() throws {
    let connection = try open()
    let texts = ["\u{E9}", "e\u{301}", "K", "\u{212A}", "\u{C5}", "\u{212B}", "A\u{30A}"]
    for text in texts {
      let found = try connection.statement("SELECT '\(text)'").first { $0.text(0) }
      #expect(found.map { Array($0.utf8) } == Array(text.utf8))
    }
  }
}
