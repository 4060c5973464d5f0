import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The columns of a table, as far as they decide whether a changed row fulfils a condition.
package struct TableShape: Sendable, Equatable {
  /// The conversion of values for comparisons with a column
  /// (https://sqlite.org/datatype3.html#determination_of_column_affinity).
  enum Affinity: Sendable, Equatable {
    case text
    case none
    case real
    /// To integers if they fit, else to reals.
    case number

    init(of type: String) {
      let type = type.uppercasedASCII
      self =
        if type.has("INT") {
          .number
        } else if ["CHAR", "CLOB", "TEXT"].contains(where: { type.has($0) }) {
          .text
        } else if type.isEmpty || type.has("BLOB") {
          .none
        } else if ["REAL", "FLOA", "DOUB"].contains(where: { type.has($0) }) { .real } else {
          .number
        }
    }
  }

  struct Column: Sendable, Equatable {
    let name: Name
    let affinity: Affinity
    /// True if texts compare as the bytes of their UTF-8.
    let isBinary: Bool
    /// True if rows from before the column have a value in it. Some versions of SQLite report NULL
    /// for them.
    let hasDefault: Bool
  }

  let columns: [Column]
  private let places: [Name: Int]

  init(_ columns: [Column]) {
    self.columns = columns
    places = Dictionary(
      columns.enumerated().map { ($0.element.name.folded, $0.offset) }, uniquingKeysWith: min)
  }

  /// Returns the shape of a table of the main database; `nil` for one with computed columns: SQLite
  /// does not report their values.
  static func read(_ table: String, from connection: SQLiteConnection) throws -> TableShape? {
    let rows = try connection.rows(
      "SELECT name, type, dflt_value IS NOT NULL, hidden FROM pragma_table_xinfo(?, 'main')", table
    ) { ($0.text(0), $0.text(1), $0.int64(2) != 0, $0.int64(3)) }
    guard !rows.isEmpty, rows.allSatisfy({ $0.3 == 0 }) else { return nil }
    let isUTF8 = try connection.first("PRAGMA encoding") { $0.text(0) } == "UTF-8"
    return TableShape(
      try rows.map { name, type, hasDefault, _ in
        Column(
          name: Name(name), affinity: Affinity(of: try connection.type(type, in: table)),
          isBinary: isUTF8
            && connection.collation(of: name, in: table)?.uppercasedASCII == "BINARY",
          hasDefault: hasDefault)
      })
  }

  func place(of name: Name) -> Int? { places[name.folded] }
}
