import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Names of tables and columns that differ in the case of ASCII letters alone (SPEC.md §23).
@Suite("Spellings of names", .hangLimit)
struct SpellingTests {
  private let maker = PageMaker()

  @Test("a column whose name changes in case alone stays the column of the space")
  func renamedColumn() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "one")])])
    try replica.run("ALTER TABLE tasks RENAME COLUMN title TO Title")
    try replica.run("UPDATE tasks SET Title = 'two'")
    #expect(try replica.pending.map(\.columns) == [[Column("title", "two")]])
    try replica.apply([maker.change(2, "tasks", "b", [Column("title", "three")])])
    #expect(
      try replica.rows("SELECT id, Title FROM tasks ORDER BY id") == [
        ["a", "two"], ["b", "three"],
      ])
    let plain = try SQLiteConnection(path: replica.path)
    try plain.execute("ALTER TABLE tasks RENAME COLUMN Title TO TITLE")
    try replica.apply([maker.change(3, "tasks", "c", [Column("title", "four")])])
    #expect(try replica.rows("SELECT TITLE FROM tasks WHERE id = 'c'") == [["four"]])
    #expect(try SpellingAdoption(file: replica.file).clashes().isEmpty)
  }

  @Test("a table whose name changes in case alone stays the table of the space")
  func renamedTable() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "one")])])
    // SQLite takes two statements for this, and another program makes them.
    let plain = try SQLiteConnection(path: replica.path)
    try plain.execute("ALTER TABLE tasks RENAME TO other; ALTER TABLE other RENAME TO Tasks")
    try replica.run("UPDATE tasks SET title = 'two'")
    #expect(try replica.pending.map(\.key) == [RecordKey(table: "tasks", record: "a")])
    try replica.apply([maker.change(2, "tasks", "b", [Column("title", "three")])])
    #expect(try replica.rows("SELECT count(*) FROM Tasks") == [[2]])
  }

  @Test("a table of a new device has the spelling of the space, with all that waits")
  func table() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE items(id TEXT PRIMARY KEY, n)")
    try replica.file.track(["items"])
    try replica.run("INSERT INTO items VALUES ('mine', 1)")
    try replica.apply([maker.change(1, "Items", "theirs", [Column("n", 2)])])
    #expect(
      try replica.rows("SELECT * FROM items ORDER BY id") == [["mine", 1], ["theirs", 2]])
    try replica.run("UPDATE items SET n = n + 1")
    #expect(Set(try replica.pending.map(\.key.table)) == ["Items"])
    let sent = try replica.freeze().flatMap(\.operations)
    #expect(!sent.isEmpty && sent.allSatisfy { $0.key.table == "Items" })
    try replica.apply([maker.change(2, "Items", "third", [Column("n", 3)])])
    #expect(try replica.rows("SELECT count(*) FROM items") == [[3]])
  }

  @Test("of several other spellings, one is used, and the rest waits")
  func several() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE items(id TEXT PRIMARY KEY, value)")
    try replica.file.track(["items"])
    try replica.apply([
      maker.change(1, "Items", "a", [Column("Value", 1), Column("VALUE", 2)]),
      maker.change(2, "ITEMS", "b", [Column("VALUE", 3)]),
    ])
    #expect(try replica.rows("SELECT * FROM items") == [["b", 3]])
    #expect(
      try SpellingAdoption(file: replica.file).clashes() == [
        NameClash(table: "Items", column: nil, local: "items")
      ])
  }

  @Test("a table that is made after its changes came has their spelling")
  func laterTable() throws {
    let replica = try ReplicaFixture()
    try replica.apply([maker.change(1, "Items", "a", [Column("N", 2)])])
    try replica.run("CREATE TABLE items(id TEXT PRIMARY KEY, n); INSERT INTO items VALUES ('b', 1)")
    try replica.file.track(["items"])
    #expect(try replica.rows("SELECT * FROM items ORDER BY id") == [["a", 2], ["b", 1]])
    #expect(try replica.pending.map(\.key) == [RecordKey(table: "Items", record: "b")])
    #expect(try replica.pending.map(\.columns) == [[Column("N", 1)]])
  }

  @Test(
    "a column of a new device has the spelling of the space, and waiting writes keep their values")
  func column() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, V NOT NULL, w)")
    try replica.file.track(["t"])
    let text: Value = "{\"V\":1,\"V\":2} [\"+V\",\"~V\"] \\\"V\":"
    try replica.run("INSERT INTO t VALUES ('mine', ?1, ?2)", [text, .blob([1, 2])])
    try replica.run("UPDATE t SET V = 9007199254740993 WHERE id = 'mine'")
    try replica.apply([maker.change(1, "t", "theirs", [Column("v", 0.1), Column("w", 1)])])
    #expect(
      try replica.rows("SELECT V, w FROM t ORDER BY id")
        == [[.integer(9_007_199_254_740_993), .blob([1, 2])], [0.1, 1]])
    #expect(
      try replica.pending.map(\.columns) == [
        [Column("v", text), Column("w", .blob([1, 2]))],
        [Column("v", .integer(9_007_199_254_740_993))],
      ])
    try replica.run("UPDATE t SET V = 5 WHERE id = 'theirs'")
    #expect(try replica.pending.last?.columns == [Column("v", 5)])
    #expect(try SpellingAdoption(file: replica.file).clashes().isEmpty)
  }

  @Test("a column of the space with the name of a renamed one here waits with the reason")
  func renamed() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, body)")
    try replica.file.track(["t"])
    try replica.file.write { try $0.renameColumn("body", of: "t", to: "text") }
    try replica.apply([maker.change(1, "t", "a", [Column("body", 1), Column("text", 2)])])
    #expect(try replica.rows("SELECT text FROM t") == [[1]])
    #expect(
      try SpellingAdoption(file: replica.file).clashes() == [
        NameClash(table: "t", column: "text", local: "text")
      ])
    let waiting = try replica.file.waiting.oldest(9)
    #expect(waiting.map(\.reason).contains { $0.contains("is the column body of the space") })
  }

  @Test("if the space knows both spellings, the other one waits and is named")
  func clash() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      "CREATE TABLE t(id TEXT PRIMARY KEY, V); CREATE TABLE items(id TEXT PRIMARY KEY)")
    try replica.file.track(["t", "items"])
    try replica.run("INSERT INTO t VALUES ('mine', 1); INSERT INTO items VALUES ('x')")
    _ = try replica.freeze()
    try replica.apply([
      maker.change(1, "t", "theirs", [Column("v", 2)]), maker.change(2, "Items", "y", []),
      maker.change(3, "t", "key", [Column("ID", 3)]), maker.change(4, "absent", "z", []),
    ])
    #expect(try replica.rows("SELECT V FROM t WHERE id = 'theirs'") == [[.null]])
    #expect(
      try SpellingAdoption(file: replica.file).clashes() == [
        NameClash(table: "Items", column: nil, local: "items"),
        NameClash(table: "t", column: "ID", local: "id"),
        NameClash(table: "t", column: "v", local: "V"),
      ])
    try replica.run("UPDATE t SET V = 3 WHERE id = 'theirs'")
    #expect(try replica.pending.last?.columns == [Column("V", 3)])
  }

  @Test(
    "a recorded column gets its other name, and texts with that name stay",
    arguments: [
      (#"{"V":1,"w":"V"}"#, #"{"v":1,"w":"V"}"#),
      (#"{"w":{"blob":"AA=="},"V":{"blob":"V"}}"#, #"{"w":{"blob":"AA=="},"v":{"blob":"V"}}"#),
      (#"{"w":"a,\"V\":1","V":"{\"V\":2}"}"#, #"{"w":"a,\"V\":1","v":"{\"V\":2}"}"#),
      (#"["+V","~V","+VV"]"#, #"["+v","~v","+VV"]"#), ("{}", "{}"), ("", ""),
    ])
  func recordedName(_ json: String, _ expected: String) {
    let renamed = RecordedNames(from: "V", to: "v").apply(Array(json.utf8))
    #expect(String(decoding: renamed, as: UTF8.self) == expected)
  }
}
