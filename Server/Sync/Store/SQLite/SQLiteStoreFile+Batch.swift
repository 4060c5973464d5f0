import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  /// Finds what a plan's batch operations match.
  func match(
    _ matcher: BatchMatcher, in space: Int64, _ context: inout IngestContext
  ) throws {
    var matcher = matcher
    let rows = try connection.statement(
      "SELECT record, state FROM records WHERE space = ? AND tbl = ?")
    for table in matcher.tables {
      rows.bind(1, space)
      rows.bind(2, table)
      try rows.forEach { row in
        try matcher.take(RecordKey(table: table, record: row.text(0)), row.textBytes(1))
      }
    }
    matcher.finish(into: &context)
  }
}
