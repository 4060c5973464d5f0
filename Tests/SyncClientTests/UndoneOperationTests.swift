import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The queue of operations: undoing those that the server does not accept", .hangLimit)
struct UndoneOperationTests {
  private let maker = PageMaker()

  private func replica() throws -> ReplicaFixture {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 0)]),
      maker.change(2, "tasks", "b", [Column("title", "y"), Column("done", 0)]),
    ])
    return replica
  }

  @Test(
    "an undone operation leaves the queue, and the next pull fetches its record",
    arguments: [false, true])
  func removed(isFrozen: Bool) throws {
    let replica = try replica()
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'z')")
    try replica.run("DELETE FROM tasks WHERE id = 'b'")
    if isFrozen { _ = try replica.freeze() }
    try replica.file.settings.setWritesRefused("the token's role is reader")
    for operation in try replica.pending.reversed() {
      _ = try replica.file.undoSteps.undo(operation.id)
    }
    #expect(try replica.pending.isEmpty)
    #expect(
      try replica.rows("SELECT * FROM tasks ORDER BY id") == [["a", "x", 0], ["b", "y", 0]])
    #expect(
      try replica.rows("SELECT record FROM ferry_refresh ORDER BY record") == [["a"], ["b"], ["c"]])
    // Later writes are recorded as before.
    try replica.run("UPDATE tasks SET done = 1 WHERE id = 'b'")
    #expect(try replica.freeze().flatMap(\.operations).map(\.columns) == [[Column("done", 1)]])
  }

  @Test("an operation before another one of its record is undone by an ordinary operation")
  func dependent() throws {
    let replica = try replica()
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    try replica.run("UPDATE tasks SET done = 1 WHERE id = 'a'")
    try replica.file.settings.setWritesRefused("the token's role is reader")
    _ = try replica.file.undoSteps.undo(try #require(try replica.pending.first).id)
    #expect(try replica.pending.count == 3)
    #expect(try replica.rows("SELECT * FROM tasks WHERE id = 'a'") == [["a", "x", 1]])
    for operation in try replica.pending.reversed() {
      _ = try replica.file.undoSteps.undo(operation.id)
    }
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT * FROM tasks WHERE id = 'a'") == [["a", "x", 0]])
  }

  @Test("a batch that is never sent leaves the queue, and the next pull fetches its records")
  func batch() throws {
    let replica = try replica()
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'b'")
    _ = try replica.file.write { try $0.batch("tasks", where: "done = 0", set: ["done": 1]) }
    try replica.file.settings.setWritesRefused("the token's role is reader")
    for operation in try replica.pending.reversed() {
      _ = try replica.file.undoSteps.undo(operation.id)
    }
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT count(*) FROM ferry_batch_rows") == [[0]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["a", "b"])
  }

  @Test(
    "an operation without a value left to undo leaves the queue if it is never sent",
    arguments: [true, false])
  func replaced(isDeleted: Bool) throws {
    let replica = try replica()
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    try replica.file.settings.setWritesRefused("the token's role is reader")
    let later: Int64 = 1_999_000_000_000
    try replica.apply([
      isDeleted
        ? maker.deletion(3, "tasks", "a", at: later)
        : maker.change(
          3, "tasks", "a", [Column("title", "theirs")], inserts: false, at: later)
    ])
    let before = try replica.rows("SELECT * FROM tasks ORDER BY id")
    #expect(before == (isDeleted ? [["b", "y", 0]] : [["a", "theirs", 0], ["b", "y", 0]]))
    _ = try replica.file.undoSteps.undo(try #require(try replica.pending.first).id)
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT * FROM tasks ORDER BY id") == before)
    #expect(try replica.file.refreshes.next().map(\.record) == ["a"])
  }

  /// A list with an item, which the server has, deleted here by a cascade.
  private func deletedFamily() throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE lists(id TEXT PRIMARY KEY);
      CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE)
      """)
    try replica.file.track(["lists", "items"])
    try replica.apply([
      maker.change(1, "lists", "l", []), maker.change(2, "items", "i", [Column("list", "l")]),
    ])
    try replica.run("DELETE FROM lists")
    #expect(try replica.pending.map(\.key.record) == ["i", "l"])
    try replica.file.settings.setWritesRefused("the token's role is reader")
    return replica
  }

  @Test("a record and those that went along with it come back, the newest operation first")
  func family() throws {
    let replica = try deletedFamily()
    for operation in try replica.pending.reversed() {
      #expect(try replica.file.undoSteps.undo(operation.id) >= 0)
    }
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT * FROM items") == [["i", "l"]])
    #expect(try replica.rows("SELECT * FROM lists") == [["l"]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["i", "l"])
  }

  @Test("a record whose parent is missing comes back with it, by ordinary operations")
  func childFirst() throws {
    let replica = try deletedFamily()
    _ = try replica.file.undoSteps.undo(try #require(try replica.pending.first).id)
    #expect(
      try replica.pending.map { "\($0.kind) \($0.key.record)" } == [
        "delete i", "delete l", "insert l", "insert i",
      ])
    #expect(try replica.rows("SELECT * FROM items") == [["i", "l"]])
    for operation in try replica.pending.reversed() {
      _ = try replica.file.undoSteps.undo(operation.id)
    }
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT * FROM items") == [["i", "l"]])
  }

  @Test("an operation is undone by an ordinary one as long as the server accepts operations")
  func accepted() throws {
    let replica = try replica()
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    _ = try replica.file.undoSteps.undo(try #require(try replica.pending.first).id)
    #expect(
      try replica.pending.map(\.columns) == [[Column("title", "mine")], [Column("title", "x")]])
  }

  @Test("an operation depends on the newest one that is sent, and not on one that cancelled out")
  func dependency() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a'), ('b')")
    try replica.run("DELETE FROM tasks WHERE id = 'b'")
    let sent = try #require(try replica.freeze().first)
    #expect(sent.operations.map(\.key.record) == ["a"])
    try replica.run("INSERT INTO tasks(id) VALUES ('c')")
    try replica.run("INSERT INTO tasks(id) VALUES ('d')")
    let pending = try replica.file.queue.oldest(10)
    let next = try #require(pending.first { $0.operation.key.record == "c" })
    #expect(next.dependency == sent.operations.last?.id)
    #expect(pending.last?.dependency == next.operation.id)
    let shown = try replica.rows("SELECT dependency FROM ferry_pending WHERE record = 'c'")
    #expect(shown == [[.text("\(sent.operations[0].id)")]])
  }

  // MARK: Foreign keys

  @Test(
    "an undo that a foreign key rejects names the tables",
    arguments: [
      (
        "INSERT INTO tasks VALUES ('t', 'k')", "INSERT INTO notes VALUES ('n', 't')",
        "rows of notes refer to a row of tasks"
      ),
      (
        "UPDATE tasks SET kind = 'other' WHERE id = 'old'", "DELETE FROM kinds WHERE id = 'k'",
        "in tasks, kind refers to kinds"
      ),
      (
        "DELETE FROM tasks WHERE id = 'old'", "DELETE FROM kinds WHERE id = 'k'",
        "in tasks, kind refers to kinds"
      ),
    ], [false, true])
  func foreignKeys(_ test: (own: String, later: String, reason: String), isReader: Bool) throws {
    let replica = try ReplicaFixture()
    // Untracked tables: an undo returns no rows of theirs.
    try replica.run(
      """
      CREATE TABLE kinds(id TEXT PRIMARY KEY);
      CREATE TABLE tasks(id TEXT PRIMARY KEY, kind TEXT REFERENCES kinds(id));
      CREATE TABLE notes(id TEXT PRIMARY KEY, task TEXT REFERENCES tasks(id));
      INSERT INTO kinds VALUES ('k'), ('other')
      """)
    try replica.file.track(["tasks"])
    try replica.run("INSERT INTO tasks VALUES ('old', 'k')")
    try replica.run(test.own)
    let own = try #require(try replica.pending.last)
    try replica.run(test.later)
    if isReader { try replica.file.settings.setWritesRefused("the token's role is reader") }
    let before = try replica.rows("SELECT * FROM tasks ORDER BY id")
    let error = #expect(throws: SQLiteError.self) { try replica.file.undoSteps.undo(own.id) }
    #expect(try #require(error).message.contains(test.reason))
    #expect(try replica.rows("SELECT * FROM tasks ORDER BY id") == before)
    #expect(try replica.pending.last?.id == own.id, "the operation stays in the queue")
  }
}
