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
    #expect(names.locals(of: "tasks") == ["tasks"])
    #expect(names.spaceName(ofUntracked: "tasks") { _ in true } == "tasks")
    #expect(
      try names.spaceNames(of: ["title", "due"], in: "tasks", called: "tasks") == ["title", "due"])
  }

  @Test("a renamed table is found under its new name first, ignoring case")
  func tables() {
    let names = SpaceNames(tables: [Pair(space: "tasks", local: "todos")])
    #expect(names.locals(of: "tasks") == ["todos", "tasks"])
    #expect(names.spaceName(ofUntracked: "TODOS") { _ in true } == "tasks")
    #expect(names.spaceName(ofUntracked: "tasks") { _ in true } == "tasks")
  }

  @Test("a declared name counts where the space's own name is absent")
  func aliases() throws {
    let names = SpaceNames(schema: Self.declared)
    #expect(names.locals(of: "tasks") == ["tasks", "todos"])
    #expect(names.spaceName(ofUntracked: "Todos") { _ in false } == "tasks")
    #expect(names.spaceName(ofUntracked: "Todos") { $0 == "tasks" } == "Todos")
    #expect(
      try names.spaceNames(of: ["Name", "due"], in: "tasks", called: "tasks") == ["title", "due"])
    #expect(
      try names.spaceNames(of: ["title", "name"], in: "tasks", called: "tasks") == [
        "title", "name",
      ])
    #expect(try names.spaceNames(of: ["name"], in: "other", called: "other") == ["name"])
  }

  @Test("two columns that would be one of the space are refused")
  func taken() throws {
    let names = SpaceNames(columns: ["tasks": [Pair(space: "title", local: "name")]])
    #expect(
      try names.spaceNames(of: ["name", "due"], in: "tasks", called: "tasks") == ["title", "due"])
    #expect(throws: SpaceNames.NameTaken(name: "title", locals: ["name", "title"])) {
      try names.spaceNames(of: ["name", "title"], in: "tasks", called: "tasks")
    }
    let both = SpaceNames(schema: Self.declared)
    #expect(throws: SpaceNames.NameTaken(name: "title", locals: ["name", "label"])) {
      try both.spaceNames(of: ["name", "label"], in: "tasks", called: "tasks")
    }
  }

  @Test("a name that the device has changed counts before a declared one")
  func renamedAndDeclared() throws {
    let names = SpaceNames(
      columns: ["tasks": [Pair(space: "title", local: "memo")]], schema: Self.declared)
    #expect(
      try names.spaceNames(of: ["memo", "name"], in: "tasks", called: "tasks") == ["title", "name"])
  }

  @Test("two columns that exchange their names keep those in the space")
  func exchanged() throws {
    let names = SpaceNames(
      columns: ["t": [Pair(space: "a", local: "b"), Pair(space: "b", local: "a")]])
    #expect(try names.spaceNames(of: ["a", "b"], in: "t", called: "t") == ["b", "a"])
  }
}
