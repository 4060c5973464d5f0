import FerryProtocol
import SQLite

/// Tables whose changes go to the server and do not come back (seed row S2.1).
extension ReplicaFile {
  /// Selects operations of tables to which others' changes are applied.
  static let isTwoWay =
    "tbl NOT IN (SELECT name FROM ferry_tables WHERE direction <> 'two-way')"

  /// Tables for which nothing is pulled back.
  func uploadTables() throws -> [Name] {
    try connection.statement(
      "SELECT name FROM ferry_tables WHERE direction <> 'two-way' ORDER BY name"
    ).map { $0.name(0) }
  }

  /// Sets which way a tracked table's changes go.
  func turn(_ table: Name, _ direction: TrackDirection) throws {
    let find = try connection.statement("SELECT direction FROM ferry_tables WHERE name = ?")
    find.bind(1, table)
    guard let before = try find.first({ $0.text(0) }), TrackDirection(kept: before) != direction
    else { return }
    switch direction {
    case .twoWay:
      // The next pull begins at the start, and then it is two-way.
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

  /// Whether a pull has to bring what was left out of a table.
  func hasReturningTables() throws -> Bool {
    try connection.statement("SELECT 1 FROM ferry_tables WHERE direction = 'returning'")
      .first { _ in true } ?? false
  }

  /// Has the pull that begins now start anew where a table that was upload-only is two-way again:
  /// what was passed over is in the list from the start only. No other sync may be under way.
  func beginReturns() throws {
    guard try hasReturningTables() else { return }
    try connection.transaction {
      try connection.execute(
        "UPDATE ferry_tables SET direction = 'two-way' WHERE direction = 'returning'")
      if try syncState().epoch != nil { try goBack(to: 0) }
    }
  }
}
