import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A user's SQL cannot break the replica it runs on.
@Suite("SQL statements that only Ferry may run", .hangLimit)
struct StatementGuardTests {
  private static func message(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch ReplicaError.database(let message, _) {
      return message
    } catch {
      return "\(error)"
    }
  }

  @Test(
    "a statement that ends the transaction early is refused, and nothing is stored",
    arguments: ["commit", "END", "Rollback", "begin immediate", "commit; begin"])
  func transactions(statement: String) throws {
    let fixture = try ReplicaFixture.withTasks()
    let message = Self.message {
      try fixture.run("INSERT INTO tasks(id) VALUES ('a'); \(statement)")
    }
    #expect(message?.contains("leave out BEGIN, COMMIT and ROLLBACK") == true, "\(message ?? "")")
    #expect(try fixture.rows("SELECT count(*) FROM tasks") == [[0]])
    #expect(try fixture.pending.isEmpty)
  }

  @Test("the user can use savepoints")
  func savepoints() throws {
    let fixture = try ReplicaFixture.withTasks()
    try fixture.run(
      """
      SAVEPOINT one; INSERT INTO tasks(id) VALUES ('a'); ROLLBACK TO one; RELEASE one;
      INSERT INTO tasks(id) VALUES ('b')
      """)
    #expect(try fixture.pending.map(\.key.record) == ["b"])
  }

  @Test(
    "Ferry's tables can be read and not changed",
    arguments: [
      "DROP VIEW ferry_pending", "DELETE FROM ferry_operations", "DROP TABLE FERRY_replica",
      "UPDATE ferry_replica SET applied = 0", "INSERT INTO ferry_checked VALUES (2, 'x')",
      "ALTER TABLE ferry_packets RENAME TO other", "ALTER TABLE ferry_packets ADD COLUMN x",
      "CREATE TABLE ferry_mine(x)", "DROP INDEX ferry_operations_concurrent",
      "DROP TRIGGER ferry_insert_tasks", "SELECT ferry_insert(3, 'tasks', 'x')",
      "CREATE TRIGGER ferry_x AFTER INSERT ON tasks BEGIN SELECT 1; END",
    ])
  func ownTables(statement: String) throws {
    let fixture = try ReplicaFixture.withTasks()
    let message = Self.message { try fixture.run(statement) }
    #expect(message?.contains("is reserved for Ferry") == true, "\(message ?? "it was done")")
    try fixture.run("INSERT INTO tasks(id) VALUES ('a')")
    #expect(try fixture.pending.count == 1)
    #expect(try fixture.rows("SELECT count(*) FROM ferry_pending") == [[1]])
  }

  @Test("a user's trigger cannot change Ferry's tables")
  func triggers() throws {
    let fixture = try ReplicaFixture.withTasks()
    try fixture.run(
      "CREATE TRIGGER mine AFTER UPDATE ON tasks BEGIN DELETE FROM ferry_operations; END")
    try fixture.run("INSERT INTO tasks(id) VALUES ('a')")
    let message = Self.message { try fixture.run("UPDATE tasks SET title = 'x'") }
    #expect(message?.contains("is reserved for Ferry") == true, "\(message ?? "it was done")")
    #expect(try fixture.pending.count == 1)
  }

  @Test("the user can create, alter and drop own tables")
  func ownSchema() throws {
    let fixture = try ReplicaFixture.withTasks()
    try fixture.run("INSERT INTO tasks(id) VALUES ('a')")
    try fixture.run("ALTER TABLE tasks ADD COLUMN due TEXT")
    try fixture.run("ALTER TABLE tasks DROP COLUMN done")
    try fixture.run("CREATE TEMP TABLE t(x); INSERT INTO t VALUES (1); DROP TABLE t")
    try fixture.run("CREATE INDEX by_title ON tasks(title); REINDEX; ANALYZE; DROP INDEX by_title")
    try fixture.run("UPDATE tasks SET due = 'now'")
    #expect(try fixture.pending.map(\.kind) == [.insert, .update])
    try fixture.run("DROP TABLE tasks")
  }

  @Test("a tracked table of an attached replica cannot be written")
  func attached() throws {
    let (fixture, other) = (try ReplicaFixture.withTasks(), try ReplicaFixture.withTasks())
    let attach = "ATTACH '\(other.path)' AS o; "
    let message = Self.message {
      try fixture.run(attach + "INSERT INTO o.tasks(id) VALUES ('theirs')")
    }
    #expect(message?.contains("attached as o") == true, "\(message ?? "it was done")")
    #expect(try fixture.pending.isEmpty && other.pending.isEmpty)
    #expect(try other.rows("SELECT count(*) FROM tasks") == [[0]])
  }

  @Test("a plain attached file can be read and written beside tracked tables")
  func attachedPlain() throws {
    let fixture = try ReplicaFixture.withTasks()
    let plain = fixture.directory.file("plain.db").path
    let connection = try SQLiteConnection(path: plain)
    try connection.execute("CREATE TABLE t(id); INSERT INTO t VALUES ('x')")
    try fixture.run(
      """
      ATTACH '\(plain)' AS o;
      INSERT INTO tasks(id) SELECT id FROM o.t;
      INSERT INTO o.t VALUES ('y')
      """)
    #expect(try fixture.pending.map(\.key.record) == ["x"])
    #expect(try connection.prepare("SELECT count(*) FROM t").first { $0.int64(0) } == 2)
  }

  @Test("a table that cannot be tracked is refused with the row that is the reason")
  func track() throws {
    let fixture = try ReplicaFixture()
    try fixture.run("CREATE TABLE big(id TEXT PRIMARY KEY, body)")
    try fixture.run("INSERT INTO big VALUES ('small', 1), ('large', zeroblob(5000000))")
    #expect {
      try fixture.file.track(["big"])
    } throws: { error in
      "\(error)".contains("its row 'large' cannot be recorded")
    }
    try fixture.run("CREATE TABLE keys(id TEXT PRIMARY KEY, body)")
    try fixture.run("INSERT INTO keys VALUES ('a', 1), (x'0102', 2), (NULL, 3)")
    #expect {
      try fixture.file.track(["keys"])
    } throws: { error in
      "\(error)".contains("2 of its rows have no text of 1 to 512 bytes in their key id, such as")
    }
  }
}
