import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The decisions about changed definitions of a company's tables, without a database.
@Suite("Changes of a company's tables", .hangLimit)
struct TableChangeTests {
  private static func column(
    _ name: String, _ type: String, required: Bool = false, default sql: String? = nil
  ) -> CompanyColumn {
    CompanyColumn(
      name: name, type: type, shownType: type, isRequired: required, defaultSQL: sql)
  }

  private static let id = column("id", "int4", required: true)
  private static let title = column("title", "varchar")
  private static let count = column("n", "int4")

  private static func shape(
    _ columns: [(Int, CompanyColumn)], relation: Int64 = 7
  ) throws -> TableShape {
    let parts = columns.map { place, column in
      "{\"place\":\(place),\"name\":\"\(column.name)\",\"type\":\"\(column.type ?? "")\"}"
    }
    return try #require(
      try TableShape(
        "{\"relation\":\(relation),\"columns\":[\(parts.joined(separator: ","))]}"))
  }

  /// Returns the decision about a table with columns by their numbers.
  private func change(
    to columns: (Int, CompanyColumn)..., relation: Int64 = 7, key: String = "id",
    formerNames: [Name: Name] = [:], renamed: [RenamedColumn] = [], held: Set<Name> = [],
    dropped: Set<Name> = []
  ) throws -> TableChange {
    let former = [Self.id, Self.title, Self.count]
    let plans = try [(former, "id"), (columns.map(\.1), key)].map { columns, key in
      try AdoptionPlan([CompanyTable(name: "tasks", columns: columns, key: [key])], [:]).tables[0]
    }
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(definition: plans[0].definition)
    var table = try MirrorPlan(schema, types: [:]).adopting(["tasks": plans[0].adoption]).tables[0]
    // The settings of a process that was killed have the names already.
    for place in table.columns.indices {
      let name = table.columns[place].name
      table.columns[place].name = formerNames[name] ?? name
    }
    var known = RenamedColumns()
    known.rename(renamed, in: "tasks")
    var definition = plans[0].definition.renaming(known.present(in: "tasks"))
    definition.columns.removeAll { dropped.contains($0.name) }
    return TableChange(
      TableChange.Sides(
        former: table, columns: ["id", "title", "n"],
        formerShape: try Self.shape(zip(1..., former).map { ($0, $1) }),
        shape: try Self.shape(columns, relation: relation), plan: plans[1],
        known: definition, renamed: known, held: held))
  }

  private func followed(_ change: TableChange) -> FollowedTable? {
    if case .followed(let table) = change { table } else { nil }
  }

  @Test("a new column is added to the definition, and a dropped one leaves it")
  func columns() throws {
    let note = Self.column("note", "text", required: true, default: "'x'::text")
    let added = try #require(
      followed(try change(to: (1, Self.id), (2, Self.title), (3, Self.count), (4, note))))
    #expect(added.added == ["note"] && !added.compares && added.shown == "note new")
    #expect(added.definition.columns.map(\.name) == ["title", "n", "note"])
    #expect(added.definition.columns.last?.defaultValue == "x")
    #expect(added.adoption.columns == ["title", "n", "note"])
    let dropped = try #require(followed(try change(to: (1, Self.id), (3, Self.count))))
    #expect(dropped.dropped == ["title"] && !dropped.compares && dropped.shown == "title gone")
    #expect(dropped.definition.columns.map(\.name) == ["n"])
    let refused = added.withoutAdditions(DeclaredTable(key: "id", columns: []))
    #expect(refused.adoption.columns == ["title", "n"] && refused.added.isEmpty)
  }

  @Test("a column that the space has dropped meanwhile is published again")
  func droppedBySpace() throws {
    let count = Self.column("n", "int4")
    let again = try #require(
      followed(
        try change(to: (1, Self.id), (2, Self.title), (4, count), dropped: ["n"])))
    #expect(again.added == ["n"] && again.compares)
    #expect(again.definition.columns.map(\.name) == ["title", "n"])
    #expect(again.adoption.columns == ["title", "n"])
  }

  @Test("a type with the same values on devices is followed, and another one stops the mirror")
  func types() throws {
    let wide = try #require(
      followed(
        try change(
          to: (1, Self.id), (2, Self.column("title", "text")), (3, Self.column("n", "int8")))))
    #expect(wide.retyped == ["title", "n"] && wide.compares)
    let text = try change(to: (1, Self.id), (2, Self.title), (3, Self.column("n", "text")))
    #expect(
      text == .stopped("column n is integer on devices, and its new type would be text"))
    let key = try change(to: (1, Self.column("id", "text")), (2, Self.title), (3, Self.count))
    #expect(key == .stopped("its key is another one"))
    // The same name under another number is a new column.
    let again = try #require(
      followed(try change(to: (1, Self.id), (3, Self.count), (4, Self.title))))
    #expect(again.retyped == ["title"] && again.dropped.isEmpty)
  }

  @Test("a renamed column is the same one, unless the space knows the name")
  func renamed() throws {
    let name = Self.column("name", "text")
    let table = try #require(
      followed(try change(to: (1, Self.id), (2, name), (3, Self.count))))
    let column = RenamedColumn(former: "title", present: "name", place: 2)
    #expect(table.renamed == [column] && table.recaptured == [column] && table.compares)
    #expect(table.shown == "title is named name; name of another type")
    #expect(table.added.isEmpty && table.dropped.isEmpty)
    #expect(table.definition.columns.map(\.name) == ["name", "n"])
    #expect(table.adoption.columns == ["name", "n"])
    let again = try change(to: (1, Self.id), (2, name), (3, Self.count), (4, Self.title))
    #expect(again == .stopped("column title is another one now"))
    // The space's column of the name is the one that the company has renamed before.
    let label = Self.column("label", "varchar")
    let first = try #require(
      followed(
        try change(
          to: (1, Self.id), (2, label), (3, Self.count), (4, Self.title),
          formerNames: ["title": "label"],
          renamed: [RenamedColumn(former: "title", present: "label", place: 2)])))
    #expect(first.added.isEmpty && first.adoption.columns == ["label", "n"])
    let held = try change(to: (1, Self.id), (2, name), (3, Self.count), held: ["name"])
    #expect(
      held == .stopped("column title has the name of another column of the space, name"))
  }

  @Test("settings that are ahead of PostgreSQL's functions, after a kill, are followed from there")
  func ahead() throws {
    let saved = [RenamedColumn(former: "title", present: "name", place: 2)]
    let names: [Name: Name] = ["title": "name"]
    let same = try #require(
      followed(
        try change(
          to: (1, Self.id), (2, Self.column("name", "varchar")), (3, Self.count),
          formerNames: names, renamed: saved, held: ["title"])))
    #expect(same.renamed.isEmpty && same.recaptured == saved && same.compares)
    let back = try #require(
      followed(
        try change(
          to: (1, Self.id), (2, Self.title), (3, Self.count), formerNames: names, renamed: saved,
          held: ["title"])))
    #expect(back.renamed == [RenamedColumn(former: "name", present: "title", place: 2)])
    #expect(back.recaptured.isEmpty && back.definition.columns.map(\.name) == ["title", "n"])
  }

  @Test("a table as before is followed without a change: writes of meanwhile may be missing")
  func back() throws {
    let same = try #require(
      followed(try change(to: (1, Self.id), (2, Self.title), (3, Self.count))))
    #expect(same.shown.isEmpty && same.adoption.columns == ["title", "n"])
    #expect(same.definition.columns.map(\.name) == ["title", "n"])
  }

  @Test("a renamed column that is made again is known by the new number")
  func madeAgain() throws {
    let saved = [RenamedColumn(former: "title", present: "name", place: 2)]
    let made = try #require(
      followed(
        try change(
          to: (1, Self.id), (3, Self.count), (5, Self.column("name", "text")),
          formerNames: ["title": "name"], renamed: saved)))
    #expect(made.definition.columns.map(\.name) == ["name", "n"] && made.compares)
    var renamed = RenamedColumns()
    renamed.rename(saved, in: "tasks")
    renamed.adapt(to: made)
    #expect(renamed.places(in: "tasks") == ["name": 5])
    #expect(renamed.present(in: "tasks") == ["title": "name"])
  }

  @Test("the space keeps the first name of a column that is renamed again and again")
  func firstNames() throws {
    var renamed = RenamedColumns()
    renamed.rename([RenamedColumn(former: "title", present: "name", place: 2)], in: "tasks")
    renamed.rename([RenamedColumn(former: "name", present: "label", place: 2)], in: "tasks")
    #expect(renamed.present(in: "tasks") == ["title": "label"])
    var schema = SpaceSchema.empty
    let columns = ["title", "n"].map { DeclaredColumn(Name($0), .text) }
    let definition = DeclaredTable(key: .text("id"), columns: columns, unique: [["n", "title"]])
    schema.tables["tasks"] = TableRules(
      columns: ["title": ColumnRules(policy: .ask)], unique: [["title"]], definition: definition)
    let applied = try #require(renamed.applied(to: schema).tables["tasks"])
    #expect(applied.columns.keys.sorted() == ["label"] && applied.unique == [["label"]])
    #expect(applied.definition?.unique == [["n", "label"]])
    #expect(renamed.applied(to: renamed.applied(to: schema)) == renamed.applied(to: schema))
    let present = try #require(applied.definition)
    #expect(renamed.published(present, of: "tasks") == definition)
    renamed.rename([RenamedColumn(former: "label", present: "title", place: 2)], in: "tasks")
    #expect(renamed.present(in: "tasks").isEmpty && renamed.applied(to: schema) == schema)
  }

  @Test("another name of the key, and another table of the name, are not followed")
  func names() throws {
    let renamed = try change(
      to: (1, Self.column("number", "int4", required: true)), (2, Self.title), (3, Self.count),
      key: "number")
    #expect(renamed == .lost)
    let exchanged = try change(
      to: (1, Self.id), (2, Self.column("n", "varchar")), (3, Self.column("title", "int4")))
    #expect(exchanged == .stopped("column title is another one now"))
    let replaced = try change(to: (1, Self.id), (2, Self.title), (3, Self.count), relation: 8)
    #expect(replaced == .lost)
  }
}
