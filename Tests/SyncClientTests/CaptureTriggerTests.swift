import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Recording within a user's statement: forbidden effects, and the moments at which triggers are
/// checked.
@Suite("Capture triggers", .hangLimit)
struct CaptureTriggerTests {
  @Test("last_insert_rowid is that of the user's own row")
  func lastInsertedRow() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a'), ('b'), ('c'); DELETE FROM tasks")
    let last = try replica.file.write { database in
      try database.execute("INSERT INTO tasks(rowid, id) VALUES (41, 'd')")
      return try database.query("SELECT last_insert_rowid(), changes()")[0].values
    }
    #expect(last == [41, 1])
  }

  @Test("a statement with one row that cannot be recorded changes nothing")
  func failsWhole() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, body)")
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t VALUES ('a', 'one'), ('b', 'one')")
    try replica.file.write { database in
      #expect(throws: DatabaseError.self) {
        try database.execute(
          "UPDATE t SET body = CASE id WHEN 'b' THEN CAST(x'ff' AS TEXT) ELSE 'two' END")
      }
      try database.execute("DELETE FROM t WHERE id = 'b'")
    }
    #expect(try replica.rows("SELECT id, body FROM t") == [["a", "one"]])
    #expect(try replica.pending.map(\.kind) == [.insert, .insert, .delete])
  }

  @Test("a row of many columns is one operation, and an unchanged row is none")
  func manyColumns() throws {
    let replica = try ReplicaFixture()
    let names = (0..<200).map { "c\($0)" }
    try replica.run("CREATE TABLE wide(id TEXT PRIMARY KEY, \(names.joined(separator: ", ")))")
    try replica.file.track(["wide"])
    try replica.run("INSERT INTO wide(id, c0, c199) VALUES ('a', 1, 2)")
    try replica.run("UPDATE wide SET c0 = 3")
    try replica.run("UPDATE wide SET c0 = 3")
    try replica.run("UPDATE wide SET id = 'b'")
    let pending = try replica.pending
    #expect(pending.map(\.kind) == [.insert, .update, .delete, .insert])
    #expect(pending.map(\.columns.count) == [200, 1, 200, 200])
  }

  @Test("tables are guarded during a pull only if triggers or foreign keys may write to them")
  func guards() throws {
    let replica = try ReplicaFixture.withTasks()
    #expect(try guardCount(replica) == 0)
    try replica.run("CREATE TABLE log(line)")
    try replica.run(
      "CREATE TRIGGER mine AFTER UPDATE ON tasks BEGIN INSERT INTO log VALUES ('x'); END")
    #expect(try guardCount(replica) == 3)
    let cascading = try ReplicaFixture.withTasks()
    try cascading.run(
      "CREATE TABLE part(id TEXT, task TEXT REFERENCES tasks(id) ON UPDATE CASCADE)")
    #expect(try guardCount(cascading) == 3)
    let temporary = try ReplicaFixture.withTasks()
    try temporary.run("CREATE TEMP TRIGGER mine AFTER UPDATE ON tasks BEGIN SELECT 1; END")
    #expect(try guardCount(temporary) == 3)
  }

  private func guardCount(_ replica: ReplicaFixture) throws -> Int64 {
    try #require(
      replica.file.connection.prepare(
        "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'ferry_nested_*'"
      ).first { $0.int64(0) })
  }

  @Test("schema changes of another process are noticed before changes are applied")
  func foreignChange() throws {
    let replica = try ReplicaFixture.withTasks()
    let maker = PageMaker()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "one")])])
    let plain = try SQLiteConnection(path: replica.path)
    try plain.execute(
      """
      ALTER TABLE tasks ADD COLUMN due TEXT;
      CREATE TABLE log(line);
      CREATE TRIGGER mine AFTER INSERT ON tasks BEGIN
        INSERT INTO log VALUES (NEW.id); UPDATE tasks SET title = 'mine' WHERE id = NEW.id;
      END;
      """)
    try replica.apply([
      maker.change(2, "tasks", "b", [Column("title", "two"), Column("due", "soon")])
    ])
    #expect(try replica.rows("SELECT title, due FROM tasks WHERE id = 'b'") == [["two", "soon"]])
    #expect(try replica.rows("SELECT line FROM log") == [["b"]])
    try replica.run("UPDATE tasks SET due = 'now' WHERE id = 'b'")
    #expect(try replica.pending.last?.columns == [Column("due", "now")])
  }

  @Test("a file with an unchanged schema is opened without reading its triggers")
  func checkedOnce() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.reopen()
    let mark = try replica.file.connection.prepare("SELECT mark FROM ferry_checked")
    let version = try replica.file.connection.prepare("PRAGMA schema_version")
    #expect(
      try mark.first { $0.text(0) }
        == "\(CaptureTriggers.version):\(version.first { $0.int64(0) } ?? 0)")
    let before = try replica.file.connection.prepare("PRAGMA data_version").first { $0.int64(0) }
    _ = try replica.other()
    let after = try replica.file.connection.prepare("PRAGMA data_version").first { $0.int64(0) }
    #expect(before == after)
  }
}
