import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@Suite("Values of records", .hangLimit)
struct RecordValueTests {
  @Test("a record with a property of each kind survives exactly, filled and empty")
  func roundTrip() async throws {
    let fixture = try await Fixture()
    let empty = Item(id: UUID(), title: "")
    try await fixture.database.write { database throws in
      try Item.full.insert(in: database)
      try empty.insert(in: database)
    }
    let found = try await fixture.database.read { database throws in
      try [Item.full.id, empty.id].map { try Item.find($0, in: database) }
    }
    #expect(found == [Item.full, empty])
  }

  @Test("properties are stored in their plain SQL form")
  func storedForms() async throws {
    let fixture = try await Fixture()
    let row = try await fixture.database.write { database throws in
      try Item.full.insert(in: database)
      return try database.query("SELECT * FROM items")[0]
    }
    #expect(row["id"] == .text(Item.full.id.uuidString))
    #expect(row["due"] == "2026-11-23T14:00:00.125Z")
    #expect(row["isDone"] == 1)
    #expect(row["image"] == .blob([0, 255]))
    #expect(row["bytes"] == .blob([1, 2, 3]))
    #expect(row["urgency"] == "high")
    #expect(
      row["place"] == .text(#"{"opened":"1969-12-31T23:59:58.500Z","street":"Quay 1"}"#))
    #expect(row["tags"] == .text(#"["a","b"]"#))
    #expect(row["link"] == "https://example.org/a?b=c")
  }

  @Test(
    "a value that does not fit its property names the table, the column and the value",
    arguments: [
      ("small", "300", "table items, column small: the integer 300 is not between -128 and 127"),
      ("large", "-1", "the integer -1 is not between 0 and 18446744073709551615"),
      ("count", "'many'", "column count: the text 'many' is not an integer"),
      ("count", "NULL", "column count: NULL is not an integer"),
      ("isDone", "2", "column isDone: the integer 2 is not a truth value, 0 or 1"),
      ("price", "x'00'", "column price: a blob of 1 bytes is not a real"),
      ("title", "7", "column title: the integer 7 is not a text"),
      ("due", "'soon'", "column due: the text 'soon' is not a date"),
      ("id", "'x'", "column id: the text 'x' is not a UUID"),
      ("urgency", "'medium'", "column urgency (the text 'medium')"),
      ("place", "'{}'", "column place: the text '{}' is not the JSON text of Place"),
      ("image", "'text'", "column image: the text 'text' is not bytes"),
    ])
  func wrongValues(column: String, literal: String, message: String) async throws {
    let fixture = try await Fixture()
    try await fixture.database.write { database throws in
      try Item.full.insert(in: database)
      // Columns of a type convert values; those without one keep every storage class.
      let names = try Item.table.info(in: database).columns.map(\.name.text)
      let list = names.map { $0 == column ? "\(literal) AS \"\($0)\"" : "\"\($0)\"" }
      try database.execute(
        "CREATE TABLE broken AS SELECT \(list.joined(separator: ", ")) FROM items")
    }
    let error = await failure(RecordError.self) {
      _ = try await fixture.database.read { try Table<Item>("broken").all.fetch($0) }
    }
    #expect(error?.kind == .wrongValue)
    #expect(error?.column == Name(column))
    #expect(error?.table == "broken")
    let expected = message.replacing("table items", with: "table broken")
    #expect(error?.message.contains(expected) == true, "\(String(describing: error))")
  }

  @Test("a value that no column can hold is rejected, and nothing is written")
  func unstorable() async throws {
    let fixture = try await Fixture()
    var large = Item.full
    large.large = UInt64.max
    var nan = Item.full
    nan.price = .nan
    var far = Item.full
    far.due = Date(timeIntervalSince1970: 1e12)
    for (item, text) in [
      (large, "table items, column large: the integer 18446744073709551615, above"),
      (nan, "table items, column price: NaN cannot be stored"),
      (far, "table items, column due: the date 1000000000000.0 s"),
    ] {
      let error = await failure(RecordError.self) {
        try await fixture.database.write { _ = try item.insert(in: $0) }
      }
      #expect(error?.message.contains(text) == true, "\(String(describing: error))")
    }
    #expect(try await fixture.database.read { try Item.table.count(in: $0) } == 0)
  }

  @Test("a result without a property's column names the column and those that are there")
  func missingColumn() async throws {
    let fixture = try await Fixture()
    let error = await failure(RecordError.self) {
      try await fixture.database.write { database throws in
        try Item.full.insert(in: database)
        _ = try Item.all.select("id", "count").fetch(database)
      }
    }
    #expect(error?.kind == .missingColumn)
    #expect(error?.message == "the result from table items has no column title; it has id, count")
  }

  @Test(
    "dates are read with and without time, fraction and offset",
    arguments: [
      ("2026-11-23", 1_795_392_000), ("2026-11-23 14:00", 1_795_442_400),
      ("2026-11-23T14:00:00Z", 1_795_442_400), ("2026-11-23T15:30:00+01:30", 1_795_442_400),
      ("2026-11-23T14:00:00.25Z", 1_795_442_400.25), ("2000-02-29T00:00:00Z", 951_782_400),
      ("0000-01-01T00:00:00Z", -62_167_219_200), ("9999-12-31T23:59:59Z", 253_402_300_799),
    ] as [(String, Double)])
  func dates(text: String, seconds: Double) throws {
    struct Due: Codable, Record { var due: Date }
    let due = try Due.from(["due": text])
    #expect(due.due == Date(timeIntervalSince1970: seconds))
    #expect(try Due.from(["due": seconds]).due == due.due)
    #expect(try Due.from(try RecordColumns(of: due)).due == due.due)
  }

  @Test(
    "texts that are almost dates are rejected",
    arguments: ["2026-13-01", "2025-02-29", "2026-1-1", "2026-11-23T25:00", "2026-11-23x", ""])
  func notDates(text: String) {
    struct Due: Codable, Record { var due: Date }
    #expect(throws: RecordError.self) { try Due.from(["due": text]) }
  }
}

extension Record {
  /// Creates a record from columns, by merging them over nothing.
  static func from(_ columns: RecordColumns) throws -> Self { try columns.record(as: Self.self) }
}
