import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Guarded statements", .hangLimit)
struct GuardTests {
  @Test("a guard is asked about guarded statements only, and provides the reason")
  func asked() throws {
    let connection = try SQLiteConnection.inMemory()
    connection.guardStatements { action in
      action.kind == .dropTable && action.name == "t" ? "t stays (\(action.database))" : nil
    }
    try connection.execute("CREATE TABLE t(a); CREATE TABLE u(a)")
    let error = failure {
      var script = "DROP TABLE t; DROP TABLE u"[...]
      _ = try connection.prepareNext(&script, guarded: true)
    }
    #expect(error?.message == "t stays (main)")
    var script = "DROP TABLE u; nonsense"[...]
    try connection.prepareNext(&script, guarded: true)?.run()
    let other = failure { _ = try connection.prepareNext(&script, guarded: true) }
    #expect(other?.message.contains("syntax error") == true)
    try connection.execute("DROP TABLE t")
    #expect(try connection.texts("SELECT name FROM sqlite_schema") == [])
  }

  @Test("a guard sees the statements of triggers, and each table's file")
  func actions() throws {
    let connection = try SQLiteConnection.inMemory()
    var seen: [String] = []
    connection.guardStatements { action in
      seen.append("\(action.kind) \(action.database).\(action.name) \(action.trigger ?? "-")")
      return nil
    }
    try connection.execute(
      """
      ATTACH ':memory:' AS o; CREATE TABLE o.t(a); CREATE TABLE o.u(a);
      CREATE TRIGGER o.r AFTER INSERT ON t BEGIN INSERT INTO u VALUES (abs(NEW.a)); END
      """)
    var script = "INSERT INTO o.t VALUES (1)"[...]
    _ = try connection.prepareNext(&script, guarded: true)
    #expect(seen == ["write o.t -", "write o.u r", "call .abs r"])
  }
}
