import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

private struct Point: Codable, Equatable, Sendable, ColumnValue {
  var x: Int
  var y: Int
}

/// A record with the values that SQL has no type for.
private struct Invoice: Codable, Equatable, Sendable, TableRecord {
  enum CodingKeys: String, CodingKey { case id, sum, sent, page, marks, place, notes }
  var id: String
  var sum: Decimal
  var sent: Date
  var page: URL
  var marks: [String]
  var place: Point?
  var notes: [String: Int]

  static let table = Table<Invoice>(
    "invoices",
    [
      .text("id").primaryKey(), .text("sum"), .text("sent"), .text("page"), .text("marks"),
      .text("place"), .text("notes"),
    ])

  static func sample(_ id: String, sum: String, marks: [String]) throws -> Invoice {
    Invoice(
      id: id, sum: try #require(Decimal(string: sum)), sent: Date(timeIntervalSince1970: 0.25),
      page: try #require(URL(string: "https://example.org/\(id)")), marks: marks,
      place: Point(x: 1, y: 2), notes: ["a": 1])
  }
}

@Suite("Plain SQL with Swift's values", .hangLimit)
struct FetchTests {
  private let digits = "12345678901234567890.123456789012345678"

  private func filled() async throws -> (Fixture, Invoice, Invoice) {
    let fixture = try await Fixture()
    let one = try Invoice.sample("one", sum: digits, marks: ["x", "y"])
    let two = try Invoice.sample("two", sum: "-0.5", marks: [])
    try await fixture.database.write { database throws in
      for invoice in [one, two] { try invoice.insert(in: database) }
    }
    return (fixture, one, two)
  }

  @Test("decimals, dates, addresses, lists and structs are columns of records, exactly")
  func roundTrip() async throws {
    let (fixture, one, two) = try await filled()
    let found = try await fixture.database.read { database throws in
      (
        try Invoice.all.order(Field("id").ascending).fetch(database),
        try database.query("SELECT sum, marks, place, notes FROM invoices WHERE id = 'one'")[0]
      )
    }
    #expect(found.0 == [one, two])
    #expect(
      found.1.values == [
        .text(digits), #"["x","y"]"#, #"{"x":1,"y":2}"#, #"{"a":1}"#,
      ])
  }

  @Test("the same values are conditions, updates and parameters")
  func conditions() async throws {
    let (fixture, one, two) = try await filled()
    let ids = try await fixture.database.write { database throws in
      let conditions: [Condition] = [
        Field("sum") == one.sum, Field("sent") == one.sent, Field("page") == one.page,
        Field("marks") == ["x", "y"], Field("place") == Point(x: 1, y: 2),
        Field(Invoice.CodingKeys.notes) == ["a": 1],
      ]
      let found = try conditions.map { try Invoice.all.where($0).fetch(database).map(\.id) }
      try Invoice.all.where(Field("id") == "two").update(
        ["marks": ["z"], "sum": Decimal(7), "place": nil as Point?], in: database)
      try database.execute(
        "UPDATE invoices SET sent = ?, page = ? WHERE id = ?",
        arguments: [Date(timeIntervalSince1970: 1), nil, "one"])
      return found
    }
    #expect(ids == [["one"], ["one", "two"], ["one"], ["one"], ["one", "two"], ["one", "two"]])
    let rows = try await fixture.database.read {
      try $0.query("SELECT marks, sum, place, sent, page FROM invoices ORDER BY id DESC")
    }
    #expect(rows[0].values.prefix(3) == [#"["z"]"#, "7", nil])
    #expect(rows[1].values.suffix(2) == ["1970-01-01T00:00:01.000Z", nil])
    _ = two
  }

  @Test("a statement's rows are values, records, or single values")
  func fetch() async throws {
    struct Heading: Decodable, Equatable, Sendable {
      var id: String
      var sum: Decimal?
    }
    let (fixture, one, two) = try await filled()
    try await fixture.database.read { database throws in
      let headings = try database.fetch(
        Heading.self, sql: "SELECT id, sum FROM invoices WHERE id > ? ORDER BY id",
        arguments: ["a"])
      #expect(headings == [Heading(id: "one", sum: one.sum), Heading(id: "two", sum: two.sum)])
      let all = "SELECT * FROM invoices ORDER BY id"
      #expect(try database.fetch(Invoice.self, sql: all) == [one, two])
      #expect(try database.fetch(RecordColumns.self, sql: all).count == 2)
      #expect(try database.fetch(Int.self, sql: "SELECT count(*) FROM invoices") == [2])
      #expect(try database.fetch(Date.self, sql: "SELECT sent FROM invoices LIMIT 1") == [one.sent])
      #expect(try database.fetch(Int?.self, sql: "SELECT NULL") == [nil])
      #expect(
        try database.fetch([String].self, sql: "SELECT marks FROM invoices ORDER BY id")
          == [["x", "y"], []])
      // A type with one property is a row, and not the JSON text of the column.
      struct Only: Decodable { var id: String }
      #expect(try database.fetch(Only.self, sql: "SELECT id FROM invoices LIMIT 1")[0].id == "one")
    }
  }

  @Test("a row is decoded as a whole and by columns, and a misspelt column is an error")
  func rows() async throws {
    let (fixture, one, _) = try await filled()
    let row = try await fixture.database.read {
      try $0.query("SELECT id, sum, place, notes AS empty FROM invoices ORDER BY id")[0]
    }
    struct Short: Decodable, Equatable {
      var id: String
      var place: Point
    }
    #expect(try row.decode(Short.self) == Short(id: "one", place: Point(x: 1, y: 2)))
    #expect(try row.decode(Decimal.self, "sum") == one.sum)
    #expect(try row.decode(Decimal.self, "SUM") == one.sum)
    #expect(try row.value("id") == "one")
    let calls: [() throws -> Void] = [
      { _ = try row.value("titel") }, { _ = try row.decode(String.self, "titel") },
      { _ = try row.decode(String?.self, "titel") },
    ]
    for call in calls {
      let error = #expect(throws: RecordError.self) { try call() }
      #expect(error?.kind == .missingColumn)
      #expect(
        error?.message == "the result has no column titel; it has id, sum, place, empty")
    }
    let wrong = #expect(throws: RecordError.self) { try row.decode(Int.self, "id") }
    #expect(wrong?.message.contains("column id: the text 'one' is not an integer") == true)
    #expect(throws: RecordError.self) { try row.decode(Int.self) }
  }

  @Test("errors of results name the column")
  func errors() async throws {
    let (fixture, _, _) = try await filled()
    struct Misspelt: Decodable, Sendable { var titel: String }
    let error = await failure(RecordError.self) {
      try await fixture.database.read { database throws in
        _ = try database.fetch(Misspelt.self, sql: "SELECT id, sum FROM invoices")
      }
    }
    #expect(error?.message == "the result has no column titel; it has id, sum")
    let second = await failure(DatabaseError.self) {
      _ = try await fixture.database.read { try $0.fetch(Int.self, sql: "SELECT 1; SELECT 2") }
    }
    #expect(second?.message == "more than one statement")
  }

  @Test("a value has typed accessors, which are nil for another type")
  func accessors() throws {
    let values: [Value] = [5, 1.5, "text", .blob([1]), nil, 1]
    #expect(values.map(\.intValue) == [5, nil, nil, nil, nil, 1])
    #expect(values.map(\.doubleValue) == [5, 1.5, nil, nil, nil, 1])
    #expect(values.map(\.stringValue) == [nil, nil, "text", nil, nil, nil])
    #expect(values.map(\.bytesValue) == [nil, nil, nil, [1], nil, nil])
    #expect(values.map(\.boolValue) == [nil, nil, nil, nil, nil, true])
    #expect(values.map(\.isNull) == [false, false, false, false, true, false])
    #expect(try Value.text("1970-01-01").decode(Date.self) == Date(timeIntervalSince1970: 0))
    #expect(try Value.text("[1,2]").decode([Int].self) == [1, 2])
    #expect(try Value.null.decode(String?.self) == nil)
    #expect(throws: RecordError.self) { try Value.null.decode(String.self) }
  }

  @Test(
    "a decimal number is read from numbers and whole texts only",
    arguments: [
      ("1.50", "1.5"), ("-.5", "-0.5"), ("+7.", "7"), ("1e3", "1000"), ("00012", "12"),
      ("12abc", nil), ("", nil), (".", nil), ("1,5", nil), ("1e", nil), ("NaN", nil), (" 1", nil),
      ("123456789012345678901234567890123456789", nil),
    ] as [(String, String?)])
  func decimals(text: String, expected: String?) {
    #expect((try? Value.text(text).decode(Decimal.self))?.description == expected)
    #expect((try? Value.integer(-3).decode(Decimal.self)) == -3)
    #expect((try? Value.real(0.1).decode(Decimal.self))?.description == "0.1")
    #expect(Decimal.nan.columnValue == .null)
  }
}
