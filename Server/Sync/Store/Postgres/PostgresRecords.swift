import FerryPostgres
import FerryProtocol

/// The whole state of single records, read in one statement's snapshot and one round trip.
struct PostgresRecords {
  let space: Int64
  let keys: [RecordKey]
  let byteLimit: Int
  let now: Int64

  private static let state = PostgresStatement(
    "records_space", "SELECT epoch, head FROM spaces WHERE id = $1")

  /// Looks each record up by the whole key, in the requested order. It stops at a number of bytes,
  /// so large values never fill the memory.
  private static let rows = PostgresStatement(
    "records_fetch",
    """
    SELECT tbl, record, sequence, state, whole_below FROM (
      SELECT *, sum(bytes) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) - bytes AS before
      FROM (
        SELECT wanted.place, wanted.tbl, wanted.record, found.sequence, found.state,
          found.whole_below, coalesce(octet_length(found.state), 0) AS bytes
        FROM unnest($2::text[], $3::bytea[]) WITH ORDINALITY AS wanted(tbl, record, place)
        LEFT JOIN LATERAL (
          SELECT r.sequence, r.state, r.whole_below FROM records AS r
          WHERE r.space = $1 AND r.tbl = wanted.tbl AND r.record = wanted.record OFFSET 0
        ) AS found ON true
      ) AS listed
    ) AS summed WHERE before < $4 ORDER BY place
    """)

  func run(on connection: PostgresConnection) throws -> Result<[UInt8], Problem> {
    var tables = PostgresArray<String>(reserving: keys.count, valueBytes: keys.count * 16)
    var records = PostgresArray<[UInt8]>(reserving: keys.count, valueBytes: keys.count * 17)
    for key in keys {
      tables.append(utf8: key.table.utf8)
      records.append(record: key.record)
    }
    let results = try connection.transaction(.snapshot) { connection in
      try connection.pipeline { pipeline in
        pipeline.add(Self.state, [.int8(space)])
        pipeline.add(
          Self.rows,
          [.int8(space), .array(tables), .array(records), .int8(Int64(byteLimit))])
        pipeline.commit()
      }
    }
    guard let state = results[0].first else {
      return .failure(.spaceGone)
    }
    let epoch = Epoch(UInt64(bitPattern: try state.int8(0)))
    return .success(try page(results[1], epoch, try state.int8(1)))
  }

  private func page(
    _ rows: PostgresRows, _ epoch: Epoch, _ head: SequenceNumber
  ) throws -> [UInt8] {
    var page = PageBuilder(records: keys.count, byteLimit: byteLimit)
    for row in rows {
      guard page.hasRoomForRecord else { break }
      let isThere = row.isNull(2) ? false : try add(row, to: &page)
      if !isThere {
        page.addAbsent(RecordKey(table: try row.name(0), record: try row.recordName(1).name))
      }
    }
    return page.finishRecords(epoch: epoch, head: head, now: now)
  }

  /// Returns whether the record exists or has existed for a reader.
  private func add(_ row: PostgresRow, to page: inout PageBuilder) throws -> Bool {
    let (sequence, wholeBelow) = (try row.int8(2), try row.int8(4))
    let record = try row.recordName(1)
    return try row.bytes(0) { table in
      try row.bytes(3) { state in
        try page.add(
          sequence: sequence, table: table, record: record, state: state, wholeBelow: wholeBelow)
      }
    }
  }
}
