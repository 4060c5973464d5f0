import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The rules of a batch", .hangLimit)
struct BatchRulesTests {
  /// Tasks of lists; the column `body` has the name `text` here. Both keys are integers here if
  /// `isMapped`.
  private static func rules(isMapped: Bool = false, keys: [Name] = ["id"]) -> BatchRules {
    func column(_ name: Name, _ local: Name, _ numbers: Name? = nil) -> TableSchema.ColumnInfo {
      var info = TableSchema.ColumnInfo(
        name: name, local: local, defaultSQL: nil, isRequired: false)
      info.numbers = numbers
      return info
    }
    let table = TableSchema(
      name: "tasks", local: "todo", keys: keys.map { KeyColumn(local: $0, type: "TEXT") },
      identity: isMapped ? .mapped : .text,
      columns: [column("body", "text"), column("list", "list", isMapped ? "lists" : nil)])
    var limits = Limits.standard
    (limits.valueBytes, limits.batchRecords) = (16, 2)
    return BatchRules(table: table, limits: limits) { number, table in
      number == 7 ? "\(table)-seven" : nil
    }
  }

  private func fault(_ body: () throws -> Void) throws -> String {
    let error = #expect(throws: ReplicaError.self) { try body() }
    guard case .invalidBatch(let reason) = try #require(error) else { return "" }
    return reason
  }

  @Test("columns have the names of the space, and SQLite's NULL for NaN")
  func columns() throws {
    let rules = Self.rules()
    #expect(
      try rules.columns([Column("TEXT", .real(.nan)), Column("list", "a")], .set)
        == [Column("body", .null), Column("list", "a")])
    #expect(try rules.columns([], .delete).isEmpty)
  }

  @Test(
    "a batch that cannot be sent says why",
    arguments: [
      ([], "sets at least one column"), ([Column("id", "a")], "a record's key id cannot be set"),
      ([Column("text", 1), Column("TEXT", 2)], "column body is set twice"),
      ([Column("text", "12345678901234567")], "column body is set to 17 bytes; 16 can be synced"),
      ([Column("body", 1)], "table todo has no column body; it has id, text, list"),
    ] as [([Column], String)])
  func faults(columns: [Column], reason: String) throws {
    let found = try fault { _ = try Self.rules().columns(columns, .set) }
    #expect(found.contains(reason))
  }

  @Test("the column with a record's space cannot be set")
  func share() throws {
    var table = Self.rules().table
    table.share = SpaceShare(column: "list", space: "a")
    let rules = BatchRules(table: table, limits: .standard) { _, _ in nil }
    let found = try fault { _ = try rules.columns([Column("List", "b")], .set) }
    #expect(found.contains("move the rows one by one"))
  }

  @Test("integers of this device become identifiers, and compare only as equal or not")
  func numbers() throws {
    let rules = Self.rules(isMapped: true)
    #expect(
      try rules.columns([Column("list", 7), Column("text", 7)], .set)
        == [Column("list", "lists-seven"), Column("body", 7)])
    let predicate = RecordPredicate.and([
      .compare(.column("id"), .equal, 7), .isNull(.column("list")),
      .compare(.column("list"), .unequal, 7),
    ])
    #expect(
      try rules.predicate(predicate)
        == .and([
          .compare(.record, .equal, "tasks-seven"), .isNull(.column("list")),
          .compare(.column("list"), .unequal, "lists-seven"),
        ]))
    let absent = try fault { _ = try rules.columns([Column("list", 8)], .set) }
    #expect(absent == "there is no record 8 of lists here")
    let ordered = try fault { _ = try rules.predicate(.compare(.column("id"), .less, 7)) }
    #expect(ordered.contains("compare them with = or <>"))
  }

  @Test("a predicate looks at no part of a key, and matches as many records as the server accepts")
  func matches() throws {
    let parts = Self.rules(keys: ["a", "b"])
    let part = try fault { _ = try parts.predicate(.isNull(.column("B"))) }
    #expect(part == "a batch cannot look at B, a part of the key of todo")
    try Self.rules().check(matches: 2)
    let many = try fault { try Self.rules().check(matches: 3) }
    #expect(many.contains("it matches 3 records of todo, and a batch may match 2"))
  }
}
