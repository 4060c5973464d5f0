import FerryPostgres
import FerryProtocol

/// A capture of the former rows of an adopted table, slice by slice in the order of their keys; all
/// calls block.
struct MirrorSlices: Sendable {
  /// Rows of a slice.
  static let rowsMax: Int64 = 1_000
  /// Bytes of a slice, unless it is a single larger row.
  static let bytesMax: Int64 = 8 << 20

  let ledger: MirrorLedger
  /// Parents before their children.
  let sql: [MirrorSQL]
  /// Reads PostgreSQL's log; `nil` if triggers capture.
  let reader: LogReader?

  /// Captures the next slice, and stores the end of it in the same transaction. Returns `false` if
  /// no table has any left.
  ///
  /// - Parameter rows: the most rows. A slice of one row holds one lock, so no program can wait for
  ///   it in a circle; it waits longer for others.
  func captureNext(_ rows: Int64, _ connection: PostgresConnection) throws -> Bool {
    try connection.transaction { connection in
      let wait = rows == 1 ? "2s" : "200ms"
      try connection.execute(single: "SET LOCAL lock_timeout = \(quoted(postgres: wait))")
      try connection.execute("SET LOCAL statement_timeout = 0")
      try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
      for sql in sql {
        let found = try connection.query(
          .once(
            """
            SELECT last, place FROM ferry_mirror.adopted
            WHERE mirror = $1 AND tab = $2 AND NOT done
            """),
          [.int8(ledger.number), .text(sql.table.name.text)])
        guard let row = found.first else { continue }
        let last = try row.array(0, of: String.self)
        let place = row.isNull(1) ? nil : try row.array(1, of: String.self)
        if try capture(sql, after: place, to: last, rows, connection) { return true }
      }
      return false
    }
  }

  private func capture(
    _ sql: MirrorSQL, after place: [String?]?, to last: [String?], _ rows: Int64,
    _ connection: PostgresConnection
  ) throws -> Bool {
    var limits: PostgresParameters = [
      .int8(rows), .int8(Self.bytesMax), .array(PostgresArray(last)),
    ]
    if let place { limits.append(PostgresArray(place)) }
    let recapture = RecaptureSQL(sql: sql)
    let end = try connection.query(.once(recapture.sliceEnd(isFirst: place == nil)), limits).first
    guard let end else {
      _ = try connection.query(
        .once("UPDATE ferry_mirror.adopted SET done = true WHERE mirror = $1 AND tab = $2"),
        [.int8(ledger.number), .text(sql.table.name.text)])
      return false
    }
    let next = PostgresArray<String>(try end.array(0, of: String.self))
    var places: PostgresParameters = [.array(next)]
    if let place { places.append(PostgresArray(place)) }
    _ = try connection.query(.once(recapture.captureSlice(isFirst: place == nil)), places)
    try ledger.awaitLog(reader, connection)
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.adopted SET place = $3, rows = rows + $4
        WHERE mirror = $1 AND tab = $2
        """),
      [
        .int8(ledger.number), .text(sql.table.name.text), .array(next), .int8(try end.int8(1)),
      ])
    return true
  }
}
