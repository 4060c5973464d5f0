import FerryPostgres
import FerryProtocol

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

  /// The next records changed after a place, by bytes as well as by number.
  private static let changed = PostgresStatement(
    "changed_records",
    """
    SELECT tbl, record, state, sequence FROM (
      SELECT *, sum(octet_length(state)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
        - octet_length(state) AS before
      FROM (
        SELECT tbl, record, state, sequence FROM records
        WHERE space = $1 AND sequence > $2 ORDER BY sequence LIMIT 2000
      ) AS listed
    ) AS summed WHERE before < 4194304 ORDER BY sequence
    """)

  /// Hands over the matches of a plan's batch operations.
  func match(
    _ wanted: BatchMatcher, _ matches: BatchMatches, _ incoming: Int,
    _ context: inout IngestContext, on connection: PostgresConnection
  ) throws {
    try wanted.handOver(matches, to: &context) { operation in
      try place(of: operation, on: connection)
    } changed: { head, revise in
      var last: SequenceNumber? = head
      while let head = last {
        last = nil
        for row in try connection.query(Self.changed, [.int8(space), .int8(head)]) {
          let key = RecordKey(table: try row.name(0), record: try row.recordName(1).name)
          try row.bytes(2) { try revise(key, $0) }
          last = try row.int8(3)
        }
      }
    } load: { keys, context in
      try load(keys, for: incoming, into: &context, on: connection)
    }
  }

  private static let place = PostgresStatement(
    "history_place", "SELECT sequence, history_hash FROM operations WHERE space = $1 AND id = $2")

  private func place(
    of operation: OperationID, on connection: PostgresConnection
  ) throws -> HistoryPlace? {
    var parameters: PostgresParameters = [.int8(space)]
    parameters.append(uuidBytes: operation.value.bytes)
    return try connection.query(Self.place, parameters).first.flatMap {
      try HistoryPlace($0, 0, historyHash: 1)
    }
  }

  /// Shows a matcher one slice of the requested records.
  static func show(
    _ matcher: inout BatchMatcher, in space: Int64, on connection: PostgresConnection
  ) throws {
    switch matcher.step {
    case .done: return
    case .keys(let keys):
      try PostgresSlices.forEachState(of: keys, in: space, on: connection) { key, bytes in
        try matcher.match(key, bytes)
      }
      matcher.advance()
    case .page(let table, let after):
      var parameters: PostgresParameters = [.int8(space), .text(table.text)]
      parameters.append(record: after)
      let page = try connection.query(tablePage, parameters)
      var last: Name?
      for row in page where !matcher.isSliceFull {
        let record = try row.recordName(0).name
        try row.bytes(1) { try matcher.match(RecordKey(table: table, record: record), $0) }
        last = record
      }
      matcher.advance(to: last)
    }
  }
}
