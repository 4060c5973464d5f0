import FerrySQLite
import FerryTestSupport
import Testing

/// The rows reported as changed by a connection. In each case SQLite's update hook is silent, or a
/// row has two images.
@Suite("The log of changed rows", .hangLimit)
struct ChangeLogTests {
  private typealias Image = [SQLiteRowImage.Value]

  /// Returns a connection with a log of changes, after a script.
  private func connection(
    _ script: String, usesRowHook: Bool = true, keeps: @escaping (String) -> Bool = { _ in true }
  ) throws -> SQLiteConnection {
    let connection = try SQLiteConnection.inMemory()
    connection.guardStatements { _ in nil }
    connection.logChanges(usesRowHook: usesRowHook, keepsRows: keeps)
    try connection.execute("PRAGMA foreign_keys=ON")
    try connection.execute(script)
    _ = connection.drainChanges()
    return connection
  }

  /// Returns the images of a table logged by a script; `nil` if any row may have changed.
  private func images(
    _ connection: SQLiteConnection, _ script: String, of table: String = "t"
  ) throws -> [Image]? {
    try connection.execute(script)
    switch connection.drainChanges().rows[table] {
    case nil: return []
    case .all: return nil
    case .images(let images): return images.map(\.values)
    }
  }

  private static let tables = [
    "CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT UNIQUE)",
    "CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT UNIQUE) WITHOUT ROWID",
    "CREATE TABLE t(k, v TEXT UNIQUE)",
  ]

  @Test(
    "each changed row is reported with its values before and after",
    arguments: tables)
  func kinds(_ table: String) throws {
    let connection = try connection(
      """
      \(table); CREATE TABLE s\(table.dropFirst("CREATE TABLE t".count));
      INSERT INTO s VALUES (8, 'x'), (9, 'y')
      """)
    let isText = table.contains("ROWID")
    func row(_ key: Int, _ text: String) -> Image {
      [isText ? .text(Array("\(key)".utf8)) : .integer(Int64(key)), .text(Array(text.utf8))]
    }
    // SQLite would copy the rows of an equal table as they are, and empty a table at once.
    for statement in ["INSERT INTO t SELECT * FROM s", "DELETE FROM t"] {
      #expect(
        try images(connection, statement).map(Set.init) == Set([row(8, "x"), row(9, "y")]))
    }
    #expect(try images(connection, "INSERT INTO t VALUES (1, 'a')") == [row(1, "a")])
    #expect(
      try images(connection, "UPDATE t SET v = 'b' WHERE k = 1") == [row(1, "a"), row(1, "b")])
    #expect(
      try images(connection, "UPDATE t SET k = 2 WHERE k = 1").map(Set.init)
        == Set([row(1, "b"), row(2, "b")]))
    // The row with the same unique value goes.
    #expect(
      try images(connection, "INSERT OR REPLACE INTO t VALUES (3, 'b')").map(Set.init)
        == Set([row(2, "b"), row(3, "b")]))
    #expect(
      try images(
        connection, "INSERT INTO t VALUES (4, 'b') ON CONFLICT(v) DO UPDATE SET v = 'c'"
      )
      .map(Set.init) == Set([row(3, "b"), row(3, "c")]))
    #expect(
      try images(connection, "INSERT INTO t SELECT * FROM s").map(Set.init)
        == Set([row(8, "x"), row(9, "y")]))
    #expect(
      try images(connection, "UPDATE OR REPLACE t SET v = 'x' WHERE k = 9").map(Set.init)
        == Set([row(8, "x"), row(9, "y"), row(9, "x")]))
    #expect(
      try images(connection, "DELETE FROM t").map(Set.init) == Set([row(3, "c"), row(9, "x")]))
  }

  @Test("foreign keys and triggers are reported", arguments: ["", " WITHOUT ROWID"])
  func actions(_ kind: String) throws {
    let connection = try connection(
      """
      CREATE TABLE p(k TEXT PRIMARY KEY);
      CREATE TABLE t(k TEXT PRIMARY KEY, p TEXT REFERENCES p(k) ON DELETE CASCADE)\(kind);
      CREATE TABLE n(k TEXT PRIMARY KEY, p TEXT REFERENCES p(k) ON DELETE SET NULL)\(kind);
      CREATE TABLE l(k TEXT PRIMARY KEY)\(kind);
      CREATE TRIGGER r AFTER DELETE ON p BEGIN INSERT INTO l VALUES (OLD.k); END;
      INSERT INTO p VALUES ('a'); INSERT INTO t VALUES ('x', 'a'); INSERT INTO n VALUES ('y', 'a')
      """)
    try connection.execute("DELETE FROM p WHERE k = 'a'")
    let changes = connection.drainChanges()
    func text(_ text: String) -> SQLiteRowImage.Value { .text(Array(text.utf8)) }
    func images(_ table: String) -> [Image]? {
      guard case .images(let images) = changes.rows[table] else { return nil }
      return images.map(\.values)
    }
    #expect(images("t") == [[text("x"), text("a")]])
    #expect(images("n") == [[text("y"), text("a")], [text("y"), .null]])
    #expect(images("l") == [[text("a")]])
  }

  @Test("storage classes are kept; long values and many rows are not")
  func values() throws {
    let connection = try connection("CREATE TABLE t(a, b, c, d, e)")
    #expect(
      try images(connection, "INSERT INTO t VALUES (NULL, 1, 0.5, '', x'')")
        == [[.null, .integer(1), .real(0.5), .text([]), .blob([])]])
    #expect(
      try images(connection, "INSERT INTO t(a, b) VALUES (printf('%2000d', 1), zeroblob(2000))")
        == [[.long, .long, .null, .null, .null]])
    let many = """
      INSERT INTO t(a) WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 257)
      SELECT i FROM n
      """
    #expect(try images(connection, many) == nil)
    #expect(try images(connection, "INSERT INTO t(a) VALUES (1)")?.count == 1)
  }

  @Test("rows are kept only of tables that count, and never without the hook")
  func kept() throws {
    let connection = try connection("CREATE TABLE t(a); CREATE TABLE u(a)") { $0 == "u" }
    #expect(try images(connection, "INSERT INTO t VALUES (1)") == nil)
    #expect(try images(connection, "INSERT INTO u VALUES (1)", of: "u") == [[.integer(1)]])
    let plain = try self.connection("CREATE TABLE t(a)", usesRowHook: false)
    try plain.execute("INSERT INTO t VALUES (1)")
    let changes = plain.drainChanges()
    #expect(changes.rows == ["t": .all])
    #expect(!changes.isComplete)
  }

  @Test("a change of a table or a view by a statement is noted, one of a temporary table is not")
  func schema() throws {
    let connection = try connection("CREATE TABLE t(a)")
    for statement in [
      "ALTER TABLE t ADD COLUMN b", "CREATE VIEW v AS SELECT 1", "DROP VIEW v", "DROP TABLE t",
      "CREATE TABLE t(a)", "CREATE VIRTUAL TABLE f USING fts5(a)", "DROP TABLE f",
    ] {
      try connection.execute(statement)
      #expect(connection.drainChanges().changesSchema, "\(statement)")
    }
    for statement in [
      "CREATE TEMP TABLE x(a)", "DROP TABLE x", "CREATE INDEX i ON t(a)",
      "INSERT INTO t VALUES (1)",
      "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END",
    ] {
      try connection.execute(statement)
      #expect(!connection.drainChanges().changesSchema, "\(statement)")
    }
  }

  @Test("the order of a column's texts is known by its name")
  func collation() throws {
    let connection = try connection("CREATE TABLE t(a, b TEXT COLLATE NOCASE)")
    #expect(connection.collation(of: "a", in: "t") == "BINARY")
    #expect(connection.collation(of: "b", in: "t") == "NOCASE")
    #expect(connection.collation(of: "c", in: "t") == nil)
  }
}
