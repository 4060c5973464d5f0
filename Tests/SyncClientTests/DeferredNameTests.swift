import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Names from the server that this device cannot use itself (SPEC.md §23).
@Suite("Names of other devices", .hangLimit)
struct DeferredNameTests {
  private let maker = PageMaker()
  private static let attack: Name =
    "x\"\u{301});UPDATE ferry_replica SET server='http://evil.example';--"

  private func waiting(_ replica: ReplicaFixture) throws -> [Name: WaitingChange] {
    Dictionary(
      uniqueKeysWithValues: try replica.file.waiting.oldest(100).map { ($0.key.record, $0) })
  }

  @Test("a column's name is never run as SQL when a table is created from pulled records")
  func attack() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "pwn", "a", [Column(Self.attack, "value")])])
    let before = try replica.rows("SELECT * FROM ferry_replica")
    try replica.file.track(["pwn"], creatingKey: "id")
    #expect(try replica.rows("SELECT server FROM ferry_replica") == before.map { _ in [.null] })
    #expect(try replica.file.tables.schema(of: "pwn").columns.map(\.name) == [Self.attack])
    #expect(try replica.rows("SELECT * FROM pwn") == [["a", "value"]])
    try replica.run("UPDATE pwn SET \(quoted(Self.attack)) = 'mine'")
    #expect(try replica.pending.map(\.columns) == [[Column(Self.attack, "mine")]])
  }

  @Test("a table and a key with a quote before a combining mark can be created and untracked")
  func tables() throws {
    let replica = try ReplicaFixture.withTasks()
    let (table, key): (Name, Name) = ("t'\"\u{301};--", "k\"\u{301}")
    try replica.apply([maker.change(1, table, "a", [Column("v", 1)])])
    try replica.file.track([table], creatingKey: key)
    try replica.run("INSERT INTO \(quoted(table)) VALUES ('b', 2)")
    #expect(try replica.pending.map(\.key) == [RecordKey(table: table, record: "b")])
    try replica.file.tracking.untrack(table)
    #expect(try replica.file.tables.tracked.names() == ["tasks"])
  }

  @Test(
    "tables named like SQL keywords are applied, recorded and compared",
    arguments: ["excluded", "new", "old", "ferry row", "t", "p", "c", "select"] as [Name])
  func words(table: Name) throws {
    let replica = try ReplicaFixture()
    try replica.apply([maker.change(1, table, "a", [Column("excluded", 1), Column("new", 2)])])
    try replica.file.track([table], creatingKey: "old")
    try replica.apply([
      maker.change(2, table, "a", [Column("excluded", 3), Column("new", 4)]),
      maker.change(3, table, "b", [Column("new", 5)]),
    ])
    try replica.apply([maker.change(4, table, "a", [Column("new", 6)], inserts: false)])
    #expect(
      try replica.rows("SELECT old, excluded, new FROM \(quoted(table)) ORDER BY old")
        == [["a", 3, 6], ["b", .null, 5]])
    try replica.run("UPDATE \(quoted(table)) SET new = 7 WHERE old = 'b'")
    #expect(try replica.pending.map(\.columns) == [[Column("new", 7)]])
  }

  @Test("a column that only looks like one of the table's is deferred, and the rest is applied")
  func kelvin() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE items(id TEXT PRIMARY KEY, SKU, n)")
    try replica.file.track(["items"])
    let lookalike: Name = "S\u{212A}U"
    try replica.apply([
      maker.change(1, "items", "a", [Column("SKU", "right"), Column("n", 1)]),
      maker.change(2, "items", "b", [Column(lookalike, "wrong"), Column("n", 2)]),
    ])
    #expect(
      try replica.rows("SELECT * FROM items ORDER BY id")
        == [["a", "right", 1], ["b", .null, 2]])
    #expect(try waiting(replica)["b"]?.columns == [Column(lookalike, "wrong")])
    try replica.apply([maker.change(3, "items", "c", [Column("n", 3)])])
    #expect(try replica.rows("SELECT count(*) FROM items") == [[3]])
  }

  @Test("another spelling of a column or table is deferred until the table has that spelling")
  func spellings() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE items(id TEXT PRIMARY KEY, SKU, n)")
    try replica.file.track(["items"])
    try replica.apply([
      maker.change(1, "items", "a", [Column("SKU", "upper"), Column("sku", "lower")]),
      maker.change(2, "items", "b", [Column("ID", "no key"), Column("n", 1)]),
      maker.change(3, "Items", "c", [Column("n", 1)]),
      maker.change(4, "others", "d", [Column("n", 1)]),
    ])
    #expect(try replica.rows("SELECT * FROM items") == [["a", "upper", .null], ["b", .null, 1]])
    let found = try waiting(replica)
    #expect(found["a"]?.columns == [Column("sku", "lower")])
    #expect(
      found["a"]?.reason.contains("SQLite uses the existing column SKU for its column sku") == true)
    #expect(
      found["b"]?.reason.contains("SQLite uses the existing column id for its column ID") == true)
    #expect(
      found["c"]?.reason.contains("SQLite uses the existing table items for this name") == true)
    #expect(found["d"]?.reason == "its table or column does not exist here yet")
    let scan = try TableScan("items", on: replica.file.connection, limits: .standard)
    #expect(
      try scan.received(RecordKey(table: "items", record: "a"))?.sortedByBytes()
        == [Column("SKU", "upper"), Column("n", .null), Column("sku", "lower")])
    try replica.run("ALTER TABLE items DROP COLUMN SKU")
    try replica.run("ALTER TABLE items ADD COLUMN sku")
    #expect(try replica.rows("SELECT sku FROM items ORDER BY id") == [["lower"], [.null]])
  }

  @Test("of columns that SQLite treats as one, a created table gets the first by bytes")
  func creating() throws {
    let replica = try ReplicaFixture()
    try replica.apply([
      maker.change(1, "t", "a", [Column("sku", 1), Column("\u{E9}", 2)]),
      maker.change(2, "t", "b", [Column("SKU", 3), Column("\u{C9}", 4)]),
    ])
    #expect(throws: ReplicaError.self) { try replica.file.track(["t"], creatingKey: "Sku") }
    #expect(throws: ReplicaError.self) { try replica.file.track(["t"], creatingKey: "a\u{0}b") }
    try replica.file.track(["t"], creatingKey: "id")
    let columns = try replica.file.tables.schema(of: "t").columns.map(\.name)
    #expect(columns == ["SKU", "\u{C9}", "\u{E9}"])
    #expect(try replica.rows("SELECT id, SKU FROM t ORDER BY id") == [["a", .null], ["b", 3]])
    #expect(try waiting(replica).mapValues(\.columns) == ["a": [Column("sku", 1)]])
  }
}

/// Records unfit for this device's schema.
@Suite("Records that cannot be applied", .hangLimit)
struct DeferredRecordTests {
  private let maker = PageMaker()

  /// Applies three records, of which the second cannot be taken, and then more.
  private func apply(_ bad: Value, to replica: ReplicaFixture) throws -> String? {
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "{}")]),
      maker.change(2, "tasks", "b", [Column("title", bad)]),
      maker.change(3, "tasks", "c", [Column("title", "{}")]),
    ])
    try replica.apply([maker.change(4, "tasks", "d", [Column("title", "{}")])])
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["c"], ["d"]])
    #expect(try replica.file.syncState().applied == 4)
    #expect(try replica.pending.isEmpty)
    let waiting = try replica.file.waiting.oldest(10)
    #expect(waiting.map(\.key.record) == ["b"])
    #expect(waiting.map(\.columns) == [[Column("title", bad)]])
    return waiting.first?.reason
  }

  @Test(
    "a record is deferred with SQLite's reason, and the others are applied",
    arguments: [
      ("CREATE INDEX i ON tasks(json_extract(title, '$.x'))", "malformed JSON"),
      (
        """
        CREATE TRIGGER x AFTER INSERT ON tasks WHEN NEW.title = 'bad'
        BEGIN SELECT RAISE(ABORT, 'no bad titles'); END
        """, "no bad titles"
      ),
      (
        """
        CREATE TRIGGER x AFTER INSERT ON tasks WHEN NEW.title = 'bad'
        BEGIN SELECT RAISE(ROLLBACK, 'all is undone'); END
        """, "all is undone"
      ),
      (
        """
        CREATE TRIGGER x BEFORE INSERT ON tasks WHEN NEW.title = 'bad'
        BEGIN SELECT RAISE(FAIL, 'it fails'); END
        """, "it fails"
      ),
    ])
  func refused(schema: String, reason: String) throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run(schema)
    #expect(try apply("bad", to: replica)?.contains(reason) == true)
  }

  @Test("a constraint that rolls back does not prevent the other records from being applied")
  func conflictClause() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      "CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT NOT NULL ON CONFLICT ROLLBACK)")
    try replica.file.track(["tasks"])
    #expect(try apply(.null, to: replica)?.contains("NOT NULL") == true)
  }

  @Test(
    "a change that breaks a protocol rule is kept unchanged, and the others are applied")
  func unreadable() throws {
    let replica = try ReplicaFixture.withTasks()
    let long = Name(String(repeating: "n", count: 129))
    let large = Value.text(String(repeating: "x", count: Limits.standard.valueBytes + 1))
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "one")]),
      maker.change(2, "tasks", "b", [Column(long, 1)]),
      maker.change(3, "tasks", "c", [Column("title", large)]),
      maker.change(4, "tasks", "d\u{0}", [Column("title", "two")]),
      maker.change(5, "ta\u{1}sks", "e", [Column("title", "three")]),
      maker.change(6, "tasks", "f", [Column("title", "four")]),
    ])
    let applied = try replica.rows("SELECT id FROM tasks")
    #expect(applied == [["a"], ["f"]])
    #expect(try replica.file.syncState().applied == 6)
    let waiting = try replica.file.waiting.oldest(10)
    #expect(waiting.map(\.key.record) == ["b", "c", "d\u{0}", "e"])
    #expect(waiting[0].reason == "a name has 129 bytes; 128 are allowed")
    #expect(waiting[1].reason.contains("1048577 bytes"))
    // All work continues, also with the kept changes of these tables and records.
    try replica.apply([maker.change(7, "tasks", "b", [Column("title", "sound")])])
    #expect(try replica.rows("SELECT title FROM tasks WHERE id = 'b'") == [["sound"]])
    // A part of a record whose rest cannot be read makes no row.
    try replica.apply([
      maker.change(8, "tasks", "c", [Column("done", 1)], inserts: false)
    ])
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["b"], ["f"]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["c"])
    try replica.apply([maker.deletion(9, "tasks", "c")])
    #expect(try replica.file.waiting.oldest(10).map(\.key.record) == ["d\u{0}", "e"])
    #expect(throws: ReplicaError.self) { try replica.file.track(["ta\u{1}sks"], creatingKey: "id") }
    _ = try TableScan("tasks", on: replica.file.connection, limits: .standard).sums { _ in }
  }
}
