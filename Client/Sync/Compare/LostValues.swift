import FerryProtocol
import FerrySQLite

extension ReplicaFile {
  /// Makes the next pull fetch the differing records and set their rows to the server's. Own
  /// pending operations keep their effect. Values found only in the rows are kept as conflicts.
  func repair(_ differences: [RecordDifference]) throws {
    try connection.transaction {
      try refreshes.add(differences.map(\.key))
      for difference in differences {
        let (lost, isRowLost) = Self.lost(difference.kind)
        try storeLost(lost, of: difference.key, isRowLost)
        try log(
          "verify",
          "\(difference.key.table)/\(difference.key.record) has the server's values now; here it "
            + Self.text(difference.kind))
      }
    }
  }

  /// The most bytes of a row's values in the log.
  private static let notedMax = 10_000

  /// Returns values that perhaps no other device has, and whether the row itself is deleted.
  private static func lost(_ kind: RecordDifference.Kind) -> ([Column], Bool) {
    switch kind {
    case .missingHere: ([], false)
    case .missingThere(let row): (row.filter { $0.value != .null }, true)
    case .different(let columns):
      (columns.filter { $0.here != .null }.map { Column($0.column, $0.here) }, false)
    }
  }

  private static func text(_ kind: RecordDifference.Kind) -> String {
    let columns: [Column]
    switch kind {
    case .missingHere: return "was missing"
    case .missingThere(let row): columns = row
    case .different(let differing): columns = differing.map { Column($0.column, $0.here) }
    }
    return held(columns)
  }

  /// Returns the values of a row, for the log.
  static func held(_ columns: [Column]) -> String {
    var json = JSONWriter()
    json.columns(columns)
    return "held " + String(decoding: json.finish().prefix(notedMax), as: UTF8.self)
  }
}
