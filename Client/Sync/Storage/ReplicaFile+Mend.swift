import FerryProtocol
import SQLite

extension ReplicaFile {
  /// Has the next pull fetch the records that differ, which sets their rows to what the server has
  /// and leaves own pending work on them what the user sees. What the rows held is noted in the
  /// log.
  func mend(_ differences: [RecordDifference]) throws {
    try connection.transaction {
      try refresh(differences.map(\.key))
      for difference in differences {
        try note(
          "verify",
          "\(difference.key.table)/\(difference.key.record) is set to what the server has; here it "
            + Self.text(difference.kind))
      }
    }
  }

  /// Bytes of a row's values that the log keeps.
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

  /// What a row held, for the log.
  static func held(_ columns: [Column]) -> String {
    var json = JSONWriter()
    json.columns(columns)
    return "held " + String(decoding: json.finish().prefix(notedMax), as: UTF8.self)
  }
}
