import FerryProtocol
import FerrySQLite

/// A table of a replica's file with rows of several spaces, as one space's ledger knows it.
struct SharedTable {
  /// The name in the space.
  let name: Name
  private let local: Name
  private let key: Name
  private let column: Name
  private let space: String
  private let isMapped: Bool

  /// Reads the existing ones.
  static func all(_ connection: SQLiteConnection) throws -> [SharedTable] {
    try connection.rows(
      """
      SELECT name, local, space_column, space, identity = 'mapped',
        (SELECT i.name FROM pragma_table_info(local) AS i WHERE pk = 1)
      FROM ferry_tables, ferry_replica
      WHERE space_column IS NOT NULL AND space IS NOT NULL
        AND local IN (SELECT name FROM sqlite_schema WHERE type = 'table') ORDER BY name
      """
    ) {
      SharedTable(
        name: $0.name(0), local: $0.name(1), key: $0.name(5), column: $0.name(2), space: $0.text(3),
        isMapped: $0.int64(4) != 0)
    }
  }

  /// Returns the condition of rows in the space, or of all others.
  func condition(ofOthers isOther: Bool) -> String {
    "\(quoted(column)) IS \(isOther ? "NOT " : "")\(quoted(literal: space))"
  }

  /// Returns a query of records by such a condition.
  func selection(ofOthers isOther: Bool) -> String {
    let key = isMapped ? Self.record(of: quoted(key), in: quoted(literal: name.text)) : quoted(key)
    return "SELECT \(key) AS record FROM \(quoted(local)) "
      + "WHERE \(condition(ofOthers: isOther)) AND record IS NOT NULL"
  }

  /// Returns the record of a row's number. The first ledger keeps them for all spaces; in quotation
  /// marks, names are those of the first ledger.
  static func record(of number: String, in table: String) -> String {
    "(SELECT record FROM \(quoted("ferry_keys")) WHERE tbl = \(table) AND number = \(number))"
  }
}
