import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Upload-only tables: their changes go to the server and are not pulled (SPEC.md §17).
extension ReplicaFile {
  /// Selects operations of tables that receive others' changes.
  static let isTwoWay =
    "tbl NOT IN (SELECT name FROM ferry_tables WHERE direction <> 'two-way')"

  /// Returns the upload-only tables.
  func uploadTables() throws -> [Name] {
    try connection.rows(
      "SELECT name FROM ferry_tables WHERE direction <> 'two-way' ORDER BY name"
    ) { $0.name(0) }
  }

  /// Sets the direction in which a tracked table's changes travel.
  func turn(_ table: Name, _ direction: TrackDirection) throws {
    let before = try connection.first("SELECT direction FROM ferry_tables WHERE name = ?", table) {
      $0.text(0)
    }
    guard let before, TrackDirection(kept: before) != direction else { return }
    switch direction {
    case .twoWay:
      // The next pull begins at the start, and then the table is two-way.
      try save(direction: "returning", of: table)
      try releaseUnsent(of: table)
    case .uploadOnly(let isAutomatic):
      try save(direction: direction.kept, of: table)
      for downloads in ["ferry_kept", "ferry_refresh"] {
        try connection.run("DELETE FROM \(downloads) WHERE tbl = ?", table)
      }
      if isAutomatic { try releaseUnsent(of: table) }
    }
  }

  private func save(direction: String, of table: Name) throws {
    try connection.run("UPDATE ferry_tables SET direction = ? WHERE name = ?", direction, table)
  }

  /// Whether a pull has to fetch the omitted records of a table.
  func hasReturningTables() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_tables WHERE direction = 'returning'")
  }

  /// Makes the current pull start from scratch if an upload-only table is two-way again: only a
  /// list from the start has the omitted records. No other sync may run.
  func beginReturns() throws {
    guard try hasReturningTables() else { return }
    try connection.transaction {
      try connection.execute(
        "UPDATE ferry_tables SET direction = 'two-way' WHERE direction = 'returning'")
      if try syncState().epoch != nil { try goBack(to: 0) }
    }
  }
}
