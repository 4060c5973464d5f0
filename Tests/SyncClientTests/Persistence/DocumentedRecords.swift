import FerryPersistence
import Foundation

/// The example of records in Documentation/library.md, line by line. Only the file is a test's;
/// `DocumentedRecordsTests` compares the lines.
func documentedRecords(file: String) async throws {
  struct Note: Codable, Sendable, TableRecord {
    var id: String
    var title: String
    var done = false
    var due: Date?
    static let table = Table<Note>(
      "notes",
      [.text("id").primaryKey(), .text("title").notNull(), .integer("done"), .text("due")],
      indexes: [IndexDefinition("done", "due")])
  }

  let database = try await LocalDatabase.open(file)
  try await database.write { database in
    try Note(id: "n1", title: "Buy milk", due: Date()).insert(in: database)
    try Note(id: "n2", title: "Buy bread").upsert(in: database)
    try Note.all.where(Field("title").like("%bread")).update(["done": true], in: database)
  }
  let open = Note.all.where(Field("done") == false).order(Field("due").ascending).limit(20)
  let notes = try await database.read { try open.fetch($0) }
  let first = try await database.read { try Note.find("n1", in: $0) }
  print(notes.map(\.title), first?.title ?? "none")
  await database.close()
}
