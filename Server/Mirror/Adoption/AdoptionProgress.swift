import FerryPostgres

/// The progress of a table's adoption.
package struct AdoptionProgress: Sendable, Equatable {
  package var table: String
  /// Rows in slices.
  package var rows: Int64
  /// Rows of the table, as estimated at the beginning.
  package var total: Int64
  package var isDone: Bool
}

extension MirrorLedger {
  /// Returns the progress of each adopted table, in the order of their names.
  func adopted(_ connection: PostgresConnection) throws -> [AdoptionProgress] {
    try connection.query(
      .once(
        "SELECT tab, rows, total, done FROM ferry_mirror.adopted WHERE mirror = $1 ORDER BY tab"),
      [.int8(number)]
    ).map { row in
      AdoptionProgress(
        table: try row.text(0), rows: try row.int8(1), total: try row.int8(2),
        isDone: try row.bool(3))
    }
  }

  /// Returns `true` if rows of adopted tables may not be in the space yet.
  func isAdopting(_ connection: PostgresConnection) throws -> Bool {
    try adopted(connection).contains { !$0.isDone }
  }
}

extension [AdoptionProgress] {
  /// The unfinished tables, for people.
  var shown: String {
    let left = filter { !$0.isDone }.map { "\($0.table): \($0.rows) of about \($0.total) rows" }
    return left.isEmpty ? "all rows are uploaded" : left.joined(separator: ", ")
  }
}
