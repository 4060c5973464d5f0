import CFerrySQLite
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

/// Files, tables and databases that another library's connection meets.
@Suite("Another library's connection and its databases", .hangLimit)
struct HostSchemaTests {
  let replica: ReplicaFixture
  let host: HostConnection

  init() throws {
    replica = try ReplicaFixture.withTasks()
    host = try HostConnection(path: replica.path)
  }

  @Test("a table is not dropped while rows of a tracked table would go with it")
  func drop() throws {
    try replica.run(
      """
      CREATE TABLE lists(id TEXT PRIMARY KEY);
      CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE);
      INSERT INTO lists VALUES ('l'); INSERT INTO items VALUES ('i', 'l')
      """)
    try replica.file.track(["items"])
    try host.prepare(for: replica)
    #expect(host.failure("/* all */ DROP TABLE lists").contains("DROP TABLE would delete"))
    #expect(try host.run("SELECT count(*) FROM items") == ["1"])
    try host.run("DELETE FROM lists")
    #expect(try replica.pending.last?.kind == .delete)
    try host.run("DROP TABLE lists")
  }

  @Test("a connection whose statements recorded nothing can be closed")
  func closing() throws {
    try replica.run("CREATE TABLE albums(id INTEGER PRIMARY KEY, updated_at)")
    try replica.file.track(["albums"])
    try replica.run("INSERT INTO albums VALUES (1, 0)")
    try host.prepare(for: replica)
    try host.run("INSERT OR IGNORE INTO albums VALUES (1, 1); SELECT ferry_record('albums', 1)")
    #expect(host.close() == SQLITE_OK)
  }

  @Test("an unrelated change of the schema stops no write")
  func unrelated() throws {
    try host.prepare(for: replica)
    try host.run("CREATE TABLE scratch(x); INSERT INTO tasks(id) VALUES ('a')")
    try host.run("BEGIN; CREATE INDEX i ON scratch(x); INSERT INTO tasks(id) VALUES ('b'); COMMIT")
    #expect(try replica.pending.map(\.key.record) == ["a", "b"])
  }

  @Test("a write to a table with a column that the triggers do not know fails until they do")
  func newColumn() throws {
    try host.prepare(for: replica)
    try host.run("INSERT INTO tasks(id) VALUES ('a'); ALTER TABLE tasks ADD COLUMN note TEXT")
    #expect(host.failure("UPDATE tasks SET note = 'x'").contains("tracked tables have changed"))
    #expect(try host.run("SELECT note FROM tasks") == ["NULL"])
    #expect(try host.run("SELECT ferry_prepare()") == ["1"])
    try host.run("UPDATE tasks SET note = 'x'")
    #expect(try replica.pending.last?.columns == [Column("note", "x")])
  }

  @Test("a version of the schema that was rolled back and made again is checked again")
  func versionAgain() throws {
    try host.prepare(for: replica)
    try host.run("BEGIN; SAVEPOINT s; CREATE TABLE scratch(x)")
    try host.run("INSERT INTO tasks(id) VALUES ('a'); ROLLBACK TO s")
    try host.run("ALTER TABLE tasks ADD COLUMN note TEXT")
    #expect(
      host.failure("INSERT INTO tasks(id, note) VALUES ('b', 'x')").contains("tables have changed"))
    try host.run("ROLLBACK")
    #expect(try replica.pending == [])
  }

  @Test("triggers that another connection has changed record the next write")
  func changedElsewhere() throws {
    try host.prepare(for: replica)
    try host.run("INSERT INTO tasks(id) VALUES ('a')")
    try replica.run("ALTER TABLE tasks ADD COLUMN note TEXT")
    try host.run("UPDATE tasks SET note = 'x'")
    #expect(try replica.pending.last?.columns == [Column("note", "x")])
  }

  @Test("preparing a connection brings triggers up to date that fit no more")
  func preparesTriggers() throws {
    try host.run("ALTER TABLE tasks ADD COLUMN note TEXT")
    try host.prepare(for: replica)
    try host.run("INSERT INTO tasks(id, note) VALUES ('a', 'x')")
    #expect(try replica.pending.last?.columns.contains(Column("note", "x")) == true)
  }

  @Test("a write to an attached replica fails, beside a replica or another file")
  func attached() throws {
    let other = try ReplicaFixture.withTasks()
    try host.prepare(for: replica)
    try host.run("ATTACH '\(other.path)' AS other")
    let both = host.failure("BEGIN; INSERT INTO main.tasks(id) VALUES ('a')")
    #expect(both.contains("the attached database other is a replica, too"))
    try host.run("ROLLBACK")
    #expect(
      host.failure("INSERT INTO other.tasks(id) VALUES ('a')").contains("not to the main database"))
    let memory = try HostConnection(path: ":memory:")
    #expect(try !memory.prepare(for: replica))
    try memory.run("ATTACH '\(other.path)' AS other; CREATE TABLE t(x)")
    let elsewhere = memory.failure(
      "BEGIN; INSERT INTO t VALUES (1); INSERT INTO other.tasks(id) VALUES ('a')")
    #expect(elsewhere.contains("ferry: "))
    try memory.run("ROLLBACK")
    #expect(try replica.pending == [] && other.pending == [])
  }

  @Test("an untrusted schema is recorded, unless the triggers of another file could be, too")
  func untrusted() throws {
    try host.prepare(for: replica)
    try host.run("PRAGMA trusted_schema = OFF; INSERT INTO tasks(id) VALUES ('a')")
    let file = replica.directory.file("other.db").path
    try host.run("ATTACH '\(file)' AS other")
    #expect(
      host.failure("INSERT INTO tasks(id) VALUES ('b')").contains("trusted_schema is off"))
    try host.run("PRAGMA trusted_schema = ON; INSERT INTO tasks(id) VALUES ('b')")
    #expect(try replica.pending.map(\.key.record) == ["a", "b"])
  }

  @Test("a temporary table that hides one of Ferry's fails the write")
  func hidden() throws {
    try host.prepare(for: replica)
    try host.run("CREATE TEMP TABLE Ferry_Operations(x); CREATE TEMP TABLE own(x)")
    #expect(host.failure("INSERT INTO tasks(id) VALUES ('a')").contains("hides one of Ferry's"))
    try host.run("DROP TABLE temp.ferry_operations; INSERT INTO tasks(id) VALUES ('a')")
    #expect(try replica.pending.count == 1)
  }

  @Test("a temporary trigger that may write to a tracked table fails the write; another one fires")
  func temporaryTrigger() throws {
    try host.prepare(for: replica)
    try host.run(
      """
      CREATE TEMP TABLE seen(id);
      CREATE TEMP TRIGGER look AFTER INSERT ON tasks BEGIN INSERT INTO seen VALUES (NEW.id); END;
      INSERT INTO tasks(id) VALUES ('a');
      CREATE TEMP TRIGGER finish AFTER INSERT ON Tasks BEGIN
        UPDATE Tasks SET done = 1 WHERE id = NEW.id; END
      """)
    let failure = host.failure("INSERT INTO tasks(id) VALUES ('b')")
    #expect(failure.contains("the temporary trigger finish may write"))
    try host.run("DROP TRIGGER finish; INSERT INTO tasks(id) VALUES ('b')")
    #expect(try host.run("SELECT id FROM seen") == ["a", "b"])
    #expect(try replica.pending.map(\.key.record) == ["a", "b"])
  }

  @Test("the functions record nothing outside of a write")
  func forged() throws {
    try host.prepare(for: replica)
    #expect(host.failure("SELECT ferry_insert(3, 'tasks', 'x')").contains("ferry: "))
    #expect(try replica.pending == [])
  }

  @Test("a file of another format and an open transaction are refused")
  func refused() throws {
    try host.run("BEGIN")
    let open = #expect(throws: ReplicaError.self) { try host.prepare(for: replica) }
    #expect(open?.description.contains("a transaction is open") == true)
    try host.run("COMMIT; UPDATE ferry_replica SET version = 99")
    let failure = host.failure("SELECT ferry_prepare()")
    #expect(failure.contains("format 99") && failure.contains("update Ferry"))
  }

  @Test("a file that becomes a replica later is recorded after `SELECT ferry_prepare()`")
  func later() throws {
    let path = replica.directory.file("later.db").path
    let early = try HostConnection(path: path)
    try early.run("CREATE TABLE tasks(id TEXT PRIMARY KEY)")
    #expect(try !early.prepare(for: replica))
    #expect(try early.run("PRAGMA recursive_triggers; PRAGMA foreign_keys") == ["0", "0"])
    let file = try ReplicaFile(path: path, wallClock: { 0 }, random: { 7 })
    try file.track(["tasks"])
    #expect(early.failure("INSERT INTO tasks VALUES ('a')").contains("SELECT ferry_prepare()"))
    try early.run("SELECT ferry_prepare(); INSERT INTO tasks VALUES ('a')")
    #expect(try file.queue.oldest(10).count == 1)
  }
}
