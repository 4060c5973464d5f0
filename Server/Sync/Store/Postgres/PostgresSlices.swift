import FerryPostgres
import FerryProtocol

/// States loaded and written in slices, within a transaction.
struct PostgresSlices: IngestSlices {
  let space: Int64
  let now: Int64
  let connection: PostgresConnection

  /// Bytes of states after which one answer of the database ends.
  private static let answerBytes: Int64 = 4 << 20

  /// The sizes of records in their order, and their states until they have so many bytes.
  private static let states = PostgresStatement(
    "states_slice",
    """
    SELECT tbl, record, CASE WHEN before < $4::bigint THEN state END FROM (
      SELECT *, coalesce(sum(octet_length(state)) OVER (
        ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
      FROM (
        SELECT wanted.place, found.* FROM unnest($2::text[], $3::bytea[])
          WITH ORDINALITY AS wanted(tbl, record, place)
        CROSS JOIN LATERAL (
          SELECT r.tbl, r.record, r.state FROM records AS r
          WHERE r.space = $1 AND r.tbl = wanted.tbl AND r.record = wanted.record OFFSET 0
        ) AS found
      ) AS listed
    ) AS summed ORDER BY place
    """)

  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)] {
    var found: [RecordKey: (state: RecordState, bytes: Int)] = [:]
    try Self.forEachState(of: keys, in: space, on: connection) { key, bytes in
      found[key] = (try RecordState(stored: bytes, limits: .stored), bytes.count)
    }
    return found
  }

  func save(_ slice: IngestEffects) throws {
    // One statement after the other: the history and the records are about as large.
    let writes = PostgresIngestWrites(space: space, now: now)
    _ = try connection.pipeline { writes.add(history: slice, to: &$0) }
    _ = try connection.pipeline { writes.add(records: slice, to: &$0) }
  }

  /// Shows the states of existing records, a few at a time.
  static func forEachState(
    of keys: [RecordKey], in space: Int64, on connection: PostgresConnection,
    _ show: (RecordKey, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var rest = keys
    while !rest.isEmpty {
      let (tables, records) = arrays(rest)
      let rows = try connection.query(
        states, [.int8(space), .array(tables), .array(records), .int8(answerBytes)])
      rest = []
      for row in rows {
        let key = RecordKey(table: try row.name(0), record: try row.recordName(1).name)
        if row.isNull(2) { rest.append(key) } else { try row.bytes(2) { try show(key, $0) } }
      }
    }
  }

  /// Returns the parts of keys as arrays.
  static func arrays(
    _ keys: [RecordKey]
  ) -> (tables: PostgresArray<String>, records: PostgresArray<[UInt8]>) {
    var tables = PostgresArray<String>(reserving: keys.count)
    var records = PostgresArray<[UInt8]>(reserving: keys.count)
    for key in keys {
      tables.append(utf8: key.table.utf8)
      records.append(record: key.record)
    }
    return (tables, records)
  }
}
