import FerryProtocol
import FerrySQLite

/// A search for rows of copies that refer to parents in no copy: some rows at once, so that other calls run
/// between.
///
/// SQLite's own check reads a whole table at once. It is used for tables WITHOUT ROWID alone.
struct CopyCheck {
  /// A foreign key of a copy.
  private struct Part {
    let copy: Name
    /// The name of the row's number; `nil` without one.
    let number: String?
    let link: ForeignKey
  }

  private let connection: SQLiteConnection
  private var parts: [Part]
  /// The first row number of the next search.
  private var start = Int64.min

  /// - Parameter copies: the copies with their foreign keys.
  /// - Throws: ``SQLiteError`` if a foreign key names no key of its parent.
  init(_ copies: [(copy: Name, links: [ForeignKey])], on connection: SQLiteConnection) throws {
    self.connection = connection
    parts = try copies.flatMap { copy, links in
      let number = try Self.rowNumber(of: copy, on: connection)
      return links.map { Part(copy: copy, number: number, link: $0) }
    }
  }

  /// Returns the name of the row number in a table; `nil` if it has none, or its columns hide it.
  private static func rowNumber(of table: Name, on connection: SQLiteConnection) throws -> String? {
    let isRowless = try connection.exists(
      "SELECT 1 FROM pragma_table_list(?) WHERE schema = 'main' AND wr <> 0", table)
    if isRowless { return nil }
    let columns = try connection.rows("SELECT name FROM pragma_table_xinfo(?)", table) {
      $0.name(0).folded
    }
    return ["rowid", "_rowid_", "oid"].first { !columns.contains(Name($0)) }
  }

  /// Searches the next rows. Returns whether there are more.
  ///
  /// - Parameter count: the most rows of one search.
  /// - Throws: ``CannotFill`` if a row has no parent.
  mutating func next(_ count: Int) throws -> Bool {
    guard let part = parts.last else { return false }
    guard let number = part.number else {
      if try connection.prepare("PRAGMA main.foreign_key_check(\(quoted(part.copy)))").exists() {
        throw CannotFill()
      }
      parts.removeAll { $0.copy == part.copy }
      return !parts.isEmpty
    }
    let copy = quoted(part.copy)
    let end =
      try connection.first(
        """
        SELECT max(n) FROM (
          SELECT \(number) AS n FROM \(copy) WHERE \(number) >= ? ORDER BY \(number) LIMIT ?)
        """, start, Int64(count)
      ) { $0.optionalInt64(0) } ?? nil
    if let end, try connection.exists(search(part, number), start, end) { throw CannotFill() }
    if let end, end < .max {
      start = end + 1
    } else {
      parts.removeLast()
      start = .min
    }
    return !parts.isEmpty
  }

  /// Finds rows between two numbers without a parent. The parent's column determines how values compare, as
  /// in a foreign key: a plus sign hides the child's.
  private func search(_ part: Part, _ number: String) -> String {
    let from = part.link.from.map { "c.\(quoted($0))" }
    let match = zip(part.link.to, from).map { "p.\(quoted($0)) = +\($1)" }
    return """
      SELECT 1 FROM \(quoted(part.copy)) AS c WHERE c.\(number) BETWEEN ? AND ?
        AND \(from.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
        AND NOT EXISTS (SELECT 1 FROM \(quoted(part.link.parent)) AS p
          WHERE \(match.joined(separator: " AND "))) LIMIT 1
      """
  }
}
