import CFerrySQLite
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

@Suite("Recording on another library's connection", .hangLimit)
struct HostRecordingTests {
  let replica: ReplicaFixture
  let host: HostConnection

  init() throws {
    replica = try ReplicaFixture.withTasks()
    host = try HostConnection(path: replica.path)
  }

  private func groups() throws -> [String] {
    try host.run("SELECT grp, kind, record FROM ferry_operations ORDER BY seq")
  }

  @Test("a transaction is one group, and a rolled back one leaves nothing")
  func transactions() throws {
    try host.prepare(for: replica)
    try host.run("BEGIN; INSERT INTO tasks(id) VALUES ('a'); UPDATE tasks SET done = 1; COMMIT")
    try host.run("BEGIN; INSERT INTO tasks(id) VALUES ('b'); ROLLBACK")
    try host.run("DELETE FROM tasks")
    #expect(try groups() == ["1|insert|a", "1|update|a", "3|delete|a"])
  }

  @Test("a savepoint that is rolled back takes its operations along, and the group goes on")
  func savepoints() throws {
    try host.prepare(for: replica)
    try host.run(
      """
      BEGIN; INSERT INTO tasks(id) VALUES ('a'); SAVEPOINT s; INSERT INTO tasks(id) VALUES ('b');
      ROLLBACK TO s; INSERT INTO tasks(id) VALUES ('c'); COMMIT
      """)
    #expect(try groups() == ["1|insert|a", "1|insert|c"])
  }

  @Test("integers become the identifiers of their records, also without trust in the schema")
  func numbers() throws {
    try replica.run(
      """
      CREATE TABLE albums(id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE tracks(id INTEGER PRIMARY KEY, album INTEGER REFERENCES albums(id))
      """)
    try replica.file.track(["albums", "tracks"])
    try replica.run("INSERT INTO albums(title) VALUES ('a')")
    try host.prepare(for: replica)
    try host.run("PRAGMA trusted_schema=OFF")
    #expect(try host.run("INSERT INTO albums(title) VALUES ('b') RETURNING id") == ["2"])
    #expect(try host.run("SELECT last_insert_rowid()") == ["2"])
    try host.run("INSERT INTO tracks VALUES (9, 1), (8, 2)")
    let operations = try replica.pending
    let albums = operations.filter { $0.key.table == "albums" }.map(\.key.record.text)
    #expect(Set(albums).count == 2)
    #expect(
      operations.suffix(2).map { $0.columns } == albums.map { [Column("album", .text($0))] })
  }

  @Test("the size of a transaction counts from its start, also after one that failed")
  func sizes() throws {
    var limits = Limits.standard
    limits.operationsPerTransaction = 2
    try host.prepare(for: replica, limits: limits)
    try host.run("INSERT INTO tasks(id) VALUES ('a'), ('b')")
    try host.run("BEGIN; INSERT INTO tasks(id) VALUES ('c'), ('d'); ROLLBACK")
    #expect(host.failure("INSERT INTO tasks(id) VALUES ('c'), ('a')").contains("UNIQUE"))
    try host.run("INSERT INTO tasks(id) VALUES ('c'), ('d')")
    let tooLarge = host.failure("INSERT INTO tasks(id) VALUES ('e'), ('f'), ('g')")
    #expect(tooLarge.contains("writes more than 2 records"))
    #expect(try groups() == ["1|insert|a", "1|insert|b", "3|insert|c", "3|insert|d"])
  }

  @Test("REPLACE records the row that it removes")
  func replace() throws {
    try host.prepare(for: replica)
    try host.run("INSERT INTO tasks(id) VALUES ('a'); REPLACE INTO tasks(id) VALUES ('a')")
    #expect(try groups() == ["1|insert|a", "2|delete|a", "2|insert|a"])
  }

  @Test("the row that was inserted last is the user's")
  func lastRow() throws {
    try host.prepare(for: replica)
    try host.run("INSERT INTO tasks(id) VALUES ('a'), ('b'), ('c')")
    #expect(try host.run("SELECT last_insert_rowid(), changes()") == ["3|3"])
  }

  @Test("later operations of the replica itself are newer, whichever connection wrote")
  func clock() throws {
    try host.prepare(for: replica)
    replica.clock.now += 60_000
    try host.run("INSERT INTO tasks(id) VALUES ('a')")
    replica.clock.now -= 60_000
    try replica.run("INSERT INTO tasks(id) VALUES ('b')")
    try host.run("INSERT INTO tasks(id) VALUES ('c')")
    let ids = try replica.pending.map(\.id)
    #expect(ids.count == 3 && ids == ids.sorted())
  }

  @Test("the library's hooks and its authorizer stay and are called")
  func hooks() throws {
    try host.prepare(for: replica)
    let before = (host.calls.commits, host.calls.rollbacks)
    try host.run("INSERT INTO tasks(id) VALUES ('a')")
    try host.run("BEGIN; INSERT INTO tasks(id) VALUES ('b'); ROLLBACK")
    #expect(host.calls.commits == before.0 + 1 && host.calls.rollbacks == before.1 + 1)
    #expect(host.calls.changedTables.isSuperset(of: ["tasks", "ferry_operations"]))
    #expect(host.calls.authorized > 0)
    let own = Unmanaged.passUnretained(host.calls).toOpaque()
    #expect(sqlite3_commit_hook(host.handle, nil, nil) == own)
    #expect(sqlite3_rollback_hook(host.handle, nil, nil) == own)
    #expect(sqlite3_update_hook(host.handle, nil, nil) == own)
  }

  @Test("the connection closes, and no statement of Ferry's holds it")
  func closing() throws {
    try host.prepare(for: replica)
    #expect(host.close() == SQLITE_OK)
    let writing = try HostConnection(path: replica.path)
    try writing.prepare(for: replica)
    try writing.run("INSERT INTO tasks(id) VALUES ('a')")
    #expect(writing.failure("INSERT INTO tasks(id) VALUES ('a')").contains("UNIQUE"))
    #expect(writing.close() == SQLITE_OK)
    let open = try HostConnection(path: replica.path)
    try open.prepare(for: replica)
    try open.run("BEGIN; INSERT INTO tasks(id) VALUES ('b')")
    #expect(open.close() == SQLITE_OK)
    #expect(try replica.rows("SELECT id FROM tasks") == [["a"]])
    #expect(try replica.pending.count == 1)
  }

  @Test("a closed connection releases all that recorded on it")
  func released() throws {
    final class Kept: Sendable {}
    weak var kept: Kept?
    let closing = try HostConnection(path: replica.path)
    do {
      let object = Kept()
      kept = object
      var surroundings = ReplicaSurroundings.system
      surroundings.wallClock = { withExtendedLifetime(object) { 1_800_000_000_000 } }
      _ = try HostRecording.prepare(try #require(closing.handle), in: surroundings)
    }
    try closing.run("INSERT INTO tasks(id) VALUES ('a')")
    #expect(kept != nil)
    #expect(closing.close() == SQLITE_OK)
    #expect(kept == nil)
  }

  @Test("a connection that is prepared twice records once, also within a transaction")
  func twice() throws {
    try host.prepare(for: replica)
    #expect(try host.prepare(for: replica))
    try host.run("BEGIN; INSERT INTO tasks(id) VALUES ('a')")
    #expect(throws: SQLiteError.self) { try host.prepare(for: replica) }
    try host.run("INSERT INTO tasks(id) VALUES ('b'); COMMIT")
    #expect(try groups() == ["1|insert|a", "1|insert|b"])
  }

  @Test(
    "a write fails while the connection has a setting with which rows would go unrecorded",
    arguments: ["recursive_triggers", "foreign_keys"])
  func settings(_ setting: String) throws {
    try host.prepare(for: replica)
    try host.run("INSERT INTO tasks(id) VALUES ('a')")
    try host.run("PRAGMA \(setting) = OFF")
    for sql in [
      "REPLACE INTO tasks(id) VALUES ('a')", "DELETE FROM tasks", "UPDATE tasks SET done = 1",
    ] {
      #expect(host.failure(sql).contains("ferry: \(setting) is off"), "\(sql)")
    }
    #expect(try host.run("SELECT id, done FROM tasks") == ["a|0"])
    #expect(try groups() == ["1|insert|a"])
    #expect(try host.run("SELECT ferry_prepare()") == ["1"])
    try host.run("DELETE FROM tasks")
    #expect(try groups() == ["1|insert|a", "2|delete|a"])
  }
}
