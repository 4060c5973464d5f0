import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

private struct Letter: Codable, Sendable, Equatable, Record {
  var id: String
  var year: Int?
  var body: String?
}

@Suite("Split tables", .hangLimit)
struct SplitTests {
  static let byColumns = Table<RecordColumns>(
    splitByColumns: TableDefinition("heads", [.text("id").primaryKey(), .integer("year")]),
    TableDefinition("bodies", [.text("id").primaryKey().references("heads", "id"), .text("body")]))

  private static let columns: [ColumnDefinition] = [
    .text("id").primaryKey(), .integer("year"), .text("body"),
  ]
  static let byRows = Table<RecordColumns>(
    splitByRows: TableDefinition("recent", columns), TableDefinition("archive", columns)
  ) { row in
    guard case .integer(let year)? = row["year"] else { return "recent" }
    return year >= 2026 ? "recent" : "archive"
  }

  private static let whole = Table<RecordColumns>("letters", columns)

  @Test("a failed move to another part leaves the row in its part")
  func failedMove() async throws {
    let fixture = try await Fixture()
    try await fixture.database.write { database in
      try database.execute(
        """
        CREATE TABLE recent(id TEXT PRIMARY KEY, year INTEGER, body TEXT);
        CREATE TABLE archive(id TEXT PRIMARY KEY, year INTEGER, body TEXT CHECK (body <> 'bad'))
        """)
      _ = try Self.byRows.insert(["id": "a", "year": 2026, "body": "bad"], in: database)
      #expect(throws: DatabaseError.self) {
        try Self.byRows.update(["id": "a", "year": 2020], in: database)
      }
      #expect(try Self.byRows.all.count(database) == 1)
      #expect(try database.query("SELECT year FROM recent")[0]["year"] == .integer(2026))
    }
  }

  @Test("a record of a split table needs a value for its key", arguments: ["columns", "rows"])
  func missingKey(kind: String) async throws {
    let table = kind == "rows" ? Self.byRows : Self.byColumns
    let fixture = try await Fixture()
    try await fixture.database.write { database throws in
      let nameless: RecordColumns = ["id": Value.null, "body": "x"]
      for columns in [["body": "x"], nameless] {
        #expect {
          _ = try table.insert(columns, in: database)
        } throws: {
          ($0 as? RecordError)?.kind == .noKey
        }
      }
      #expect(try table.all.count(database) == 0)
    }
  }

  @Test("a split table does what one table does", arguments: ["one", "columns", "rows"])
  func sameBehaviour(kind: String) async throws {
    let tables = ["one": Self.whole, "columns": Self.byColumns, "rows": Self.byRows]
    let letters = try #require(tables[kind]).records(as: Letter.self)
    let fixture = try await Fixture()
    #expect(try await fixture.database.read { try letters.all.fetch($0) }.isEmpty)
    try await fixture.database.write { database throws in
      try letters.insert(
        contentsOf: [
          Letter(id: "a", year: 2024, body: "old"), Letter(id: "b", year: 2026, body: "new"),
          Letter(id: "c", year: nil, body: nil), Letter(id: "d", year: 2020, body: "older"),
        ], in: database)
      #expect(try letters.find("a", in: database) == Letter(id: "a", year: 2024, body: "old"))
      #expect(try letters.update(Letter(id: "a", year: 2027, body: "moved"), in: database))
      #expect(try !letters.update(Letter(id: "z", year: 1, body: nil), in: database))
      #expect(try !letters.upsert(Letter(id: "b", year: 2026, body: "newer"), in: database))
      #expect(try letters.upsert(Letter(id: "e", year: 2019, body: "e"), in: database))
      #expect(
        try letters.update(["id": "c", "body": "filled"], in: database))
      let old = letters.all.where(Field("year") < 2025 && Field("body").like("%e%"))
      #expect(try old.count(database) == 2)
      #expect(try old.order(Field("year").ascending).fetch(database).map(\.id) == ["e", "d"])
      #expect(try old.update(["year": 2030], in: database) == 2)
      #expect(try letters.delete(key: "b", in: database))
      #expect(try !letters.delete(key: "b", in: database))
      #expect(try letters.all.where(Field("body") == "e").delete(in: database) == 1)
    }
    let duplicate = await failure(DatabaseError.self) {
      try await fixture.database.write {
        _ = try letters.insert(Letter(id: "a", year: 1, body: nil), in: $0)
      }
    }
    #expect(duplicate?.isConstraint == true)
    let rest = try await fixture.database.read {
      try letters.all.order(Field("id").ascending).fetch($0)
    }
    #expect(
      rest == [
        Letter(id: "a", year: 2027, body: "moved"), Letter(id: "c", year: nil, body: "filled"),
        Letter(id: "d", year: 2030, body: "older"),
      ])
  }

  @Test("each part has its columns, or its rows")
  func places() async throws {
    let fixture = try await Fixture()
    let row: RecordColumns = ["id": "a", "year": 2020, "body": "text"]
    try await fixture.database.write { database throws in
      try Self.byColumns.insert(row, in: database)
      #expect(try database.query("SELECT * FROM heads").map(\.values) == [["a", 2020]])
      #expect(try database.query("SELECT * FROM bodies").map(\.values) == [["a", "text"]])
      try Self.byRows.insert(row, in: database)
      #expect(try database.query("SELECT id FROM archive").map(\.values) == [["a"]])
      try Self.byRows.update(["id": "a", "year": 2026], in: database)
      #expect(try database.query("SELECT id FROM archive").isEmpty)
      #expect(try database.query("SELECT * FROM recent").map(\.values) == [["a", 2026, "text"]])
    }
  }

  @Test("a row without its second part is found with NULLs, and an update completes it")
  func incomplete() async throws {
    let fixture = try await Fixture()
    try await fixture.database.write { database throws in
      try database.execute("CREATE TABLE heads(id TEXT PRIMARY KEY, year INTEGER)")
      try database.execute("INSERT INTO heads VALUES ('a', 2020)")
    }
    let letters = Self.byColumns
    let before = try await fixture.database.read { try letters.all.fetch($0) }
    #expect(before == [["id": "a", "year": 2020, "body": nil as String?]])
    let after = try await fixture.database.write { database throws in
      try letters.update(["id": "a", "body": "now"], in: database)
      return try letters.find("a", in: database)
    }
    #expect(after == ["id": "a", "year": 2020, "body": "now"])
  }

  @Test("a rule that chooses another table, and parts that do not fit, are rejected")
  func misfits() async throws {
    let fixture = try await Fixture()
    let key: [ColumnDefinition] = [.text("id").primaryKey()]
    let lost = Table<RecordColumns>(
      splitByRows: TableDefinition("p", key), TableDefinition("q", key)
    ) { _ in "nowhere" }
    let doubled = Table<RecordColumns>(
      splitByColumns: TableDefinition("p", key + [.text("x")]),
      TableDefinition("r", key + [.text("x")]))
    let other = Table<RecordColumns>(
      splitByColumns: TableDefinition("s", key), TableDefinition("t", [.text("no").primaryKey()]))
    for (table, message) in [
      (lost, "chose nowhere, which is not one of its parts: p, q"),
      (doubled, "the column x of table r is in another part, too"),
      (other, "table t has another key than table s"),
    ] {
      let error = await failure(RecordError.self) {
        try await fixture.database.write { _ = try table.insert(["id": "a"], in: $0) }
      }
      #expect(error?.message.contains(message) == true, "\(String(describing: error))")
    }
  }
}
