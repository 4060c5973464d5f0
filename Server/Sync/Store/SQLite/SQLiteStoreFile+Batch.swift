import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile {
  /// Hands over the matches of a plan's batch operations, found outside of this transaction, and
  /// looks again at records that changed since. Throws ``BatchesToMatch`` if some are missing.
  func match(
    _ wanted: BatchMatcher, _ matches: BatchMatches, in space: Int64,
    _ context: inout IngestContext
  ) throws {
    var matcher = wanted
    let newest = try matches.origin?.newest.flatMap { try known($0, in: space) }
    let place = newest.map { HistoryPlace(sequence: $0.sequence, historyHash: $0.historyHash) }
    let kept = matches.kept(in: context.space, place: place)
    guard let origin = kept.origin, matcher.adopt(kept) else {
      throw BatchesToMatch(matcher: wanted, origin: HistoryOrigin(context.space), kept: kept)
    }
    if origin.head < context.space.head {
      try connection.forEach(
        "SELECT tbl, record, state FROM records WHERE space = ? AND sequence > ?", space,
        origin.head
      ) { row in
        try matcher.revise(RecordKey(table: row.name(0), record: row.name(1)), row.textBytes(2))
      }
    }
    for key in matcher.finish(into: &context) {
      try loadRecord(key, in: space, into: &context)
    }
    context.dropAbsentMatches()
  }

  /// Shows a matcher one slice of the records that it asks for.
  func show(_ matcher: inout BatchMatcher, in space: Int64) throws {
    switch matcher.step {
    case .done: return
    case .keys(let keys):
      let find = try connection.statement(
        "SELECT state FROM records WHERE space = ? AND tbl = ? AND record = ?")
      for key in keys {
        try find.forEach(space, key.table, key.record) { row in
          try matcher.take(key, row.textBytes(0))
        }
      }
      matcher.advance()
    case .page(let table, let after):
      let rows = try connection.statement(
        """
        SELECT record, state FROM records WHERE space = ? AND tbl = ? AND record > ?
        ORDER BY record
        """)
      defer { rows.reset() }
      rows.bind(space, table, after)
      var last: Name?
      while !matcher.isSliceFull {
        guard try rows.step() else { return matcher.advance() }
        let record = rows.name(0)
        try matcher.take(RecordKey(table: table, record: record), rows.textBytes(1))
        last = record
      }
      matcher.advance(to: last)
    }
  }
}
