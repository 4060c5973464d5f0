import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Applying remote changes", .hangLimit)
struct ApplyTests {
  private let maker = PageMaker()

  @Test("pages of a pull list become visible together, with the cursor")
  func staged() throws {
    let replica = try ReplicaFixture.withTasks()
    let first = maker.page(
      [maker.change(1, "tasks", "a", [Column("title", "x")])], head: 2, more: true)
    try replica.file.incoming.stage(first.body, first.head, changes: 1)
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])
    #expect(try replica.file.syncState().applied == 0)
    #expect(try replica.file.syncState().received == 1)
    #expect(try replica.file.waiting.oldest(10).map(\.key.record) == ["a"])
    try replica.reopen()
    try replica.apply([maker.change(2, "tasks", "b", [Column("title", "y")])])
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["b"]])
    #expect(try replica.file.syncState().applied == 2)
    #expect(try replica.file.waiting.oldest(10).isEmpty)
  }

  @Test("the view ferry_to_apply has the parts of each change, in small, large and deferred pages")
  func toApplyView() throws {
    let replica = try ReplicaFixture.withTasks()
    let long = String(repeating: "long ", count: 2_000)
    let pages = [
      [maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 1)])],
      [
        maker.change(2, "tasks", "b", [Column("title", .text(long))]),
        maker.deletion(3, "tasks", "c"),
      ],
    ]
    for changes in pages {
      let page = maker.page(changes, head: 4, more: true)
      try replica.file.incoming.stage(page.body, page.head, changes: changes.count)
    }
    let select = "SELECT operation, tbl, record, kind, dependency, reason FROM ferry_to_apply"
    let missing: Value = "the rest of its pull list is missing"
    #expect(
      try replica.rows(select + " ORDER BY operation") == [
        [1, "tasks", "a", "insert", 0, missing], [2, "tasks", "b", "insert", 1, missing],
        [3, "tasks", "c", "delete", 2, missing],
      ])
    let data = try replica.rows("SELECT data FROM ferry_to_apply ORDER BY operation")
    #expect(data == [[#"{"done":1,"title":"x"}"#], [.text(#"{"title":"\#(long)"}"#)], [nil]])
    let times = try replica.rows("SELECT time FROM ferry_to_apply WHERE time LIKE '____-__-__T%Z'")
    #expect(times.count == 3)
    try replica.apply([maker.change(4, "notes", "n", [Column("body", "hello")])])
    #expect(
      try replica.rows(select) == [
        [4, "notes", "n", "insert", nil, "its table or column does not exist here yet"]
      ])
  }

  @Test("applied changes are not recorded again")
  func notRecorded() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 1)])])
    try replica.apply([maker.change(2, "tasks", "a", [Column("title", "y")], inserts: false)])
    try replica.apply([maker.deletion(3, "tasks", "a")])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])
  }

  @Test("a partial change keeps the other columns; a whole record resets them")
  func partialAndWhole() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 5)])])
    try replica.apply([maker.change(2, "tasks", "a", [Column("title", "y")], inserts: false)])
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["y", 5]])
    // Deleted and inserted again elsewhere, with fewer columns: the others have their defaults.
    try replica.apply([maker.change(3, "tasks", "a", [Column("title", "z")])])
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["z", 0]])
  }

  @Test("NULL is a value; an absent column is not")
  func nullAgainstMissing() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", nil), Column("done", 1)])])
    #expect(try replica.rows("SELECT title, done FROM tasks") == [[nil, 1]])
    try replica.apply([maker.change(2, "tasks", "b", [Column("title", "x")])])
    #expect(try replica.rows("SELECT title, done FROM tasks WHERE id = 'b'") == [["x", 0]])
  }

  @Test("a later own edit wins over an older remote one, and loses to a newer one")
  func ownEdits() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 0)])])
    try replica.run("UPDATE tasks SET title = 'mine'")
    let now = replica.clock.now
    try replica.apply([
      maker.change(
        2, "tasks", "a", [Column("title", "older"), Column("done", 7)], inserts: false, at: now - 1)
    ])
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["mine", 7]])
    try replica.apply([
      maker.change(3, "tasks", "a", [Column("title", "newer")], inserts: false, at: now + 1)
    ])
    #expect(try replica.rows("SELECT title FROM tasks") == [["newer"]])
    #expect(try replica.pending.count == 1)
  }

  @Test("the greater device wins at equal times, as on the server")
  func ties() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")])])
    try replica.run("UPDATE tasks SET title = 'mine'")
    let mine = try replica.pending[0]
    let remote = Stamp(time: mine.time, device: maker.device)
    let own = Stamp(time: mine.time, device: try replica.file.identity().device)
    var change = maker.change(2, "tasks", "a", [Column("title", "theirs")], inserts: false)
    change.state.columns[0].stamp = remote
    try replica.apply([change])
    let winner: Value =
      Resolution.resolve(existing: own, incoming: remote) == .existing ? "mine" : "theirs"
    #expect(try replica.rows("SELECT title FROM tasks") == [[winner]])
  }

  @Test("a delete wins over a concurrent edit, and a later insert wins over a delete")
  func deletes() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")])])
    try replica.run("UPDATE tasks SET title = 'edited'")
    try replica.apply([maker.deletion(2, "tasks", "a", at: replica.clock.now - 5)])
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])

    try replica.apply([maker.change(3, "tasks", "b", [Column("title", "x")])])
    try replica.run("DELETE FROM tasks WHERE id = 'b'")
    try replica.apply([
      maker.change(
        4, "tasks", "b", [Column("title", "edit")], inserts: false, at: replica.clock.now + 5)
    ])
    #expect(try replica.rows("SELECT count(*) FROM tasks WHERE id = 'b'") == [[0]])
    try replica.apply([
      maker.change(5, "tasks", "b", [Column("title", "again")], at: replica.clock.now + 10)
    ])
    #expect(try replica.rows("SELECT title FROM tasks WHERE id = 'b'") == [["again"]])
  }

  @Test("children before their parents, in any order of pages, satisfy foreign keys at the end")
  func foreignKeys() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE parent(id TEXT PRIMARY KEY, name TEXT);
      CREATE TABLE child(id TEXT PRIMARY KEY, parent TEXT NOT NULL REFERENCES parent(id))
      """)
    try replica.file.track(["parent", "child"])
    let result = try replica.apply([
      maker.change(1, "child", "c", [Column("parent", "p")]),
      maker.change(2, "parent", "p", [Column("name", "P")]),
    ])
    #expect(result == AppliedPull(applied: 2, refused: 0))
  }

  @Test("a row that violates a foreign key is deferred with the reason, and applied once it fits")
  func danglingForeignKey() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE parent(id TEXT PRIMARY KEY);
      CREATE TABLE child(id TEXT PRIMARY KEY, parent TEXT NOT NULL REFERENCES parent(id))
      """)
    try replica.file.track(["parent", "child"])
    let result = try replica.apply([
      maker.change(1, "child", "orphan", [Column("parent", "missing")]),
      maker.change(2, "parent", "p", []), maker.change(3, "child", "c", [Column("parent", "p")]),
    ])
    #expect(result.refused == 1)
    #expect(try replica.rows("SELECT id FROM child") == [["c"]])
    #expect(try replica.file.reports.status().deferred == 1)
    #expect(try replica.file.waiting.oldest(9)[0].reason.contains("foreign key"))
    try replica.apply([maker.change(4, "parent", "missing", [])])
    #expect(try replica.rows("SELECT id FROM child ORDER BY id") == [["c"], ["orphan"]])
    #expect(try replica.file.reports.status().deferred == 0)
  }

  @Test(
    "a row with local children comes back after a remote delete; other changes are applied",
    arguments: ["", "WITHOUT ROWID"])
  func deletedParent(options: String) throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE parent(id TEXT PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE child(id TEXT PRIMARY KEY, parent TEXT REFERENCES parent,
        code TEXT REFERENCES parent(code)) \(options)
      """)
    try replica.file.track(["parent", "child"])
    try replica.apply([
      maker.change(1, "parent", "p", []), maker.change(2, "parent", "q", [Column("code", "Q")]),
    ])
    try replica.run("INSERT INTO child VALUES ('c', 'p', NULL), ('d', NULL, 'Q')")
    let result = try replica.apply([
      maker.deletion(3, "parent", "p"), maker.deletion(4, "parent", "q"),
      maker.change(5, "parent", "r", []), maker.change(6, "child", "e", [Column("parent", "r")]),
    ])
    #expect(result == AppliedPull(applied: 2, refused: 0))
    #expect(try replica.rows("SELECT id FROM parent ORDER BY id") == [["p"], ["q"], ["r"]])
    #expect(try replica.file.reports.status().deferred == 0)
    let back = try replica.pending.suffix(2)
    #expect(back.map(\.kind) == [.insert, .insert])
    #expect(back.map(\.key.record) == ["p", "q"])
    #expect(back.last?.columns == [Column("code", "Q")])
  }

  @Test("a row that violates a constraint is deferred; the others are applied")
  func refusedRow() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, n INTEGER NOT NULL CHECK (n > 0))")
    try replica.file.track(["t"])
    let result = try replica.apply([
      maker.change(1, "t", "bad", [Column("n", -1)]),
      maker.change(2, "t", "good", [Column("n", 1)]),
    ])
    #expect(result == AppliedPull(applied: 1, refused: 1))
    #expect(try replica.rows("SELECT id FROM t") == [["good"]])
    // A newer change repairs it.
    try replica.apply([maker.change(3, "t", "bad", [Column("n", 2)], inserts: false)])
    #expect(try replica.rows("SELECT id, n FROM t ORDER BY n") == [["good", 1], ["bad", 2]])
    #expect(try replica.file.reports.status().deferred == 0)
  }

  @Test("an update without all required columns reaches the existing row")
  func requiredColumns() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT NOT NULL, b TEXT NOT NULL)")
    try replica.file.track(["t"])
    try replica.apply([maker.change(1, "t", "r", [Column("a", "1"), Column("b", "2")])])
    try replica.apply([maker.change(2, "t", "r", [Column("b", "3")], inserts: false)])
    #expect(try replica.rows("SELECT a, b FROM t") == [["1", "3"]])
  }

  @Test("unknown tables and columns are kept, and appear with the migration")
  func unknown() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x"), Column("due", "today")]),
      maker.change(2, "notes", "n", [Column("body", "hello")]),
    ])
    try replica.apply([maker.change(3, "notes", "n", [Column("tag", "t")], inserts: false)])
    #expect(try replica.rows("SELECT title FROM tasks") == [["x"]])
    #expect(try replica.file.reports.status().toApply == 2)
    #expect(try replica.file.reports.status().deferred == 0)
    try replica.run("ALTER TABLE tasks ADD COLUMN due TEXT")
    #expect(try replica.rows("SELECT title, due FROM tasks") == [["x", "today"]])
    try replica.file.track(["notes"], creatingKey: "id")
    #expect(try replica.rows("SELECT id, body, tag FROM notes") == [["n", "hello", "t"]])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.file.waiting.oldest(9).isEmpty)
  }

  @Test("rows tracked after a pull are concurrent with the pulled records, not later")
  func trackedLate() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    try replica.run("INSERT INTO notes VALUES ('n', 'mine')")
    try replica.apply([maker.change(1, "notes", "n", [Column("body", "theirs")])])
    try replica.file.track(["notes"])
    #expect(try replica.pending.map(\.base) == [0])
  }

  @Test("an older page never reverts a confirmed write before the write's own sequence is reached")
  func readYourWrites() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")])])
    try replica.run("UPDATE tasks SET title = 'mine'")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 9))
    try replica.apply(
      [maker.change(5, "tasks", "a", [Column("title", "older")], inserts: false, at: 1)], head: 5)
    #expect(try replica.rows("SELECT title FROM tasks") == [["mine"]])
    // The page proves that the server lacks the write: it is sent again.
    #expect(try replica.pending.count == 1)
    let again = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(again, first: 9))
    try replica.apply(
      [maker.change(9, "tasks", "a", [Column("title", "decided")], inserts: false)], head: 9)
    #expect(try replica.rows("SELECT title FROM tasks") == [["decided"]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("the device's clock moves past every time that it has seen")
  func clockObserves() throws {
    let replica = try ReplicaFixture.withTasks()
    let future = replica.clock.now + 3_600_000
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")], at: future)])
    try replica.run("UPDATE tasks SET title = 'y'")
    #expect(try replica.pending[0].time > HybridTimestamp(milliseconds: future))
  }

  @Test("a time at the end of its range moves no clock, so that own times still differ")
  func clockIgnoresTheEnd() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x")], at: Limits.wallTimeMax)
    ])
    for title in ["y", "z"] { try replica.run("INSERT INTO tasks(id) VALUES (?)", [.text(title)]) }
    let times = try replica.pending.map(\.time)
    #expect(times[0] < times[1] && times[1] < HybridTimestamp(milliseconds: replica.clock.now + 9))
  }

  @Test("a pull list that cannot be completed is dropped, and starts again")
  func discarded() throws {
    let replica = try ReplicaFixture.withTasks()
    let first = maker.page(
      [maker.change(1, "tasks", "a", [Column("title", "x")])], head: 2, more: true)
    try replica.file.incoming.stage(first.body, first.head, changes: 1)
    try replica.file.incoming.discard()
    #expect(try replica.file.syncState().received == 0)
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "y")])])
    #expect(try replica.rows("SELECT title FROM tasks") == [["y"]])
  }

  @Test("the user's triggers do not write tracked tables again when a change is applied")
  func userTriggersOnApply() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run(
      """
      CREATE TABLE history(id TEXT PRIMARY KEY, title TEXT);
      CREATE TABLE search(title TEXT);
      CREATE TRIGGER made AFTER INSERT ON tasks BEGIN
        UPDATE tasks SET done = 50 WHERE id = NEW.id;
      END;
      CREATE TRIGGER edited AFTER UPDATE OF title ON tasks BEGIN
        UPDATE tasks SET done = done + 1 WHERE id = NEW.id;
        INSERT INTO history VALUES (NEW.id || NEW.title, NEW.title);
        INSERT INTO search VALUES (NEW.title);
      END
      """)
    try replica.file.track(["history"])
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 1)])])
    try replica.apply([maker.change(2, "tasks", "a", [Column("title", "y")], inserts: false)])
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["y", 1]])
    #expect(try replica.rows("SELECT count(*) FROM history") == [[0]])
    // The triggers themselves maintain an unsynced table.
    #expect(try replica.rows("SELECT title FROM search") == [["y"]])
    #expect(try replica.pending.isEmpty)
    // The user's own writes fire them as always, and all of it is recorded.
    try replica.run("UPDATE tasks SET title = 'z'")
    #expect(try replica.rows("SELECT done FROM tasks") == [[2]])
    #expect(try replica.pending.map(\.key.table) == ["tasks", "tasks", "history"])
  }

  @Test("a malformed page changes nothing")
  func malformed() throws {
    let replica = try ReplicaFixture.withTasks()
    let page = maker.page([maker.change(1, "tasks", "a", [Column("title", "x")])])
    #expect(throws: (any Error).self) {
      try replica.file.apply(last: Array(page.body.dropLast(3)), page.head)
    }
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])
    #expect(try replica.file.syncState().applied == 0)
  }

  @Test("the next pull knows a column that another process added")
  func columnOfAnotherProcess() throws {
    let replica = try ReplicaFixture.withTasks()
    let maker = PageMaker()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "one")])])
    let other = try replica.other()
    _ = try other.write { try $0.execute("ALTER TABLE tasks ADD COLUMN extra TEXT") }
    try replica.apply(
      [maker.change(2, "tasks", "a", [Column("extra", "new")], inserts: false)])
    #expect(try replica.rows("SELECT extra FROM tasks") == [["new"]])
  }

  @Test("deferred values of a record are removed when the record is deleted here")
  func keptGoesWithItsRecord() throws {
    let replica = try ReplicaFixture.withTasks()
    let maker = PageMaker()
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("extra", "kept"), Column("title", "one")])])
    try replica.run("DELETE FROM tasks")
    try replica.run("ALTER TABLE tasks ADD COLUMN extra TEXT")
    #expect(try replica.rows("SELECT id FROM tasks").isEmpty)
  }
}
