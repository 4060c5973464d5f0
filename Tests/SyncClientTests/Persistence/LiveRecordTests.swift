import FerryLaboratory
import FerryTestSupport
import Testing

@testable import FerryPersistence

/// Live queries over records, in a file that does not sync.
@Suite("Live queries over records", .hangLimit)
struct LiveRecordTests {
  private struct Label: Codable, Sendable, Equatable, TableRecord {
    var id: String
    var name: String
    static let table = Table<Label>("labels", [.text("id").primaryKey(), .text("name")])
  }

  @Test("a live query sees a table that is created later, and each write of a record")
  func records() async throws {
    let directory = try TemporaryDirectory()
    let database = try await LocalDatabase.open(directory.file("some.db").path)
    var results = database.observe { try Label.all.fetch($0).map(\.name) }.makeAsyncIterator()
    var counts = database.observe { try Label.all.count($0) }.makeAsyncIterator()
    #expect(try await results.next() == [])
    #expect(try await counts.next() == 0)
    for number in 1...3 {
      try await database.write { try Label(id: "a", name: "n\(number)").upsert(in: $0) }
      #expect(try await results.next() == ["n\(number)"])
    }
    #expect(try await counts.next() == 1)
    try await database.write { _ = try Label.all.delete(in: $0) }
    #expect(try await results.next() == [])
    #expect(try await counts.next() == 0)
    await database.close()
  }

  @Test("a cascade to a table without row identifiers is seen")
  func cascade() async throws {
    let directory = try TemporaryDirectory()
    let database = try await LocalDatabase.open(directory.file("some.db").path)
    try await database.write { database in
      try database.execute(
        """
        CREATE TABLE p(id TEXT PRIMARY KEY);
        CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE CASCADE) WITHOUT ROWID;
        INSERT INTO p VALUES ('a'); INSERT INTO k VALUES ('x', 'a')
        """)
    }
    var counts = database.observe { try $0.query("SELECT id FROM k").count }.makeAsyncIterator()
    #expect(try await counts.next() == 1)
    try await database.write { _ = try $0.execute("DELETE FROM p") }
    #expect(try await counts.next() == 0)
  }
}
