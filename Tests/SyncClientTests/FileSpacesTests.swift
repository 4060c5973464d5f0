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

  /// A file with a table of the first space, and one of a joined space.
  init() throws {
    fixture = try ReplicaFixture.withTasks()
    try fixture.run("CREATE TABLE shopping(id TEXT PRIMARY KEY, what TEXT)")
    try joined().track(["shopping"])
  }

  private func joined(_ name: String = "family") throws -> ReplicaFile {
    let space = try #require(SpaceName(name))
    let address = ServerAddress(url: "http://ferry.test", space: space)
    return try file.spaces.file(file.spaces.join(address))
  }

  private func pending(_ file: ReplicaFile) throws -> [String] {
    try file.queue.oldest(100).map {
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
    #expect(try MigrationSteps(file: file).run(#require(migrator.steps.first), after: []))
    try fixture.run(
      "INSERT INTO shopping VALUES ('s1', 'milk', 2); INSERT INTO tasks(id, due) VALUES ('t1', 3)")
    let operation = try #require(joined().queue.oldest(9).first?.operation)
    #expect(operation.columns.map(\.name).sorted() == ["price", "what"])
    #expect(try pending(file) == ["insert t1"])
  }

  @Test("a name from before the tracking is known in each space, and a new table has none of it")
  func renamedBeforeTracking() throws {
    try fixture.run("CREATE TABLE lists(id TEXT PRIMARY KEY, what TEXT)")
    try file.write {
      try $0.renameColumn("what", of: "lists", to: "item")
      try $0.renameTable("lists", to: "plans")
      try $0.execute("CREATE TABLE lists(id TEXT PRIMARY KEY, item TEXT)")
    }
    try joined().track(["plans"])
    try file.track(["lists"])
    try fixture.run("INSERT INTO plans VALUES ('p', 'x'); INSERT INTO lists VALUES ('l', 'y')")
    let plan = try #require(joined().queue.oldest(9).first?.operation)
    #expect(plan.key == RecordKey(table: "lists", record: "p"))
    #expect(plan.columns.map(\.name) == ["what"])
    let list = try #require(file.queue.oldest(9).first?.operation)
    #expect(list.key == RecordKey(table: "lists", record: "l"))
    #expect(list.columns.map(\.name) == ["item"])
    try joined().tracking.untrack("plans")
    try fixture.run("DROP TABLE plans")
    try fixture.run("CREATE TABLE plans(id TEXT PRIMARY KEY, item TEXT)")
    #expect(try joined().tables.schema(local: "plans").name == "plans")
    #expect(try joined().tables.schema(local: "plans").columns.map(\.name) == ["item"])
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

  @Test(
    "a trigger repeats no delete of another space, unless the row goes by this device's own delete")
  func nestedDelete() throws {
    try fixture.run(
      """
      CREATE TABLE steps(id TEXT PRIMARY KEY, task REFERENCES tasks(id) ON DELETE CASCADE);
      CREATE TRIGGER sold AFTER DELETE ON tasks
      BEGIN INSERT INTO shopping VALUES ('no ' || OLD.id, ''); END;
      CREATE TRIGGER stepped AFTER DELETE ON steps
      BEGIN INSERT INTO shopping VALUES ('no step ' || OLD.id, ''); END
      """)
    try file.track(["steps"])
    try fixture.apply([PageMaker().change(1, "tasks", "t1", [Column("title", "remote")])])
    try fixture.run("INSERT INTO steps VALUES ('s1', 't1')")
    try fixture.apply([PageMaker().deletion(2, "tasks", "t1", at: 1_700_000_000_001)])
    #expect(try fixture.rows("SELECT id FROM tasks UNION ALL SELECT id FROM steps") == [])
    #expect(try pending(file) == ["insert s1", "delete s1"])
    #expect(try pending(joined()) == ["insert no step s1"])
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

  @Test("leaving a space changes nothing of another, whatever triggers the user has")
  func leftWithTriggers() throws {
    try fixture.run(
      """
      CREATE TRIGGER gone AFTER DELETE ON shopping BEGIN DELETE FROM tasks WHERE id = OLD.id; END;
      INSERT INTO shopping VALUES ('1', 'milk'); INSERT INTO tasks(id) VALUES ('1')
      """)
    try file.spaces.leave(2, discarding: true)
    #expect(try fixture.rows("SELECT id FROM tasks") == [["1"]])
    #expect(try pending(file) == ["insert 1"])
  }

  @Test("a foreign key between two spaces cannot be added later, and no space is left over one")
  func foreignKeyLater() throws {
    let key = "ALTER TABLE tasks ADD COLUMN s TEXT REFERENCES shopping(id) ON DELETE CASCADE"
    #expect(throws: (any Error).self) { try fixture.run(key) }
    #expect(throws: Never.self) { try fixture.run("ALTER TABLE tasks ADD COLUMN s TEXT") }
    // Another program adds it.
    let other = try SQLiteConnection(path: fixture.path)
    try other.execute(
      "ALTER TABLE tasks ADD COLUMN t TEXT REFERENCES shopping(id) ON DELETE CASCADE")
    try fixture.run(
      "INSERT INTO shopping VALUES ('1', 'milk'); INSERT INTO tasks(id, t) VALUES ('1', '1')")
    #expect(throws: ReplicaError.self) { try file.spaces.leave(2, discarding: true) }
    #expect(try fixture.rows("SELECT id FROM tasks") == [["1"]])
  }

  @Test("a name that a schema declares does not lead to a table of another space")
  func aliased() throws {
    let declared = #"{"version":1,"tables":{"shopping":{"aliases":["tasks"]}}}"#
    let family = try joined()
    try family.connection.run(
      "INSERT INTO ferry_schemas(version, document) VALUES (1, ?)", declared)
    try family.connection.run("UPDATE ferry_replica SET schema = 1")
    try fixture.run("DROP TABLE shopping")
    try fixture.run("INSERT INTO tasks(id, title) VALUES ('1', 'private')")
    #expect(try pending(file) == ["insert 1"])
    #expect(try pending(family) == [])
    try file.spaces.leave(2, discarding: true)
    #expect(try fixture.rows("SELECT id FROM tasks") == [["1"]])
  }

  @Test("the first space cannot become one that the file has joined")
  func firstIsOther() throws {
    #expect(throws: ReplicaError.self) {
      try file.settings.configure(
        ServerAddress(url: "http://ferry.test", space: #require(SpaceName("family"))), token: nil)
    }
  }

  @Test("a device has one name in all spaces, also in those that it joins later")
  func named() throws {
    try joined().nameSteps.set(DeviceName(checking: "Ada's laptop"))
    #expect(try file.deviceNames.own().name?.text == "Ada's laptop")
    #expect(try joined("lists").deviceNames.own().name?.text == "Ada's laptop")
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
