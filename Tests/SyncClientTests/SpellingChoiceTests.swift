import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Choices between spellings", .hangLimit)
struct SpellingChoiceTests {
  private static let tracked = [
    SpaceNames.Pair(space: "Tasks", local: "todo"), SpaceNames.Pair(space: "lists", local: "lists"),
  ]

  @Test(
    "a table gets the space's name, unless the space knows both",
    arguments: [
      ("notes", false, .none), ("lists", true, .none), ("tasks", false, .rename("Tasks")),
      ("tasks", true, .clash(local: "todo")),
    ] as [(Name, Bool, SpellingChoice)])
  func table(name: Name, isShared: Bool, expected: SpellingChoice) {
    #expect(SpellingChoice.table(name, among: Self.tracked) { _ in isShared } == expected)
  }

  private static let schema = TableSchema(
    name: "tasks", keys: [KeyColumn(local: "ID", type: "TEXT")],
    columns: [
      .init(name: "title", local: "text", defaultSQL: nil, isRequired: false),
      .init(name: "Done", local: "Done", defaultSQL: nil, isRequired: false),
    ])

  @Test(
    "a column gets the space's name, unless the space knows both, or SQLite treats it as another",
    arguments: [
      ("place", false, .none), ("title", true, .none), ("done", false, .rename("Done")),
      ("done", true, .clash(local: "Done")), ("id", false, .clash(local: "ID")),
      ("Text", false, .clash(local: "text")), ("Title", true, .clash(local: "text")),
    ] as [(Name, Bool, SpellingChoice)])
  func column(name: Name, isShared: Bool, expected: SpellingChoice) {
    #expect(SpellingChoice.column(name, of: Self.schema) { _ in isShared } == expected)
  }
}
