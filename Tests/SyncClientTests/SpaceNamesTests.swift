import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Names in the space", .hangLimit)
struct SpaceNamesTests {
  private typealias Pair = SpaceNames.Pair

  private static let declared = SpaceSchema(
    tables: [
      "tasks": TableRules(
        columns: ["title": ColumnRules(aliases: ["name", "label"])], aliases: ["todos"])
    ])

  @Test("without other names, each name is the space's")
  func same() throws {
    let names = SpaceNames()
    #expect(names.isEmpty)
    #expect(names.candidates(for: "tasks") == ["tasks"])
    #expect(names.spaceName(ofTable: "tasks") == "tasks")
    #expect(try names.spaceNames(of: ["title", "due"], in: "tasks") == ["title", "due"])
  }

  @Test("a renamed table is found under its new name first, ignoring case")
  func tables() {
    let names = SpaceNames(tables: [Pair(space: "tasks", local: "todos")])
    #expect(names.candidates(for: "tasks") == ["todos", "tasks"])
    #expect(names.spaceName(ofTable: "TODOS") == "tasks")
    #expect(names.spaceName(ofTable: "tasks") == "tasks")
  }

  @Test("a declared name counts where the space's own name is absent")
  func aliases() throws {
    let names = SpaceNames(schema: Self.declared)
    #expect(names.candidates(for: "tasks") == ["tasks", "todos"])
    #expect(names.spaceName(ofTable: "Todos") == "tasks")
    #expect(try names.spaceNames(of: ["Name", "due"], in: "tasks") == ["title", "due"])
    #expect(try names.spaceNames(of: ["title", "name"], in: "tasks") == ["title", "name"])
    #expect(try names.spaceNames(of: ["name"], in: "other") == ["name"])
  }

  @Test("two columns that would be one of the space are refused")
  func taken() throws {
    let names = SpaceNames(columns: ["tasks": [Pair(space: "title", local: "name")]])
    #expect(try names.spaceNames(of: ["name", "due"], in: "tasks") == ["title", "due"])
    #expect(throws: SpaceNames.NameTaken(name: "title", locals: ["name", "title"])) {
      try names.spaceNames(of: ["name", "title"], in: "tasks")
    }
    let both = SpaceNames(schema: Self.declared)
    #expect(throws: SpaceNames.NameTaken(name: "title", locals: ["name", "label"])) {
      try both.spaceNames(of: ["name", "label"], in: "tasks")
    }
  }

  @Test("two columns that exchange their names keep those in the space")
  func exchanged() throws {
    let names = SpaceNames(
      columns: ["t": [Pair(space: "a", local: "b"), Pair(space: "b", local: "a")]])
    #expect(try names.spaceNames(of: ["a", "b"], in: "t") == ["b", "a"])
  }
}
