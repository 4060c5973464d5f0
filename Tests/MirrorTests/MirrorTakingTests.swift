import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// Captured writes that a mirror makes in its file, without PostgreSQL.
@Suite("Taking of captured writes", .hangLimit)
struct MirrorTakingTests {
  private static func write(_ id: Int64, _ title: String) -> CapturedWrite {
    CapturedWrite(
      id: id, tries: 0, transaction: "7", table: "tasks", kind: .insert, key: ["t\(id)"],
      names: ["title"], values: [title])
  }

  private static func file() throws -> MirrorFile {
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)]))
    return MirrorFile(plan: try MirrorPlan(schema))
  }

  @Test("a full disk ends the transaction, and no write counts as rejected or taken")
  func fullDisk() async throws {
    let folder = try TemporaryDirectory()
    let database = try await LocalDatabase.open(folder.file("mirror.db").path)
    let file = try Self.file()
    try await database.write { database in
      try database.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
      try file.prepare(database)
    }
    let captured = CapturedWrites(
      writes: [
        Self.write(1, "small"), Self.write(2, String(repeating: "x", count: 1 << 20)),
        Self.write(3, "small too"),
      ])
    let error = await #expect(throws: DatabaseError.self) {
      try await database.write { database in
        try database.connection.execute("PRAGMA max_page_count = 30")
        _ = try file.take(captured, database)
      }
    }
    #expect(error?.code == 13)
    try await database.write { database in
      #expect(try file.read(database).marks.isEmpty)
      #expect(try database.query("SELECT id FROM tasks").isEmpty)
      try database.connection.execute("PRAGMA max_page_count = 100000")
      #expect(try file.take(captured, database).isEmpty)
      #expect(try database.query("SELECT id FROM tasks").count == 3)
    }
    await database.close()
  }
}
