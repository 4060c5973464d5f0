import FerryProtocol
import FerrySQLite

/// Values of rows that the server's versions replace: conflicts keep them for the user.
struct LostValues {
  private let file: ReplicaFile

  init(_ file: ReplicaFile) { self.file = file }

  /// Makes the next pull fetch the differing records and set their rows to the server's. Own
  /// pending operations keep their effect. Values found only in the rows are kept as conflicts.
  func repair(_ differences: [RecordDifference]) throws {
    try file.connection.transaction {
      try file.refreshes.add(differences.map(\.key))
      for difference in differences {
        try store(difference.kind.lost, of: difference.key, difference.kind.losesRow)
        try file.log(
          "verify",
          "\(difference.key.table)/\(difference.key.record) has the server's values now; here it "
            + Self.text(difference.kind))
      }
    }
  }

  /// The most bytes of a row's values in the log.
  private static let notedMax = 10_000

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

  /// Stores values of a row replaced by the server's version, as conflicts: the user can read them
  /// and choose them again.
  ///
  /// - Parameter isRowLost: true if the row itself is deleted.
  func store(
    _ columns: [Column], of key: RecordKey, there: RecordState? = nil, _ isRowLost: Bool
  ) throws {
    if columns.isEmpty && !isRowLost { return }
    let time = HybridTimestamp(milliseconds: file.wallClock())
    let operation = OperationID(UniqueID(timestamp: time, random: file.random()))
    let loser = Stamp(time: time, device: try file.identity().device)
    let unknown = Stamp(time: time, device: .server)
    for column in columns {
      let winner = there?.columns.first { $0.name == column.name }?.stamp
      let conflict = Conflict(
        column: column.name, lost: column.value, loser: loser, winner: winner ?? unknown)
      try file.conflictLog.store(conflict, of: operation, on: key)
    }
    guard isRowLost else { return }
    let conflict = Conflict(
      column: nil, lost: .null, loser: loser, winner: there?.deleted?.stamp ?? unknown)
    try file.conflictLog.store(conflict, of: operation, on: key)
  }
}
