import FerryProtocol
import FerrySQLite
import Testing

@testable import FerrySyncClient

/// Rows of a table created again by another program (SPEC.md §25).
struct UnrecordedWritesTests {
  private static let pages = PageMaker()
  private static let server = pages.change(2, "tasks", "a", [Column("title", "theirs")])

  private static func schema(_ columns: String) -> Change {
    let document = #"{"version":1,"tables":{"tasks":{"columns":\#(columns)}}}"#
    return pages.change(
      1, "ferry_schema", "schema", [Column("document", .text(document)), Column("version", 1)])
  }

  /// Returns a replica with the server's record, and a table made again by another program.
  ///
  /// - Parameters:
  ///   - write: what the other program writes.
  ///   - counting: whether `done` is a counter.
  ///   - before: the device's writes before the new table, after an update of `done` to 1.
  private static func rebuilt(
    _ write: String, counting: Bool = false, before: (ReplicaFixture) throws -> Void = { _ in }
  ) throws -> ReplicaFixture {
    let fixture = try ReplicaFixture.withTasks()
    let policies = counting ? #"{"done":"counter"}"# : "{}"
    try fixture.apply([schema(policies), server])
    try fixture.run("UPDATE tasks SET done = coalesce(done, 0) + 1 WHERE id = 'a'")
    try before(fixture)
    let other = try SQLiteConnection(path: fixture.path)
    try other.transaction {
      try other.execute(
        "CREATE TABLE next(id TEXT PRIMARY KEY, title TEXT, done INTEGER DEFAULT 0)")
      try other.execute("INSERT INTO next SELECT * FROM tasks")
      try other.execute("DROP TABLE tasks")
      try other.execute("ALTER TABLE next RENAME TO tasks")
      try other.execute(write)
    }
    return fixture
  }

  private static func reconcile(_ fixture: ReplicaFixture) throws -> ReconciledRows {
    let tables = try fixture.file.unrecordedWrites.current()
    let table = try #require(tables.first)
    return try fixture.file.reconciler.reconcile([server], of: table)
  }

  @Test("a write that was recorded after the table was made again is not recorded twice")
  func recordedLater() throws {
    let fixture = try Self.rebuilt("SELECT 1")
    try fixture.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    #expect(try Self.reconcile(fixture).recorded == 0)
    #expect(try fixture.pending.map(\.columns) == [[Column("done", 1)], [Column("title", "mine")]])
  }

  @Test("a value that a later batch writes over a pending one is not recorded as an edit")
  func batchLater() throws {
    let fixture = try Self.rebuilt("SELECT 1")
    _ = try fixture.file.write { try $0.batch("tasks", where: "done = 1", set: ["done": 7]) }
    #expect(try Self.reconcile(fixture).recorded == 0)
    #expect(try fixture.pending.map(\.columns) == [[Column("done", 1)], [Column("done", 7)]])
    #expect(try fixture.pending.map(\.kind) == [.update, .batch])
  }

  @Test("a value written unrecorded over that of a pending batch is recorded as an edit after it")
  func overwrittenBatch() throws {
    let fixture = try Self.rebuilt("UPDATE tasks SET done = 9") { fixture in
      _ = try fixture.file.write { try $0.batch("tasks", where: "done = 1", set: ["done": 7]) }
    }
    #expect(try Self.reconcile(fixture).recorded == 1)
    let written = try fixture.pending.map(\.columns)
    #expect(written == [[Column("done", 1)], [Column("done", 7)], [Column("done", 9)]])
  }

  @Test("a counter that was raised after the table was made again is not raised twice")
  func raisedLater() throws {
    let fixture = try Self.rebuilt("SELECT 1", counting: true)
    try fixture.run("UPDATE tasks SET done = done + 5 WHERE id = 'a'")
    #expect(try Self.reconcile(fixture).recorded == 0)
    #expect(try fixture.pending.map(\.columns) == [[Column("done", 1)], [Column("done", 5)]])
    #expect(try fixture.pending.allSatisfy { $0.increments == ["done"] })
  }

  @Test(
    "a pull from the start removes what others deleted since the comparison, and before it nothing",
    arguments: [true, false])
  func deletedSince(isCompared: Bool) throws {
    let fixture = try Self.rebuilt("INSERT INTO tasks(id, title) VALUES ('mine', 'new')")
    if isCompared {
      let table = try #require(try fixture.file.unrecordedWrites.current().first)
      let absent = Self.pages.deletion(0, "tasks", "mine")
      let result = try fixture.file.reconciler.reconcile([Self.server, absent], of: table)
      #expect(result.recorded == 1)
      try fixture.file.reconciler.markCompared(table, result)
    }
    try ReplacingPull(fixture.file).begin(Problem(.cursorExpired, "the cursor is too old"))
    try fixture.apply([Self.pages.change(9, "tasks", "b", [Column("title", "other")])])
    let rows = try fixture.rows("SELECT id FROM tasks ORDER BY id")
    #expect(rows == (isCompared ? [["b"], ["mine"]] : [["a"], ["b"], ["mine"]]))
  }

  @Test("a value written unrecorded over a pending one is recorded as an edit after it")
  func overwritten() throws {
    let fixture = try Self.rebuilt("UPDATE tasks SET done = 2")
    #expect(try Self.reconcile(fixture).recorded == 1)
    #expect(try fixture.pending.map(\.columns) == [[Column("done", 1)], [Column("done", 2)]])
  }
}
