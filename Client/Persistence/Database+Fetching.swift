import FerryProtocol
import FerrySQLite

/// Plain SQL with Swift's values as parameters and results.
extension Database {
  /// Returns all rows of one statement as values: each property has the column of its coding key. A
  /// type with a single value, such as `Int` or `Date`, is the only column.
  ///
  /// ```swift
  /// struct Heading: Decodable, Sendable { var id: String, title: String }
  /// let due = try database.fetch(
  ///   Heading.self, sql: "SELECT id, title FROM notes WHERE due < ?", arguments: [Date()])
  /// let titles = try database.fetch(String.self, sql: "SELECT title FROM notes")
  /// ```
  ///
  /// - Parameters:
  ///   - sql: one statement.
  ///   - arguments: the values of each `?`, in order; without any, each `?` is NULL.
  /// - Throws: ``RecordError`` if a column is absent or a value is of another type, with the
  ///   column's name; ``DatabaseError``.
  public func fetch<T: Decodable>(
    _ type: T.Type, sql: String, arguments: [(any ColumnValue)?] = []
  ) throws -> [T] {
    try rows(sql, arguments) { try $0.decode(type) }
  }

  /// Returns all rows of one statement as records.
  public func fetch<R: Record>(
    _ type: R.Type, sql: String, arguments: [(any ColumnValue)?] = []
  ) throws -> [R] {
    try rows(sql, arguments) { try R(row: $0) }
  }

  /// Returns all rows of one statement as `Codable` records.
  public func fetch<R: Record & Decodable>(
    _ type: R.Type, sql: String, arguments: [(any ColumnValue)?] = []
  ) throws -> [R] {
    try rows(sql, arguments) { try R(row: $0) }
  }

  /// Runs one statement with Swift's values for each `?`. Returns the number of changed rows.
  ///
  /// ```swift
  /// try database.execute("UPDATE notes SET due = ? WHERE id = ?", arguments: [Date(), "n1"])
  /// ```
  ///
  /// - Throws: ``DatabaseError`` with SQLite's message.
  @discardableResult
  public func execute(_ sql: String, arguments: [(any ColumnValue)?]) throws -> Int {
    try execute(sql, arguments.map { $0?.columnValue ?? .null })
  }

  /// Returns all rows of one statement with Swift's values for each `?`.
  ///
  /// - Throws: ``DatabaseError`` with SQLite's message.
  public func query(_ sql: String, arguments: [(any ColumnValue)?]) throws -> [Row] {
    try query(sql, arguments.map { $0?.columnValue ?? .null })
  }

  private func rows<T>(
    _ sql: String, _ arguments: [(any ColumnValue)?], _ body: (RecordRow) throws -> T
  ) throws -> [T] {
    var results: [T] = []
    var row: RecordRow?
    try each(sql, arguments.map { $0?.columnValue ?? .null }) { statement in
      let current = row ?? RecordRow(statement, of: "")
      row = current
      results.append(try body(current))
    }
    return results
  }
}
