import FerryProtocol
import SQLite

/// Upload-only tables: their changes go to the server and are not pulled (SPEC.md §17).
extension ReplicaFile {
  /// Selects operations of tables that receive others' changes.
  static let isTwoWay =
    "tbl NOT IN (SELECT name FROM ferry_tables WHERE direction <> 'two-way')"

  /// Returns the upload-only tables.
  func uploadTables() throws -> [Name] {
    try connection.statement(
      "SELECT name FROM ferry_tables WHERE direction <> 'two-way' ORDER BY name"
    ).map { $0.name(0) }
  }

  /// Sets the direction in which a tracked table's changes travel.
  func turn(_ table: Name, _ direction: TrackDirection) throws {
    let find = try connection.statement("SELECT direction FROM ferry_tables WHERE name = ?")
    find.bind(1, table)
    guard let before = try find.first({ $0.text(0) }), TrackDirection(kept: before) != direction
    else { return }
    switch direction {
    case .twoWay:
      // The next pull begins at the start, and then the table is two-way.
      try save(direction: "returning", of: table)
      try releaseUnsent(of: table)
    case .uploadOnly(let isAutomatic):
      try save(direction: direction.kept, of: table)
      for downloads in ["ferry_kept", "ferry_refresh"] {
        let forget = try connection.statement("DELETE FROM \(downloads) WHERE tbl = ?")
        forget.bind(1, table)
        try forget.run()
      }
      if isAutomatic { try releaseUnsent(of: table) }
    }
  }

  private func save(direction: String, of table: Name) throws {
    let save = try connection.statement("UPDATE ferry_tables SET direction = ? WHERE name = ?")
    save.bind(1, direction)
    save.bind(2, table)
    try save.run()
  }

  /// Whether a pull has to fetch the omitted records of a table.
  func hasReturningTables() throws -> Bool {
    try connection.statement("SELECT 1 FROM ferry_tables WHERE direction = 'returning'")
      .first { _ in true } ?? false
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
