import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Ledgers of several spaces in one file.
@Suite("Several spaces in one file", .hangLimit)
struct FileSpacesTests {
  private let fixture: ReplicaFixture
  private var file: ReplicaFile { fixture.file }

  /// A file with a table of its first space, and one of a joined space.
  init() throws {
    fixture = try ReplicaFixture.withTasks()
    try fixture.run("CREATE TABLE shopping(id TEXT PRIMARY KEY, what TEXT)")
    try joined().track(["shopping"])
  }

  private func joined(_ name: String = "family") throws -> ReplicaFile {
    let space = try #require(SpaceName(name))
    return try file.spaces.file(file.spaces.join(space))
  }

  private func pending(_ file: ReplicaFile) throws -> [String] {
    try file.pendingOperations(limit: 100).map {
      "\($0.operation.kind.rawValue) \($0.operation.key.record)"
    }
  }

  @Test("one transaction records to all spaces, or to none")
  func recorded() throws {
    try fixture.run(
      "INSERT INTO tasks(id) VALUES ('t1'); INSERT INTO shopping VALUES ('s1', 'milk')")
    #expect(throws: (any Error).self) {
      try file.write {
        try $0.execute(
          "INSERT INTO tasks(id) VALUES ('t2'); INSERT INTO shopping VALUES ('s2', '')")
        try $0.execute("INSERT INTO shopping VALUES ('s1', 'twice')")
      }
    }
    #expect(try pending(file) == ["insert t1"])
    #expect(try pending(joined()) == ["insert s1"])
    #expect(try file.identity().device != joined().identity().device)
  }

  @Test("a file that is opened again has its spaces, and another process notices a new one")
  func reopened() throws {
    let other = try fixture.other()
    let lists = try joined("lists")
    try fixture.run("CREATE TABLE lists(id TEXT PRIMARY KEY)")
    try lists.track(["lists"])
    _ = try other.write { try $0.execute("INSERT INTO lists VALUES ('l1')") }
    #expect(try pending(other.spaces.file(3)) == ["insert l1"])
    try fixture.reopen()
    #expect(try file.spaces.list().map(\.space) == ["family", "lists"])
    try fixture.run("INSERT INTO shopping VALUES ('s1', 'milk')")
    #expect(try pending(joined()) == ["insert s1"])
  }

  @Test("a table belongs to one space, and so do tables that foreign keys connect")
  func oneSpace() throws {
    #expect(throws: ReplicaError.self) { try file.track(["shopping"]) }
    #expect(throws: ReplicaError.self) { try joined().track(["tasks"]) }
    try fixture.run("CREATE TABLE parts(id TEXT PRIMARY KEY, task TEXT REFERENCES tasks(id))")
    let refusal = #expect(throws: ReplicaError.self) { try joined().track(["parts"]) }
    #expect("\(refusal.map { "\($0)" } ?? "")".contains("foreign key"))
    try file.track(["parts"])
  }

  @Test("tables of all spaces may be altered, renamed and migrated")
  func altered() throws {
    try fixture.run("ALTER TABLE shopping ADD COLUMN price; ALTER TABLE tasks ADD COLUMN due")
    try file.write { try $0.renameColumn("what", of: "shopping", to: "item") }
    var migrator = Migrator()
    migrator.add("prices") { try $0.execute("UPDATE shopping SET price = 1") }
    #expect(try file.run(#require(migrator.steps.first), after: []))
    try fixture.run(
      "INSERT INTO shopping VALUES ('s1', 'milk', 2); INSERT INTO tasks(id, due) VALUES ('t1', 3)")
    let operation = try #require(joined().pendingOperations(limit: 9).first?.operation)
    #expect(operation.columns.map(\.name).sorted() == ["price", "what"])
    #expect(try pending(file) == ["insert t1"])
  }

  @Test("a trigger of the user does not repeat for one space what another one applies")
  func nested() throws {
    try fixture.run(
      """
      CREATE TRIGGER buys AFTER INSERT ON tasks
      BEGIN INSERT INTO shopping VALUES ('for ' || NEW.id, ''); END
      """)
    try fixture.apply([PageMaker().change(1, "tasks", "t1", [Column("title", "remote")])])
    #expect(try pending(joined()) == [])
    try fixture.run("INSERT INTO tasks(id) VALUES ('t2')")
    #expect(try pending(joined()) == ["insert for t2"])
  }

  @Test("a space with unsent changes is left only if they may be lost, and nothing of it stays")
  func left() throws {
    try fixture.run(
      "INSERT INTO shopping VALUES ('s1', 'milk'); INSERT INTO tasks(id) VALUES ('t1')")
    #expect(throws: ReplicaError.unsent(space: "family", 1)) {
      try file.spaces.leave(2, discarding: false)
    }
    try file.spaces.leave(2, discarding: true)
    #expect(try fixture.rows("SELECT * FROM shopping") == [])
    #expect(try fixture.rows("SELECT name FROM sqlite_schema WHERE name LIKE '%ferry_2_%'") == [])
    #expect(try pending(file) == ["insert t1"])
    #expect(throws: ReplicaError.self) { try file.spaces.file(2) }
    // The table is free for another space, whose ledger has another number.
    try fixture.run("INSERT INTO shopping VALUES ('s2', 'tea')")
    try joined().track(["shopping"])
    #expect(try joined().number == 3)
    #expect(try pending(joined()) == ["insert s2"])
  }

  @Test("a device has one name in all spaces, also in those that it joins later")
  func named() throws {
    try joined().setDeviceName(DeviceName(checking: "Ada's laptop"))
    #expect(try file.ownName().name?.text == "Ada's laptop")
    #expect(try joined("lists").ownName().name?.text == "Ada's laptop")
  }

  @Test("the first space cannot be joined or left, and their number is limited")
  func limits() throws {
    #expect(throws: ReplicaError.self) { try file.spaces.leave(1, discarding: true) }
    for number in 3...FileSpaces.spacesMax { _ = try joined("space-\(number)") }
    #expect(throws: ReplicaError.self) { try joined("one-more") }
    #expect(try joined("space-3").number == 3)
    try fixture.run(
      "INSERT INTO shopping VALUES ('s1', 'milk'); INSERT INTO tasks(id) VALUES ('t1')")
    #expect(try pending(joined()) == ["insert s1"])
  }
}
