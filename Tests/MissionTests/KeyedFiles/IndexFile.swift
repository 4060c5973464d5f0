import FerrySQLite

/// The index of a store, as another program sees it.
struct IndexFile {
  private let connection: SQLiteConnection

  init(_ folder: String) throws { connection = try SQLiteConnection(path: folder + "/index.db") }

  func execute(_ sql: String) throws { try connection.execute(sql) }

  func text(_ sql: String) throws -> String { try connection.first(sql) { $0.text(0) } ?? "" }
}
