import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Shapes of triggers common in public schemas, beside Ferry's own.
@Suite("Users' triggers", .hangLimit)
struct UserTriggerTests {
  /// A schema with triggers, and writes that fire them.
  struct Shape: Sendable, CustomTestStringConvertible {
    let name: String
    var tables: [Name] = ["t"]
    let schema: String
    let writes: [String]
    var testDescription: String { name }
  }

  private static let table =
    "CREATE TABLE t(id TEXT PRIMARY KEY, v, at INTEGER DEFAULT 0, n DEFAULT 0);"
  private static let writes = [
    "INSERT INTO t(id, v) VALUES ('a', 1), ('b', 2)", "UPDATE t SET v = v + 1",
    "INSERT INTO t(id, v) VALUES ('a', 7) ON CONFLICT(id) DO UPDATE SET v = excluded.v",
    "DELETE FROM t WHERE id = 'b'",
  ]

  static let shapes = [
    Shape(
      name: "a time of the last change",
      schema: table + """
        CREATE TRIGGER touch AFTER UPDATE ON t BEGIN
          UPDATE t SET at = at + 1 WHERE id = NEW.id;
        END
        """, writes: writes),
    Shape(
      name: "a time of the last change, unless the statement sets it",
      schema: table + """
        CREATE TRIGGER touch AFTER UPDATE ON t FOR EACH ROW WHEN NEW.at = OLD.at BEGIN
          UPDATE t SET at = at + 1 WHERE id = NEW.id;
        END
        """, writes: writes),
    Shape(
      name: "a time of the last change, written by common table expressions",
      schema: table + """
        CREATE TRIGGER touch AFTER UPDATE ON t BEGIN
          UPDATE t SET at = at + 1 WHERE id = NEW.id;
        END
        """,
      writes: writes + [
        "WITH x AS (SELECT 'a' AS id) UPDATE t SET v = 'y' WHERE id IN (SELECT id FROM x)",
        "WITH x(id) AS (VALUES ('c'), ('d')) INSERT INTO t(id, v) SELECT id, 1 FROM x",
        "UPDATE t SET v = 'please replace the lamp' WHERE id = 'a' -- replace",
      ]),
    Shape(
      name: "times of creation and of the last change",
      schema: table + """
        CREATE TRIGGER made AFTER INSERT ON t BEGIN UPDATE t SET at = 100 WHERE id = NEW.id; END;
        CREATE TRIGGER touch AFTER UPDATE ON t BEGIN UPDATE t SET at = at + 1 WHERE id = NEW.id; END
        """, writes: writes),
    Shape(
      name: "a version that counts changes of one column",
      schema: table + """
        CREATE TRIGGER version AFTER UPDATE OF v ON t BEGIN
          UPDATE t SET n = OLD.n + 1, v = lower(replace(NEW.v, 'x', 'y')) WHERE id = OLD.id;
        END
        """, writes: writes),
    Shape(
      name: "two triggers that change each other's column",
      schema: table + """
        CREATE TRIGGER one AFTER UPDATE OF v ON t BEGIN UPDATE t SET n = n + 1 WHERE id = NEW.id; END;
        CREATE TRIGGER two AFTER UPDATE OF n ON t BEGIN UPDATE t SET v = v + 1 WHERE id = NEW.id; END
        """, writes: writes),
    Shape(
      name: "counts in a parent, whose time changes", tables: ["t", "c"],
      schema: table + """
        CREATE TABLE c(id TEXT PRIMARY KEY, t TEXT REFERENCES t(id) ON DELETE CASCADE);
        CREATE TRIGGER add_c AFTER INSERT ON c BEGIN UPDATE t SET n = n + 1 WHERE id = NEW.t; END;
        CREATE TRIGGER drop_c AFTER DELETE ON c BEGIN UPDATE t SET n = n - 1 WHERE id = OLD.t; END;
        CREATE TRIGGER touch AFTER UPDATE ON t BEGIN UPDATE t SET at = at + 1 WHERE id = NEW.id; END
        """,
      writes: [
        "INSERT INTO t(id) VALUES ('a'), ('b')",
        "INSERT INTO c VALUES ('1', 'a'), ('2', 'a'), ('3', 'b')",
        "DELETE FROM c WHERE id = '1'", "DELETE FROM t WHERE id = 'b'",
      ]),
    Shape(
      name: "an order of rows that makes room",
      schema: table + """
        CREATE TRIGGER room AFTER UPDATE OF n ON t BEGIN
          UPDATE t SET n = n + 1 WHERE n >= NEW.n AND id <> NEW.id;
        END
        """, writes: writes + ["UPDATE t SET n = 0 WHERE id = 'a'"]),
    Shape(
      name: "a log of changes", tables: ["t", "log"],
      schema: table + """
        CREATE TABLE log(id TEXT PRIMARY KEY, line);
        CREATE TRIGGER logged AFTER UPDATE ON t BEGIN
          INSERT INTO log SELECT 'l' || count(*), OLD.v || '>' || NEW.v FROM log;
        END
        """, writes: writes),
    Shape(
      name: "a value that is kept by REPLACE elsewhere", tables: ["t", "last"],
      schema: table + """
        CREATE TABLE last(id TEXT PRIMARY KEY, v);
        CREATE TRIGGER kept AFTER UPDATE ON t BEGIN INSERT OR REPLACE INTO last VALUES (NEW.id, NEW.v); END
        """,
      writes: [
        "INSERT INTO t(id, v) VALUES ('a', 1), ('b', 2)", "UPDATE t SET v = v + 1",
        "UPDATE t SET v = 7", "DELETE FROM t WHERE id = 'b'",
      ]),
    Shape(
      name: "a view that is written to",
      schema: table + """
        CREATE VIEW w AS SELECT id, v FROM t;
        CREATE TRIGGER through INSTEAD OF UPDATE ON w BEGIN UPDATE t SET v = NEW.v WHERE id = OLD.id; END;
        CREATE TRIGGER touch AFTER UPDATE ON t BEGIN UPDATE t SET at = at + 1 WHERE id = NEW.id; END
        """, writes: writes + ["UPDATE w SET v = 40 WHERE id = 'a'"]),
    Shape(
      name: "a tree that is deleted by a trigger",
      schema: table + """
        CREATE TRIGGER subtree AFTER DELETE ON t BEGIN DELETE FROM t WHERE v = OLD.id; END
        """,
      writes: [
        "INSERT INTO t(id, v) VALUES ('a', NULL), ('b', 'a'), ('c', 'b'), ('d', NULL)",
        "DELETE FROM t WHERE id = 'a'",
      ]),
    Shape(
      name: "writes that a trigger rejects or corrects",
      schema: table + """
        CREATE TRIGGER kept BEFORE UPDATE ON t WHEN NEW.v > 50 BEGIN SELECT RAISE(IGNORE); END;
        CREATE TRIGGER floor AFTER UPDATE ON t WHEN NEW.v < 0 BEGIN UPDATE t SET v = 0 WHERE id = NEW.id; END
        """, writes: writes + ["UPDATE t SET v = 60", "UPDATE t SET v = -5"]),
  ]

  @Test(
    "tables with triggers have the rows that plain SQLite has, here and on a device that pulls them",
    arguments: shapes)
  func shape(_ shape: Shape) throws {
    let plain = try SQLiteConnection(path: ":memory:")
    try plain.execute("PRAGMA foreign_keys=ON")
    try plain.execute(shape.schema)
    let (replica, other) = (try ReplicaFixture(), try ReplicaFixture())
    for device in [replica, other] {
      try device.run(shape.schema)
      try device.file.track(shape.tables)
    }
    var count = 0
    for sql in shape.writes {
      try plain.execute(sql)
      try replica.run(sql)
      let operations = try replica.pending
      if operations.count == count { continue }
      try other.apply(Self.changes(of: operations.dropFirst(count), after: count))
      count = operations.count
    }
    var recorded = try replayed(replica)
    for table in shape.tables {
      let rows = "SELECT * FROM \(table) ORDER BY id"
      let expected = try plain.rows(rows) { row in (0..<row.columnCount).map { row.value($0) } }
      #expect(try replica.rows(rows) == expected)
      #expect(try other.rows(rows) == expected)
      for row in expected {
        guard case .text(let id) = row[0] else { continue }
        let values = recorded.removeValue(forKey: RecordKey(table: table, record: Name(id)))
        #expect(values == Array(row.dropFirst()), "\(table)/\(id)")
      }
    }
    #expect(recorded.isEmpty)
    #expect(try other.pending == [])
  }

  /// Returns the pull list of a transaction's operations, with each record at the newest one.
  private static func changes(
    of operations: ArraySlice<SyncOperation>, after count: Int
  ) -> [Change] {
    var newest: [RecordKey: (place: Int, isInserted: Bool, columns: [Name: Value]?)] = [:]
    for (place, operation) in operations.enumerated() {
      let before = newest[operation.key]
      guard operation.kind != .delete else {
        newest[operation.key] = (place, false, nil)
        continue
      }
      let columns = operation.columns.map { ($0.name, $0.value) }
      newest[operation.key] = (
        place, before?.isInserted ?? false || operation.kind == .insert,
        (before?.columns ?? [:]).merging(columns) { $1 }
      )
    }
    return newest.sorted { $0.value.place < $1.value.place }.map { key, state in
      let sequence = SequenceNumber(count + state.place + 1)
      guard let columns = state.columns else {
        return PageMaker().deletion(sequence, key.table, key.record)
      }
      return PageMaker().change(
        sequence, key.table, key.record, columns.map { Column($0, $1) },
        inserts: state.isInserted, at: 1_700_000_000_000 + sequence)
    }
  }

  /// Returns the rows of another device after the recorded operations.
  private func replayed(_ replica: ReplicaFixture) throws -> [RecordKey: [Value]] {
    var rows: [RecordKey: [Name: Value]] = [:]
    for operation in try replica.pending {
      if operation.kind == .delete {
        rows[operation.key] = nil
      } else {
        for column in operation.columns {
          rows[operation.key, default: [:]][column.name] = column.value
        }
      }
    }
    return try rows.reduce(into: [:]) { found, row in
      let table = try replica.file.tables.schema(of: row.key.table)
      found[row.key] = table.columns.map { row.value[$0.name] ?? .null }
    }
  }

  @Test("rows that REPLACE removes are recorded, whatever triggers there are")
  func replaced() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, u UNIQUE, at);
      CREATE TRIGGER touch AFTER UPDATE ON t BEGIN UPDATE t SET at = 1 WHERE id = NEW.id; END
      """)
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t VALUES ('a', 1, 0), ('b', 2, 0)")
    try replica.run("UPDATE t SET at = 0")
    try replica.run("INSERT OR REPLACE INTO t VALUES ('c', 1, 0)")
    try replica.run("REPLACE INTO t VALUES ('d', 2, 0)")
    let deleted = try replica.pending.filter { $0.kind == .delete }.map(\.key.record)
    #expect(deleted == ["a", "b"])
  }

  @Test(
    "REPLACE beside triggers that fire each other without end is rejected with the ways that work",
    arguments: [
      "REPLACE INTO t(id, v) VALUES ('a', 2)", "UPDATE OR REPLACE t SET id = 'a' WHERE id = 'b'",
      "WITH x(id) AS (VALUES ('a')) INSERT OR REPLACE INTO t(id) SELECT id FROM x",
    ])
  func endless(_ sql: String) throws {
    func schema(_ condition: String) -> String {
      Self.table + """
        CREATE TRIGGER made AFTER INSERT ON t BEGIN UPDATE t SET n = 1 WHERE id = NEW.id; END;
        CREATE TRIGGER touch AFTER UPDATE ON t \(condition) BEGIN
          UPDATE t SET at = at + 1 WHERE id = NEW.id;
        END
        """
    }
    let replica = try ReplicaFixture()
    try replica.run(schema(""))
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t(id, v) VALUES ('a', 1), ('b', 1)")
    let (rows, pending) = (try replica.rows("SELECT * FROM t"), try replica.pending)
    let error = #expect(throws: DatabaseError.self) { try replica.run(sql) }
    #expect(try #require(error).message.contains("ON CONFLICT … DO UPDATE"))
    #expect(try replica.rows("SELECT * FROM t") == rows)
    #expect(try replica.pending == pending)
    // The ways that the message names.
    try replica.run(
      "INSERT INTO t(id, v) VALUES ('a', 2) ON CONFLICT(id) DO UPDATE SET v = excluded.v")
    #expect(try replica.rows("SELECT v, at FROM t WHERE id = 'a'") == [[2, 2]])
    let plain = try SQLiteConnection(path: ":memory:")
    let guarded = try ReplicaFixture()
    func run(_ sql: String) throws {
      try plain.execute(sql)
      try guarded.run(sql)
    }
    try run(schema("WHEN NEW.at IS OLD.at"))
    try run("INSERT INTO t(id, v) VALUES ('a', 1), ('b', 1)")
    try guarded.file.track(["t"])
    try run(sql)
    let expected = try plain.rows("SELECT * FROM t ORDER BY id") { row in
      (0..<row.columnCount).map { row.value($0) }
    }
    #expect(try guarded.rows("SELECT * FROM t ORDER BY id") == expected)
  }

  @Test("a table that replaces rows by its definition records them")
  func replacingTable() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, u UNIQUE ON CONFLICT REPLACE);
      CREATE TABLE log(line);
      CREATE TRIGGER logged AFTER INSERT ON t BEGIN INSERT INTO log VALUES (NEW.id); END
      """)
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t VALUES ('a', 1); INSERT INTO t VALUES ('b', 1)")
    #expect(try replica.pending.map(\.kind) == [.insert, .delete, .insert])
  }

  @Test("triggers fire by default after a change of the schema, too")
  func afterSchemaChange() throws {
    let replica = try ReplicaFixture()
    try replica.run(Self.shapes[0].schema)
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t(id, v) VALUES ('a', 1)")
    try replica.run("UPDATE t SET v = 2")
    try replica.run("ALTER TABLE t ADD COLUMN w; UPDATE t SET v = 3; CREATE TABLE other(x)")
    let plain = try SQLiteConnection(path: replica.path)
    try plain.execute("CREATE TABLE another(x)")
    try replica.run("UPDATE t SET v = 4")
    #expect(try replica.rows("SELECT v, at FROM t") == [[4, 3]])
  }

  @Test("a batch fires triggers by default, and a remote change none that write to tracked tables")
  func ownStatements() throws {
    let replica = try ReplicaFixture()
    try replica.run(Self.shapes[0].schema)
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t(id, v) VALUES ('a', 1)")
    try replica.run("CREATE TABLE other(x)")
    try replica.file.write {
      _ = try $0.batch("t", where: "v = 1", set: ["v": 5])
    }
    #expect(try replica.rows("SELECT v, at FROM t") == [[5, 1]])
    try replica.apply([PageMaker().change(9, "t", "b", [Column("v", 3), Column("at", 8)])])
    #expect(try replica.rows("SELECT v, at FROM t WHERE id = 'b'") == [[3, 8]])
  }

  @Test(
    "a table with a real number as its key is rejected when it is tracked",
    arguments: [
      "id REAL PRIMARY KEY, v", "id DOUBLE PRECISION PRIMARY KEY, v",
      "a TEXT, b FLOAT, v, PRIMARY KEY(a, b)",
    ])
  func realKey(_ columns: String) throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE r(\(columns))")
    let error = #expect(throws: ReplicaError.self) { try replica.file.track(["r"]) }
    #expect(try #require(error).description.contains("real numbers cannot be keys"))
    try replica.run("INSERT INTO r DEFAULT VALUES")
  }
}
