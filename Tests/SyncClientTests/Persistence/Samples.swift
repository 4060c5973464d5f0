import FerryLaboratory
import FerryPersistence
import FerryProtocol
import FerrySQLite
import Foundation

enum Urgency: String, Codable, ColumnValue, Sendable { case low, high }

struct Place: Codable, Sendable, Equatable {
  var street: String
  var opened: Date
}

/// A record with a property of each kind.
struct Item: Codable, Sendable, Equatable, TableRecord {
  var id: UUID
  var title: String
  var count = 0
  var small: Int8 = 0
  var large: UInt64 = 0
  var price = 0.0
  var weight: Float = 0
  var isDone = false
  var due: Date?
  var image: Data?
  var bytes: [UInt8] = []
  var urgency: Urgency?
  var place: Place?
  var tags: [String] = []
  var link: URL?

  static let table = Table<Item>(
    "items",
    [
      .text("id").primaryKey(), .text("title").notNull(), .integer("count"), .integer("small"),
      .integer("large"), .real("price"), .real("weight"), .integer("isDone"), .text("due"),
      .blob("image"), .blob("bytes"), .text("urgency"), .text("place"), .text("tags"),
      .text("link"),
    ], indexes: [IndexDefinition("isDone", "due")])

  static let full = Item(
    id: UUID(), title: "a \"title\" with é, U+0000 \u{0} and 🚢", count: .min, small: -128,
    large: UInt64(Int64.max), price: 0.1, weight: 1.5, isDone: true,
    due: Date(timeIntervalSince1970: 1_795_442_400.125), image: Data([0, 255]), bytes: [1, 2, 3],
    urgency: .high,
    place: Place(street: "Quay 1", opened: Date(timeIntervalSince1970: -1.5)),
    tags: ["a", "b"], link: URL(string: "https://example.org/a?b=c"))
}

struct Note: Codable, Sendable, Equatable, TableRecord {
  var id: String
  var title: String?
  var done: Bool?
  var list: String?

  static let table = Table<Note>(
    "notes",
    [
      .text("id").primaryKey(), .text("title"), .integer("done").default(false), .text("list"),
    ], indexes: [IndexDefinition("list", "title")])
}

/// A column of any of several tables.
struct Heading: Codable, Sendable, Equatable, Record { var title: String? }

/// A fresh file with a database in it.
struct Fixture {
  let folder: TemporaryDirectory
  let database: LocalDatabase

  init() async throws {
    folder = try TemporaryDirectory(prefix: "ferry-records")
    database = try await LocalDatabase.open(folder.file("local.db").path)
  }

  var path: String { database.path }

  func insert(_ notes: Note...) async throws {
    try await database.write { try Note.table.insert(contentsOf: notes, in: $0) }
  }

  func notes(_ query: Query = Query().order(Field("id").ascending)) async throws -> [Note] {
    try await database.read { try Note.all.applying(query).fetch($0) }
  }

  func ids(_ condition: Condition) async throws -> [String] {
    try await notes(Query().where(condition).order(Field("id").ascending)).map(\.id)
  }
}

/// Runs a call and returns the error.
func failure<E: Error>(_ type: E.Type, _ body: () async throws -> Void) async -> E? {
  do { try await body() } catch { return error as? E }
  return nil
}

/// Runs a script on a connection without any of Ferry's rules.
func raw(_ script: String, at path: String) throws {
  try SQLiteConnection(path: path).execute(script)
}

/// Returns the rows of a statement on a separate connection.
func rows(_ sql: String, at path: String) throws -> [[Value]] {
  try SQLiteConnection(path: path).rows(sql) { row in
    (0..<row.columnCount).map { row.value($0) }
  }
}
