import FerrySQLite

extension SQLiteConnection {
  /// Opens the SQLite file at `path`, and creates an absent one with these tables.
  ///
  /// - Parameters:
  ///   - settings: a statement for each setting of the connection.
  ///   - tables: statements to create absent tables, in format 1.
  /// - Throws: ``MissionError/Kind/database`` if the file has a later format.
  static func open(
    _ path: String, settings: [String], tables: String
  ) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(path: path)
    for setting in settings { try connection.execute(setting) }
    try connection.transaction {
      let found = try connection.first("PRAGMA user_version") { $0.int64(0) } ?? 0
      guard found <= 1 else {
        throw MissionError(.database, "a later version of Ferry wrote \(path); update Ferry")
      }
      try connection.execute(tables)
      try connection.execute("PRAGMA user_version=1")
    }
    return connection
  }
}
