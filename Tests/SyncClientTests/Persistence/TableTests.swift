import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Tables", .hangLimit)
struct TableTests {
  @Test(
    "the first write creates the table with its keys, rules and indexes; until then it is empty")
  func creation() async throws {
    let fixture = try await Fixture()
    let tasks = Table<RecordColumns>(
      "tasks",
      [
        .text("list").primaryKey(), .integer("number").primaryKey(),
        .text("title").notNull().unique(), .text("note").references("notes", "id"),
        .text("state").default("it's new"),
      ], indexes: [IndexDefinition("note"), IndexDefinition("list", "title", unique: true)])
    try await fixture.insert(Note(id: "n1"))
    #expect(try await fixture.database.read { try tasks.all.fetch($0) }.isEmpty)
    #expect(try await fixture.database.read { try tasks.count(in: $0) } == 0)
    try await fixture.database.write { database throws in
      try tasks.insert(["list": "a", "number": 1, "title": "x", "note": "n1"], in: database)
      let found = try tasks.find("a", 1, in: database)
      #expect(found?["state"] == "it's new")
      let indexes = try database.query(
        "SELECT name FROM pragma_index_list('tasks') WHERE origin = 'c' ORDER BY name")
      #expect(indexes.map(\.values) == [["index of tasks(list,title)"], ["index of tasks(note)"]])
    }
    for columns in [
      ["list": "a", "number": 1, "title": "y"], ["list": "a", "number": 2],
      ["list": "b", "number": 1, "title": "x"],
      ["list": "b", "number": 1, "title": "z", "note": "n9"], ["number": 1, "title": "z"],
    ] as [RecordColumns] {
      let error = await failure(DatabaseError.self) {
        try await fixture.database.write { _ = try tasks.insert(columns, in: $0) }
      }
      #expect(error?.isConstraint == true, "\(columns): \(String(describing: error))")
    }
  }

  @Test("records are found, counted, updated, upserted and deleted by their key")
  func life() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a", title: "one", done: false), Note(id: "b"))
    try await fixture.database.write { database throws in
      #expect(try Note(id: "a", title: "two", done: nil).update(in: database))
      #expect(try !Note(id: "z").update(in: database))
      #expect(try Note(id: "c", title: "three").upsert(in: database))
      #expect(try !Note(id: "c", title: "four").upsert(in: database))
      #expect(try Note(id: "b").delete(in: database))
      #expect(try !Note.table.delete(key: "b", in: database))
      #expect(try Note.table.exists("a", in: database))
      #expect(try !Note.table.exists("b", in: database))
      #expect(try Note.table.count(in: database) == 2)
      #expect(try Note.find("nothing", in: database) == nil)
    }
    #expect(
      try await fixture.notes() == [Note(id: "a", title: "two"), Note(id: "c", title: "four")])
  }

  @Test("an update keeps the columns that the record does not have")
  func partialUpdate() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a", title: "one", done: true, list: "l"))
    try await fixture.database.write { database throws in
      try Note.table.update(["id": "a", "title": nil as String?], in: database)
    }
    #expect(try await fixture.notes() == [Note(id: "a", title: nil, done: true, list: "l")])
  }

  @Test("an integer key is assigned, and the latest row is the one that came last")
  func latest() async throws {
    struct Event: Codable, Sendable, Equatable, TableRecord {
      var id: Int?
      var name: String
      static let table = Table<Event>("events", [.integer("id").primaryKey(), .text("name")])
    }
    let fixture = try await Fixture()
    try await fixture.database.write { database throws in
      #expect(try Event.table.latest(in: database) == nil)
      #expect(try Event(name: "b").insert(in: database) == 1)
      #expect(try Event(name: "c").insert(in: database) == 2)
      #expect(try Event(name: "a").upsert(in: database))
      #expect(try Event.table.latest(in: database) == Event(id: 3, name: "a"))
      #expect(try Event.table.latest(by: "name", in: database) == Event(id: 2, name: "c"))
    }
  }

  @Test("a record type shows rows of several tables, and a column in another case is the same")
  func recordTypes() async throws {
    let fixture = try await Fixture()
    try await fixture.insert(Note(id: "a", title: "note"))
    let headings = try await fixture.database.write { database throws in
      try Item.full.insert(in: database)
      try database.execute("CREATE VIEW loud AS SELECT upper(title) AS TITLE FROM notes")
      return try Note.all.records(as: Heading.self).fetch(database)
        + Item.all.records(as: Heading.self).fetch(database)
        + Table<Heading>("loud").all.fetch(database)
    }
    #expect(headings.map(\.title) == ["note", Item.full.title, "NOTE"])
  }

  @Test("columns that SQLite computes are read, and left out of writes")
  func generatedColumns() async throws {
    struct Box: Codable, Sendable, Equatable, Record {
      var id: String
      var width: Int
      var area: Int?
    }
    let fixture = try await Fixture()
    let boxes = Table<Box>("boxes")
    let found = try await fixture.database.write { database throws in
      try database.execute(
        "CREATE TABLE boxes(id TEXT PRIMARY KEY, width INT, area INT AS (width * width))")
      try boxes.insert(Box(id: "a", width: 3, area: 7), in: database)
      return try boxes.find("a", in: database)
    }
    #expect(found == Box(id: "a", width: 3, area: 9))
  }

  @Test("a table that the schema changes within a transaction is read again")
  func changedSchema() async throws {
    let fixture = try await Fixture()
    try await fixture.database.write { database throws in
      try Note(id: "a").insert(in: database)
      try database.execute("ALTER TABLE notes ADD COLUMN colour TEXT DEFAULT 'red'")
      let wide = Note.table.records(as: RecordColumns.self)
      #expect(try wide.find("a", in: database)?["colour"] == "red")
      try wide.insert(["id": "b", "colour": "blue"], in: database)
      #expect(try wide.find("b", in: database)?["colour"] == "blue")
    }
  }

  @Test("a table whose creation a savepoint took back is created again")
  func savepoint() async throws {
    let fixture = try await Fixture()
    try await fixture.database.write { database in
      try database.execute("SAVEPOINT try_it")
      try Note(id: "a").insert(in: database)
      try database.execute("ROLLBACK TO try_it")
      try Note(id: "b").insert(in: database)
    }
    #expect(try await fixture.notes().map(\.id) == ["b"])
  }

  @Test("calls that do not fit the table name it")
  func misfits() async throws {
    let fixture = try await Fixture()
    let log = Table<RecordColumns>("log", [.text("line")])
    try await fixture.database.write { database throws in
      try Note(id: "a").insert(in: database)
      try log.insert(["line": "x"], in: database)
    }
    let calls: [(String, @Sendable (Database) throws -> Void)] = [
      ("table log has no primary key", { _ = try log.find(1, in: $0) }),
      ("the key has 1 columns (id), not 2", { _ = try Note.table.find("a", 2, in: $0) }),
      (
        "the record has no value for the key id",
        { try Note.table.update(["title": "x"], in: $0) }
      ),
      (
        "the record has no value for a column of table notes, which has id, title, done, list",
        { try Note.table.insert(["colour": 1], in: $0) }
      ),
      (
        "table notes has no column titel; it has id, title, done, list",
        { try Note.all.update(["titel": "x"], in: $0) }
      ),
      ("an update does not change the key id", { try Note.all.update(["id": "x"], in: $0) }),
    ]
    for (message, call) in calls {
      let error = await failure(RecordError.self) { try await fixture.database.write(call) }
      #expect(error?.message.contains(message) == true, "\(String(describing: error))")
    }
    let missing = await failure(DatabaseError.self) {
      _ = try await fixture.database.read { try Table<Note>("missing").all.fetch($0) }
    }
    #expect(missing?.message.contains("there is no table missing") == true)
  }

  @Test("the record layer does not write to tables of Ferry")
  func reservedTables() async throws {
    let fixture = try await Fixture()
    let error = await failure(DatabaseError.self) {
      try await fixture.database.write { database throws in
        try Table<RecordColumns>("ferry_state", [.text("key").primaryKey()]).create(in: database)
      }
    }
    #expect(error?.message.contains("reserved for Ferry") == true, "\(String(describing: error))")
  }
}
