import FerryPostgres

/// The values of space columns in the log, by table; pure.
struct LoggedValues: Sendable {
  /// Values that have a mirror or are recorded.
  private var seen: [[String]: Set<ArraySlice<UInt8>>] = [:]
  /// Values to record.
  private(set) var unseen: [[String]: Set<ArraySlice<UInt8>>] = [:]

  /// Known values of a table.
  private static let seenMax = 10_000

  /// Looks for a new value in the column of a written row.
  mutating func look(
    at row: LoggedRow, of table: [String], in column: String?, _ relation: PgoutputRelation
  ) {
    guard let new = row.new, let column,
      let place = relation.columns.firstIndex(where: { $0.name == column }),
      case .text(let value) = new[place], seen[table]?.contains(value) != true
    else { return }
    unseen[table, default: []].insert(value)
  }

  /// Records the new values of all tables as known.
  mutating func recordAll() {
    for (table, values) in unseen {
      if seen[table]?.count ?? 0 > Self.seenMax { seen[table] = nil }
      seen[table, default: []].formUnion(values.map { ArraySlice(Array($0)) })
    }
    unseen = [:]
  }

  /// Forgets the known values: they may have lost their mirrors.
  mutating func forget() { seen = [:] }
}
