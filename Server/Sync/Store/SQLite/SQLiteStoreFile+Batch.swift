import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile {
  /// Hands over the matches of a plan's batch operations.
  func match(
    _ wanted: BatchMatcher, _ matches: BatchMatches, of incoming: Int, in space: Int64,
    _ context: inout IngestContext
  ) throws {
    try wanted.handOver(matches, to: &context) { operation in
      try known(operation, in: space)?.place
    } changed: { head, revise in
      try connection.forEach(
        "SELECT tbl, record, state FROM records WHERE space = ? AND sequence > ?", space, head
      ) { row in
        try revise(RecordKey(table: row.name(0), record: row.recordName(1).name), row.blobBytes(2))
      }
    } load: { keys, context in
      var room = context.roomForStates(of: [])
      for key in keys { try loadRecord(key, in: space, room: &room, into: &context) }
      try context.boundStates(of: incoming)
    }
  }

  /// Shows a matcher one slice of the requested records.
  func show(_ matcher: inout BatchMatcher, in space: Int64) throws {
    switch matcher.step {
    case .done: return
    case .keys(let keys):
      let find = try connection.statement(
        "SELECT state FROM records WHERE space = ? AND tbl = ? AND record = ?")
      for key in keys {
        try find.forEach(space, key.table, StoredRecordName(key.record)) { row in
          try matcher.match(key, row.blobBytes(0))
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
      rows.bind(space, table, StoredRecordName(after))
      var last: Name?
      while !matcher.isSliceFull {
        guard try rows.step() else { return matcher.advance() }
        let record = rows.recordName(0).name
        try matcher.match(RecordKey(table: table, record: record), rows.blobBytes(1))
        last = record
      }
      matcher.advance(to: last)
    }
  }
}
