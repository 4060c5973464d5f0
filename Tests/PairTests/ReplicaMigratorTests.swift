import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Steps of a migrator in replicas, beside devices of another version.
@Suite("Migrations of replicas", .hangLimit)
struct ReplicaMigratorTests {
  private static let family = """
    CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER);
    CREATE TABLE parts(id TEXT PRIMARY KEY, note TEXT REFERENCES notes(id) ON DELETE CASCADE);
    """

  private static func migrator(
    _ name: String, recorded: Bool = false, _ body: @escaping @Sendable (Database) throws -> Void
  ) -> Migrator {
    var migrator = Migrator()
    migrator.add(name, recorded: recorded, body)
    return migrator
  }

  private static let renames = migrator("notes are memos") {
    try $0.renameColumn("body", of: "notes", to: "text")
    try $0.renameTable("notes", to: "memos")
  }

  private func make() async throws -> Pair {
    let pair = try await Pair.make(schema: Self.family, tracking: ["notes", "parts"])
    try await pair.one.write(
      "INSERT INTO notes VALUES ('a', 'one', 1), ('b', 'two', 2); INSERT INTO parts VALUES ('p', 'a')"
    )
    try await settle(pair.one, pair.two)
    return pair
  }

  private func settle(_ devices: Device...) async throws {
    for _ in 0..<3 { for device in devices { try await device.exchange() } }
    for device in devices {
      let report = try await device.open().verify()
      #expect(report.isEqual, "\(report.differences)")
      #expect(try await device.status().pending == 0)
    }
  }

  private let notes = "SELECT id, body, n FROM notes ORDER BY id"
  private let memos = "SELECT id, text, n FROM memos ORDER BY id"

  @Test("devices that call a table and a column otherwise sync with those that do not")
  func renamed() async throws {
    let pair = try await make()
    try await pair.one.open().migrate(Self.renames)
    #expect(try await pair.one.exchange().pushed == 0)
    try await pair.one.write("UPDATE memos SET text = 'ONE' WHERE id = 'a'")
    try await pair.one.write("INSERT INTO memos VALUES ('c', 'three', 3)")
    try await pair.two.write("UPDATE notes SET body = 'TWO' WHERE id = 'b'")
    try await pair.two.write("INSERT INTO parts VALUES ('q', 'b')")
    try await settle(pair.one, pair.two)
    let expected: [[Value]] = [["a", "ONE", 1], ["b", "TWO", 2], ["c", "three", 3]]
    #expect(try await pair.one.rows(memos) == expected)
    #expect(try await pair.two.rows(notes) == expected)
    try await pair.one.write("DELETE FROM memos WHERE id = 'b'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.rows("SELECT id FROM parts") == [["p"]])
    try await pair.two.open().migrate(Self.renames)
    #expect(try await pair.two.exchange().pushed == 0)
    #expect(try await pair.two.rows(memos) == [["a", "ONE", 1], ["c", "three", 3]])
    try await settle(pair.two, pair.one)
  }

  @Test("an edit from before a rename is sent under the name in the space")
  func renamedBeforeSync() async throws {
    let pair = try await make()
    try await pair.one.write("UPDATE notes SET body = 'before' WHERE id = 'a'")
    try await pair.one.open().migrate(Self.renames)
    try await pair.one.write("UPDATE memos SET text = text || ' and after' WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "before and after")
  }

  @Test("a batch, an undo and a conflict find a renamed column")
  func operationsOnRenamed() async throws {
    let pair = try await make()
    try await pair.one.open().migrate(Self.renames)
    let replica = try await pair.one.open()
    #expect(try await replica.batch("memos", where: "text = 'two'", set: ["text": "batched"]) == 1)
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'b'") == "batched")
    try await pair.one.write("UPDATE memos SET text = 'mine' WHERE id = 'a'")
    let own = try #require(try await replica.operations.recorded(limit: 1).first)
    try await replica.operations.undo(own.operation.id)
    #expect(try await pair.one.value("SELECT text FROM memos WHERE id = 'a'") == "one")
    try await settle(pair.one, pair.two)
    try await pair.one.write("UPDATE memos SET text = 'loses' WHERE id = 'a'")
    try await pair.two.write("UPDATE notes SET body = 'wins' WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    let conflict = try #require(try await replica.conflicts(limit: 1).first)
    try await replica.resolve(conflict.number, .set([Column("text", "loses")]))
    #expect(try await pair.one.value("SELECT text FROM memos WHERE id = 'a'") == "loses")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "loses")
  }

  @Test("a rename that fails changes no name in the space")
  func failedRename() async throws {
    let pair = try await make()
    try await pair.one.open().write { database in
      #expect(throws: DatabaseError.self) {
        try database.renameColumn("body", of: "notes", to: "n")
      }
      #expect(throws: DatabaseError.self) { try database.renameTable("notes", to: "parts") }
      try database.execute("UPDATE notes SET body = 'same', n = 7 WHERE id = 'a'")
    }
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.rows(notes).first == ["a", "same", 7])
  }

  @Test("names that are exchanged, and given back, stay those of the space")
  func exchangedNames() async throws {
    let pair = try await make()
    let exchange: @Sendable (Database) throws -> Void = { database in
      try database.renameColumn("body", of: "notes", to: "other")
      try database.renameColumn("n", of: "notes", to: "body")
      try database.renameColumn("other", of: "notes", to: "n")
    }
    try await pair.one.open().write(exchange)
    try await pair.one.write("UPDATE notes SET n = 'text', body = 5 WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.rows(notes).first == ["a", "text", 5])
    try await pair.one.open().write(exchange)
    try await pair.one.write("UPDATE notes SET body = 'back' WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.rows(notes) == pair.one.rows(notes))
    #expect(try await pair.two.rows(notes).first == ["a", "back", 5])
  }

  @Test("a new column may not have the name in the space of a renamed one")
  func takenName() async throws {
    let pair = try await make()
    let replica = try await pair.one.open()
    try await replica.write { try $0.renameColumn("body", of: "notes", to: "text") }
    await #expect(throws: ReplicaError.self) {
      try await replica.write { _ = try $0.execute("ALTER TABLE notes ADD COLUMN body") }
    }
    try await pair.one.write("UPDATE notes SET text = 'later' WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "later")
  }

  @Test("the schema names tables and columns of a version that creates them under other names")
  func declared() async throws {
    let pair = try await make()
    let schema = SpaceSchema(
      tables: [
        "notes": TableRules(columns: ["body": ColumnRules(aliases: ["text"])], aliases: ["memos"])
      ])
    try await pair.one.open().applySchema(schema)
    let new = try await Device.joined(
      pair.server.url,
      schema: "CREATE TABLE memos(id TEXT PRIMARY KEY, text TEXT, n INTEGER)", tracking: [])
    try await new.exchange()
    try await new.open().track("memos")
    try await settle(new, pair.one, pair.two)
    #expect(try await new.rows(memos) == [["a", "one", 1], ["b", "two", 2]])
    try await new.write("UPDATE memos SET text = 'new' WHERE id = 'a'")
    try await settle(new, pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "new")
    // A device renamed them by plain SQL before it knew of the declaration.
    try await pair.two.write("ALTER TABLE notes RENAME COLUMN body TO text")
    try await pair.two.write("UPDATE notes SET text = 'theirs' WHERE id = 'a'")
    try await settle(pair.two, new, pair.one)
    #expect(try await new.value("SELECT text FROM memos WHERE id = 'a'") == "theirs")
  }

  @Test("the writes of a step are no edits: one device sends them, and later edits of others win")
  func unrecorded() async throws {
    let pair = try await make()
    let shout = Self.migrator("shout") { try $0.execute("UPDATE notes SET body = upper(body)") }
    try await pair.one.open().migrate(shout)
    #expect(try await pair.one.status().pending == 0)
    #expect(try await pair.one.exchange().pushed == 2)
    try await pair.one.write("UPDATE notes SET body = 'by hand' WHERE id = 'a'")
    try await pair.one.exchange()
    try await pair.two.open().migrate(shout)
    try await settle(pair.two, pair.one)
    let expected: [[Value]] = [["a", "by hand", 1], ["b", "TWO", 2]]
    #expect(try await pair.two.rows(notes) == expected)
    #expect(try await pair.one.rows(notes) == expected)
  }

  @Test("a recorded step is an edit of the user, with what its schema deletes along")
  func recorded() async throws {
    let pair = try await make()
    let step = Self.migrator("tidy", recorded: true) {
      try $0.execute("DELETE FROM notes WHERE id = 'a'")
    }
    try await pair.one.open().migrate(step)
    #expect(try await pair.one.status().pending == 2)
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.rows("SELECT id FROM notes") == [["b"]])
    #expect(try await pair.two.count("parts") == 0)
  }

  @Test("a table that a step creates again keeps its children and sends nothing")
  func rebuilt() async throws {
    let pair = try await make()
    let rebuild = Self.migrator("rebuild") {
      try $0.execute(
        """
        CREATE TABLE next(id TEXT PRIMARY KEY, n INTEGER, body TEXT NOT NULL DEFAULT '');
        INSERT INTO next SELECT id, n, body FROM notes;
        DROP TABLE notes;
        ALTER TABLE next RENAME TO notes;
        """)
    }
    try await pair.one.open().migrate(rebuild)
    #expect(try await pair.one.exchange().pushed == 0)
    #expect(try await pair.one.count("parts") == 1)
    try await pair.one.write("UPDATE notes SET body = 'edited' WHERE id = 'b'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'b'") == "edited")
  }

  @Test("a row that a step leaves out comes back, and one that it adds is sent")
  func rows() async throws {
    let pair = try await make()
    let step = Self.migrator("rows") {
      try $0.execute("DELETE FROM notes WHERE id = 'b'; INSERT INTO notes VALUES ('c', 'three', 3)")
    }
    try await pair.one.open().migrate(step)
    try await settle(pair.one, pair.two)
    let expected: [[Value]] = [["a", "one", 1], ["b", "two", 2], ["c", "three", 3]]
    #expect(try await pair.one.rows(notes) == expected)
    #expect(try await pair.two.rows(notes) == expected)
  }

  @Test("a tracked table that a step drops is no longer tracked, and keeps its rows elsewhere")
  func dropped() async throws {
    let pair = try await make()
    try await pair.one.open().migrate(Self.migrator("drop") { try $0.execute("DROP TABLE parts") })
    try await settle(pair.one, pair.two)
    #expect(try await pair.one.status().tables == ["notes"])
    #expect(try await pair.two.count("parts") == 1)
  }

  @Test("a step that takes a tracked table's key fails, and the table syncs as before")
  func lostKey() async throws {
    let pair = try await make()
    let step = Self.migrator("no key") {
      try $0.execute("DROP TABLE parts; CREATE TABLE parts(id INTEGER PRIMARY KEY, note TEXT)")
    }
    await #expect(throws: MigrationFailure.self) { try await pair.one.open().migrate(step) }
    try await pair.one.write("INSERT INTO parts VALUES ('q', 'b')")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.count("parts") == 2)
  }

  @Test("a value that a step writes over a pending edit reaches the others")
  func overPending() async throws {
    let pair = try await make()
    try await pair.one.write("UPDATE notes SET body = 'offline' WHERE id = 'a'")
    try await pair.one.write("INSERT INTO notes VALUES ('c', 'new', 3)")
    try await pair.one.open().migrate(
      Self.migrator("shout") { try $0.execute("UPDATE notes SET body = upper(body)") })
    try await pair.one.write("UPDATE notes SET n = 30 WHERE id = 'c'")
    try await settle(pair.one, pair.two)
    let expected: [[Value]] = [["a", "OFFLINE", 1], ["b", "TWO", 2], ["c", "NEW", 30]]
    #expect(try await pair.one.rows(notes) == expected)
    #expect(try await pair.two.rows(notes) == expected)
  }

  @Test("a column that a step drops and adds again gets its values back")
  func replacedColumn() async throws {
    let pair = try await make()
    try await pair.one.open().migrate(
      Self.migrator("again") {
        try $0.execute("ALTER TABLE notes DROP COLUMN body; ALTER TABLE notes ADD COLUMN body TEXT")
      })
    try await settle(pair.one, pair.two)
    #expect(try await pair.one.rows(notes) == [["a", "one", 1], ["b", "two", 2]])
  }

  @Test("two tables that exchange their names keep those in the space, tracked before or after")
  func exchangedTables() async throws {
    let schema =
      "CREATE TABLE notes(id TEXT PRIMARY KEY, body); CREATE TABLE memos(id TEXT PRIMARY KEY, body)"
    let exchange = Self.migrator("exchange") {
      try $0.renameTable("notes", to: "other")
      try $0.renameTable("MEMOS", to: "notes")
      try $0.execute("UPDATE other SET body = upper(body)")
      try $0.renameTable("other", to: "memos")
    }
    let pair = try await Pair.make(schema: schema, tracking: ["notes", "memos"])
    try await pair.one.write(
      "INSERT INTO notes VALUES ('n', 'note'); INSERT INTO memos VALUES ('m', 'memo')")
    try await settle(pair.one, pair.two)
    try await pair.one.open().migrate(exchange)
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.rows("SELECT * FROM notes") == [["n", "NOTE"]])
    let new = try Device()
    let replica = try await new.open()
    try await replica.write { _ = try $0.execute(schema) }
    try await replica.migrate(exchange)
    try await replica.track("memos", "notes")
    try await replica.connect(to: pair.server.url, space: Device.space)
    try await settle(new, pair.one, pair.two)
    for device in [new, pair.one] {
      #expect(try await device.rows("SELECT * FROM memos") == [["n", "NOTE"]])
      #expect(try await device.rows("SELECT * FROM notes") == [["m", "memo"]])
    }
    try await new.write("UPDATE notes SET body = 'edited'")
    try await settle(new, pair.two, pair.one)
    #expect(try await pair.two.value("SELECT body FROM memos") == "edited")
  }

  @Test("a table that renameTable puts in the place of a dropped one is that table")
  func rebuiltByRename() async throws {
    let rebuild: @Sendable (Database) throws -> Void = { database in
      try database.execute(
        """
        CREATE TABLE next(id TEXT PRIMARY KEY, n INTEGER, body TEXT);
        INSERT INTO next SELECT id, n, body FROM notes;
        DROP TABLE notes
        """)
      try database.renameTable("next", to: "notes")
    }
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'one', 1)")
    try await pair.one.open().migrate(Self.migrator("rebuild", rebuild))
    let new = try Device()
    try await new.write(Device.notes)
    try await new.open().migrate(Self.migrator("rebuild", rebuild))
    try await new.open().track("notes")
    try await new.open().connect(to: pair.server.url, space: Device.space)
    try await settle(pair.one, new, pair.two)
    #expect(try await new.rows(notes) == [["a", "one", 1]])
    #expect(try await new.status().tables == ["notes"])
  }

  @Test("names are found in any case, and a key has none in the space")
  func spelling() async throws {
    let pair = try await make()
    try await pair.one.open().write { database in
      #expect(throws: DatabaseError.self) {
        try database.renameColumn("BODY", of: "NOTES", to: "n")
      }
      try database.renameColumn("BODY", of: "NOTES", to: "text")
      try database.renameColumn("ID", of: "notes", to: "key")
      try database.renameTable("NOTES", to: "tmp")
      try database.renameTable("TMP", to: "Notes")
    }
    try await pair.one.write("UPDATE Notes SET text = 'edited' WHERE key = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "edited")
    #expect(try await pair.one.open().verify().tables.map(\.table) == ["notes", "parts"])
  }

  @Test("a step may not rename a tracked table by plain SQL")
  func renamedByPlainSQL() async throws {
    let pair = try await make()
    let step = Self.migrator("plain") { try $0.execute("ALTER TABLE notes RENAME TO memos") }
    let failure = await #expect(throws: MigrationFailure.self) {
      try await pair.one.open().migrate(step)
    }
    #expect(failure?.description.contains("use renameTable") == true)
    try await pair.one.write("UPDATE notes SET body = 'still recorded' WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "still recorded")
  }

  @Test("an alias of a table that is here beside the space's own one names nothing")
  func bothTables() async throws {
    let schema = Device.notes + "; CREATE TABLE memos(id TEXT PRIMARY KEY, body TEXT, n INTEGER)"
    let pair = try await Pair.make(schema: schema, tracking: ["notes", "memos"])
    try await pair.one.write(
      "INSERT INTO notes VALUES ('a', 'note', 1); INSERT INTO memos VALUES ('a', 'memo', 1)")
    try await pair.one.open().applySchema(
      SpaceSchema(tables: ["notes": TableRules(aliases: ["memos"])]))
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.open().batchDelete("memos", where: "n = 1") == 1)
    try await settle(pair.two, pair.one)
    for device in [pair.one, pair.two] {
      #expect(try await device.rows(notes) == [["a", "note", 1]])
      #expect(try await device.count("memos") == 0)
    }
  }

  @Test("the command line renames a table and a column for this device alone")
  func command() async throws {
    let pair = try await make()
    try await pair.one.ferry("rename", "notes", "text", "--column", "body")
    try await pair.one.ferry("rename", "notes", "memos")
    let wrong = try await pair.one.ferry("rename", "notes", "again", exits: 1)
    #expect(wrong.error.contains("no such table"))
    try await pair.one.ferry("sql", "UPDATE memos SET text = 'typed' WHERE id = 'a'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "typed")
  }
}
