import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Numbered names of a program's own tables", .hangLimit)
struct SQLNamespaceTests {
  private let second = SQLNamespace(prefix: "ferry_", number: 2)

  @Test(
    "only the program's own words get the number",
    arguments: [
      ("SELECT a FROM ferry_log", "SELECT a FROM ferry_2_log"),
      ("INSERT INTO main.ferry_log(at) VALUES (1)", "INSERT INTO main.ferry_2_log(at) VALUES (1)"),
      ("SELECT ferry_insert(1, 'ferry_log')", "SELECT ferry_2_insert(1, 'ferry_log')"),
      ("SELECT \"ferry_log\" FROM t", "SELECT \"ferry_log\" FROM t"),
      ("SELECT 'it''s ferry_log', ferry_log.at", "SELECT 'it''s ferry_log', ferry_2_log.at"),
      ("SELECT \"a\"\"ferry_log\", 1", "SELECT \"a\"\"ferry_log\", 1"),
      ("SELECT my_ferry_log, éferry_log", "SELECT my_ferry_log, éferry_log"),
      ("SELECT 1 -- ferry_log\nFROM ferry_log", "SELECT 1 -- ferry_log\nFROM ferry_2_log"),
      ("SELECT 'open ferry_log", "SELECT 'open ferry_log"),
      ("", ""),
    ])
  func words(sql: String, rewritten: String) {
    #expect(second.rewrite(sql) == rewritten)
    #expect(second.rewrite(rewritten) == rewritten)
    #expect(SQLNamespace(prefix: "ferry_").rewrite(sql) == sql)
  }

  @Test("names without the prefix keep their name")
  func names() {
    #expect(second.name("ferry_log") == "ferry_2_log")
    #expect(second.name("notes") == "notes")
    #expect(SQLNamespace(prefix: "ferry_").name("ferry_log") == "ferry_log")
  }

  @Test(
    "connections that share a handle have tables, functions and ends of transactions of their own")
  func shared() throws {
    let first = try SQLiteConnection.inMemory()
    let other = SQLiteConnection(sharing: first, namespace: second)
    var ends: [String] = []
    for (name, connection) in [("first", first), ("second", other)] {
      try connection.execute("CREATE TABLE ferry_log(x)")
      try connection.addFunction("ferry_name", argumentCount: 0) { $1.set(name == "first" ? 1 : 2) }
      connection.onTransactionEnd { ends.append("\(name) \($0)") }
    }
    ends = []
    try other.transaction {
      try first.run("INSERT INTO ferry_log VALUES (ferry_name())")
      try other.run("INSERT INTO ferry_log VALUES (ferry_name())")
    }
    #expect(try first.rows("SELECT x FROM ferry_log") { $0.int64(0) } == [1])
    #expect(try first.rows("SELECT x FROM ferry_2_log") { $0.int64(0) } == [2])
    #expect(ends == ["first true", "second true"])
  }
}
