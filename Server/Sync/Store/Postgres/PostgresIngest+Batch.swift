import FerryProtocol
import Postgres

extension PostgresIngest {
  /// A page of a table's records after one of them, by bytes as well as by number.
  private static let tablePage = PostgresStatement(
    "table_page",
    """
    SELECT record, state FROM (
      SELECT *, sum(octet_length(state)) OVER (ORDER BY record ROWS UNBOUNDED PRECEDING)
        - octet_length(state) AS before
      FROM (
        SELECT record, state FROM records
        WHERE space = $1 AND tbl = $2 AND record > $3 ORDER BY record LIMIT 2000
      ) AS listed
    ) AS summed WHERE before < 4194304 ORDER BY record
    """)

  /// Finds what a plan's batch operations match.
  func match(
    _ matcher: BatchMatcher, _ context: inout IngestContext, on connection: PostgresConnection
  ) throws {
    var matcher = matcher
    for table in matcher.tables {
      var last = ""
      while true {
        let page = try connection.query(Self.tablePage, [.int8(space), .text(table), .text(last)])
        if page.isEmpty { break }
        for row in page {
          last = try row.text(0)
          let key = RecordKey(table: table, record: last)
          try row.bytes(1) { try matcher.take(key, $0) }
        }
      }
    }
    matcher.finish(into: &context)
  }
}
