import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The marks of changed rows in a mirror's file, without PostgreSQL.
@Suite("Marks of changed rows", .hangLimit)
struct MarkedRowTests {
  private static func file(_ columns: DeclaredColumn...) throws -> MirrorFile {
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(definition: DeclaredTable(key: "id", columns: columns))
    return MirrorFile(plan: try MirrorPlan(schema))
  }

  @Test("a deleted row is still to be deleted in PostgreSQL after the space gets a column")
  func deletedBeforeColumn() async throws {
    let folder = try TemporaryDirectory()
    let database = try await LocalDatabase.open(folder.file("mirror.db").path)
    let title = DeclaredColumn("title", .text)
    let (file, wider) = (try Self.file(title), try Self.file(title, DeclaredColumn("due", .text)))
    try await database.write { database in
      try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
        $1.setNull()
      }
      try database.execute(
        "CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT, due TEXT)")
      try file.prepare(database)
      try database.execute("INSERT INTO tasks(id) VALUES ('gone'), ('here')")
      try file.endTurn(try file.beginTurn(database), database)
      try database.execute("DELETE FROM tasks WHERE id = 'gone'")
      try wider.prepare(database)
      var rows: [String] = []
      try wider.changes(before: try wider.beginTurn(database), database.connection) { row in
        rows.append("\(row.key[0].keyText ?? "") \(row.values == nil)")
      }
      #expect(rows == ["here false", "gone true"])
    }
    await database.close()
  }

  @Test("a change that comes with a later step keeps the device that made it")
  func author() async throws {
    let folder = try TemporaryDirectory()
    let database = try await LocalDatabase.open(folder.file("mirror.db").path)
    let file = try Self.file(DeclaredColumn("title", .text))
    try await database.write { database in
      try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
        let name = Array("phone".utf8)
        name.withUnsafeBufferPointer($1.set(text:))
      }
      try database.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
      try file.prepare(database)
      try database.execute("INSERT INTO tasks(id) VALUES ('a'), ('b')")
      let table = try #require(file.plan.table("tasks"))
      try file.endTurn(try file.beginTurn(database), database)
      try database.execute("UPDATE tasks SET title = 'x' WHERE id = 'a'")
      let turn = try file.beginTurn(database)
      for key in ["a", "b"] { try file.mark(table, [.text(key)], database) }
      var rows: [String] = []
      func list(_ row: MirrorRow) { rows.append("\(row.key[0].keyText ?? "") \(row.device ?? "")") }
      try file.changes(before: turn, database.connection, list)
      #expect(rows == [])
      try file.changes(before: try file.beginTurn(database), database.connection, list)
      #expect(rows.sorted() == ["a phone", "b "])
      #expect(try file.unbrought(database.connection) == ["tasks": [["a"], ["b"]]])
      #expect(
        try file.unbrought(database.connection, ofDevices: false) == ["tasks": [["b"]]])
    }
    await database.close()
  }

  @Test("a step leaves changes of tables that wait to a later one, and writes none of their marks")
  func waiting() async throws {
    let folder = try TemporaryDirectory()
    let database = try await LocalDatabase.open(folder.file("mirror.db").path)
    let file = try Self.file(DeclaredColumn("n", .integer))
    try await database.write { database in
      try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
        $1.setNull()
      }
      try database.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, n INTEGER)")
      try file.prepare(database)
      try database.execute("INSERT INTO tasks VALUES ('a', 10)")
      #expect(try !file.hasChanges(except: ["tasks"], database))
      let before = try database.query("SELECT total_changes() AS count")
      let turn = try file.beginTurn(database)
      try file.changes(before: turn, except: ["tasks"], database.connection) { _ in
        Issue.record("it travels")
      }
      try file.endTurn(turn, except: ["tasks"], database)
      // Both write the turn alone, however many rows wait.
      let after = try database.query("SELECT total_changes() - 2 AS count")
      #expect(before.map { $0["count"] } == after.map { $0["count"] })
      #expect(try file.hasChanges(except: ["lists"], database))
      var count = 0
      try file.changes(before: try file.beginTurn(database), database.connection) { _ in count += 1
      }
      #expect(count == 1)
    }
    await database.close()
  }

  @Test("an effect that a step has overwritten returns to the table, whatever value it had there")
  func overwritten() async throws {
    let folder = try TemporaryDirectory()
    let database = try await LocalDatabase.open(folder.file("mirror.db").path)
    let file = try Self.file(DeclaredColumn("n", .integer))
    try await database.write { database in
      try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
        $1.setNull()
      }
      try database.execute(
        "CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, n INTEGER); INSERT INTO tasks VALUES ('a', 10)"
      )
      try file.prepare(database)
      try file.endTurn(try file.beginTurn(database), database)
      var write = CapturedWrite(
        id: 1, tries: 0, transaction: "7", table: "tasks", kind: .update, key: ["a"], names: ["n"],
        values: ["9"], former: ["10"])
      for isOverwritten in [false, true] {
        write.isOverwritten = isOverwritten
        let taking = MirrorTaking(file: file, database: database)
        #expect(try taking.apply(CapturedWrites(writes: [write])).isEmpty)
        #expect(try database.query("SELECT n FROM tasks").map { $0["n"] } == [.integer(9)])
        #expect(try file.hasChanges(database) == isOverwritten)
        try database.execute("UPDATE \"mirror.turn\" SET quiet = 1")
        try database.execute("UPDATE tasks SET n = 10; UPDATE \"mirror.turn\" SET quiet = 0")
      }
    }
    await database.close()
  }
}
