import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryPersistence

/// Whether a changed row may fulfil a condition, compared with SQLite's own answer.
@Suite("Conditions on changed rows", .hangLimit)
struct ConditionRowTests {
  /// A table with a column of each kind, and the images of the rows.
  private struct Sample {
    let connection: SQLiteConnection
    let shape: TableShape
    var images: [SQLiteRowImage] = []

    init(encoding: String = "UTF-8") throws {
      connection = try SQLiteConnection(path: ":memory:")
      connection.logChanges { $0 == "t" }
      try connection.execute(
        """
        PRAGMA encoding = '\(encoding)';
        CREATE TABLE t(
          k INTEGER PRIMARY KEY, txt TEXT, ci TEXT COLLATE NOCASE, int INT, re REAL, num NUMERIC,
          bare, bl BLOB, def DEFAULT 5)
        """)
      shape = try #require(try TableShape.read("t", from: connection))
    }

    mutating func insert(_ values: [Value]) throws {
      let marks = values.map { _ in ", ?" }.joined()
      try connection.run(
        "INSERT INTO t(txt, ci, int, re, num, bare, bl, def, k) VALUES (\(marks.dropFirst(2)))",
        SQLiteList(values))
      if case .images(let new) = connection.drainChanges().rows["t"] { images += new }
    }

    /// Replaces all values of a row, and the row's image.
    mutating func update(_ key: Int64, _ values: [Value]) throws {
      try connection.run(
        """
        UPDATE t SET txt = ?, ci = ?, int = ?, re = ?, num = ?, bare = ?, bl = ?, def = ? WHERE k = ?
        """, SQLiteList(values + [.integer(key)]))
      guard case .images(let new)? = connection.drainChanges().rows["t"] else { return }
      images.removeAll { $0.number == key }
      images += new.suffix(1)
    }

    /// Returns the numbers of the rows that fulfil a condition, by SQLite.
    func found(_ condition: Condition) throws -> Set<Int64> {
      let info = TableInfo(
        "t",
        shape.columns.map {
          ColumnInfo(name: $0.name, type: "", isRequired: false, keyPlace: 0, isGenerated: false)
        })
      let (sql, values) = try QuerySQL.select(
        Query().where(condition).select("k"),
        from: TableSource(info: info, parts: [info], sql: "t AS \(QuerySQL.alias)"))
      return Set(try connection.rows(sql, SQLiteList(values)) { $0.int64(0) })
    }
  }

  private static let values: [Value] = [
    .null, .integer(0), .integer(5), .integer(-1), .integer(1 << 53), .integer((1 << 53) + 1),
    .integer(.max), .real(0.5), .real(5), .real(-0.0), .real(9_007_199_254_740_992), .real(1e300),
    .text(""), .text("5"), .text(" 5"), .text("5.0"), .text("a"), .text("A"), .text("é"),
    .text("e\u{301}"), .text("\u{FFFF}"), .text("🚢"), .text("a\u{0}b"), .blob([]), .blob([0x35]),
    .blob([0x61]), .text(String(repeating: "x", count: 2_000)),
  ]
  private static let names: [Name] = [
    "k", "rowid", "txt", "ci", "int", "re", "num", "bare", "bl", "def", "TXT",
  ]

  private static func condition(
    _ depth: Int, _ random: inout SeededGenerator
  ) -> Condition {
    func name(_ random: inout SeededGenerator) -> Name {
      names.randomElement(using: &random) ?? "k"
    }
    func value(_ random: inout SeededGenerator) -> Value {
      values.randomElement(using: &random) ?? .null
    }
    func parts(_ random: inout SeededGenerator) -> [Condition] {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in condition(depth - 1, &random) }
    }
    switch Int.random(in: 0..<(depth > 0 ? 10 : 6), using: &random) {
    case 0, 1, 2:
      let comparison = PredicateComparison.allCases.randomElement(using: &random) ?? .equal
      return .compare(name(&random), comparison, value(&random))
    case 3:
      let name = name(&random)
      return .among(name, (0..<Int.random(in: 0...3, using: &random)).map { _ in value(&random) })
    case 4: return .between(name(&random), value(&random), value(&random))
    case 5:
      return Bool.random(using: &random) ? .isNull(name(&random)) : .like(name(&random), "%a%")
    case 6: return .and(parts(&random))
    case 7: return .or(parts(&random))
    case 8: return .always
    default: return .not(condition(depth - 1, &random))
    }
  }

  @Test("tables whose names look alike count as changed with all rows")
  func similarNames() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    connection.logChanges { _ in true }
    try connection.execute(
      """
      CREATE TABLE "\u{E9}"(k INTEGER PRIMARY KEY, a);
      CREATE TABLE "e\u{301}"(k INTEGER PRIMARY KEY, b, c);
      INSERT INTO "\u{E9}" VALUES (1, 2);
      INSERT INTO "e\u{301}" VALUES (1, 2, 3);
      """)
    // Their images have different columns, and a dictionary of texts takes both for one table.
    #expect(connection.drainChanges().rows == ["\u{E9}": .all])
  }

  @Test(
    "a row that is ruled out is not found by SQLite, whatever the columns convert",
    arguments: ["UTF-8", "UTF-16le"])
  func sound(_ encoding: String) throws {
    var random = SeededGenerator(seed: 7)
    var sample = try Sample(encoding: encoding)
    for key in 0..<120 {
      let values = (0..<8).map { _ in Self.values.randomElement(using: &random) ?? .null }
      try sample.insert(values + [.integer(key % 9 == 0 ? Int64.max - Int64(key) : Int64(key))])
    }
    // The values of an update reach the log on another way.
    for key in 60..<90 {
      let values = (0..<8).map { _ in Self.values.randomElement(using: &random) ?? .null }
      try sample.update(Int64(key), values)
    }
    #expect(sample.images.count == 120)
    var ruledOut = 0
    for _ in 0..<3_000 {
      let condition = Self.condition(3, &random)
      let found = try sample.found(condition)
      for image in sample.images where !condition.mayHold(for: image, of: sample.shape) {
        ruledOut += 1
        #expect(!found.contains(image.number), "\(condition) and \(image)")
      }
    }
    // The comparison would be empty if every row were possible.
    #expect(ruledOut > 30_000)
  }

  @Test("keys, truth values, numbers and texts of plain columns are decided exactly")
  func precise() throws {
    var sample = try Sample()
    let rows: [[Value]] = [
      [.text("a"), .null, .integer(0), .real(0.5), .integer(1), .null, .null, .integer(1)],
      [.text("b"), .null, .integer(1), .real(2), .integer(2), .null, .null, .integer(2)],
      [.null, .null, .null, .null, .null, .null, .null, .integer(3)],
    ]
    for (key, row) in rows.enumerated() { try sample.insert(row + [.integer(Int64(key))]) }
    let conditions: [Condition] = [
      Field("k") == 1, Field("rowid") == 2, Field("txt") == "a", Field("txt") != "a",
      Field("txt") >= "b", Field("int") == true, !(Field("int") == false), Field("re") < 1.5,
      Field("num").in([2, 3]), Field("txt").isNull, Field("int").between(0, and: 5),
      Field("txt") == "a" && Field("int") == 1, Field("txt") == "b" || Field("re") == 0.5,
    ]
    for condition in conditions {
      let possible = sample.images.filter { condition.mayHold(for: $0, of: sample.shape) }
      #expect(Set(possible.map(\.number)) == (try sample.found(condition)), "\(condition)")
    }
  }

  @Test("a row from before a column may have the column's default")
  func addedColumn() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    connection.logChanges { _ in true }
    try connection.execute("CREATE TABLE t(k); INSERT INTO t VALUES (1)")
    try connection.execute("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 5")
    let shape = try #require(try TableShape.read("t", from: connection))
    _ = connection.drainChanges()
    try connection.execute("DELETE FROM t")
    guard case .images(let images)? = connection.drainChanges().rows["t"] else {
      Issue.record("no row was reported")
      return
    }
    let isFound = images.contains { (Field("d") == 5).mayHold(for: $0, of: shape) }
    #expect(isFound)
  }

  @Test("a table with computed columns has no shape")
  func computed() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute("CREATE TABLE g(a, b AS (a + 1)); CREATE VIEW v AS SELECT a FROM g")
    #expect(try TableShape.read("g", from: connection) == nil)
    #expect(try TableShape.read("missing", from: connection) == nil)
  }
}
