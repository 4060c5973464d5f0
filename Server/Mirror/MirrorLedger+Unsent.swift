import FerryPostgres

/// A row that the space does not have as its table does. It stays as written by programs.
struct UnsentRow: Sendable, Equatable, CustomStringConvertible {
  var table: String
  var key: [String?]
  var reason: String
  /// True if it may wait for another write.
  var canRetry: Bool
  /// True if a program has deleted it: the space has it, and the table does not.
  var isGone = false

  var description: String {
    "\(table) \(key.map { $0 ?? "NULL" }.joined(separator: ", ")): \(reason)"
  }
}

/// The progress of a table's adoption.
package struct AdoptionProgress: Sendable, Equatable {
  package var table: String
  /// Rows in slices.
  package var rows: Int64
  /// Rows of the table, as estimated at the beginning.
  package var total: Int64
  package var isDone: Bool
}

/// Rows missing in the space, and the progress of adopted tables. All calls block.
extension MirrorLedger {
  // MARK: Rows missing in the space

  /// Returns some rows that the space does not have as their tables do, and the number of all.
  func unsent(_ connection: PostgresConnection) throws -> (rows: [DeferredRow], count: Int64) {
    let rows = try connection.query(
      .once(
        """
        SELECT tab, key, reason, count(*) OVER () FROM ferry_mirror.unsent WHERE mirror = $1
        ORDER BY at, tab, key LIMIT $2
        """), [.int8(number), .int8(Self.deferredMax)])
    return (
      try rows.map { row in
        DeferredRow(
          table: try row.text(0), key: try row.array(1, of: String.self), reason: try row.text(2))
      }, try rows.first?.int8(3) ?? 0
    )
  }

  func hasUnsent(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.unsent WHERE mirror = $1 LIMIT 1"), [.int8(number)]
    ).isEmpty
  }

  /// Stores rows that the space does not have, each with the last reason.
  func store(_ rows: [UnsentRow], _ connection: PostgresConnection) throws {
    for row in rows {
      _ = try connection.query(
        .once("DELETE FROM ferry_mirror.unsent WHERE mirror = $1 AND tab = $2 AND key = $3"),
        [.int8(number), .text(row.table), .array(PostgresArray(row.key))])
      _ = try connection.query(
        .once(
          """
          INSERT INTO ferry_mirror.unsent(mirror, tab, key, reason, retry, gone)
          VALUES ($1, $2, $3, $4, $5, $6)
          """),
        [
          .int8(number), .text(row.table), .array(PostgresArray(row.key)), .text(row.reason),
          .bool(row.canRetry), .bool(row.isGone),
        ])
    }
  }

  /// Captures the rows due for a retry, and forgets those equal in the space. Returns the number of
  /// retried rows.
  func retryUnsent(
    _ sql: [MirrorSQL], most: Int64, _ connection: PostgresConnection
  ) throws -> Int64 {
    guard try hasUnsent(connection) else { return 0 }
    try connection.execute("SET LOCAL lock_timeout = '200ms'")
    try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
    var count: Int64 = 0
    for sql in sql {
      for capture in [sql.captureUnsent, sql.captureGone] {
        let rows = try connection.query(
          .once("WITH c AS (\(capture) RETURNING 1) SELECT count(*) FROM c"), [.int8(most)])
        count += try rows.first?.int8(0) ?? 0
      }
      _ = try connection.query(.once(sql.forgetAbsent))
    }
    return count
  }

  // MARK: Progress

  /// Returns the identifier of the newest captured write; 0 if there is none.
  func lastCaptured(_ connection: PostgresConnection) throws -> Int64 {
    try connection.query(
      .once("SELECT coalesce(max(id), 0) FROM ferry_mirror.captured WHERE mirror = $1"),
      [.int8(number)]
    ).first?.int8(0) ?? 0
  }

  func hasCaptured(through id: Int64, _ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.captured WHERE mirror = $1 AND id <= $2 LIMIT 1"),
      [.int8(number), .int8(id)]
    ).isEmpty
  }

  /// Returns the progress of each adopted table, in the order of their names.
  func adopted(_ connection: PostgresConnection) throws -> [AdoptionProgress] {
    try connection.query(
      .once(
        "SELECT tab, rows, total, done FROM ferry_mirror.adopted WHERE mirror = $1 ORDER BY tab"),
      [.int8(number)]
    ).map { row in
      AdoptionProgress(
        table: try row.text(0), rows: try row.int8(1), total: try row.int8(2),
        isDone: try row.bool(3))
    }
  }

  /// Returns `true` if rows of adopted tables may not be in the space yet.
  func isAdopting(_ connection: PostgresConnection) throws -> Bool {
    try adopted(connection).contains { !$0.isDone }
  }
}

extension [AdoptionProgress] {
  /// The unfinished tables, for people.
  var shown: String {
    let left = filter { !$0.isDone }.map { "\($0.table): \($0.rows) of about \($0.total) rows" }
    return left.isEmpty ? "all rows are uploaded" : left.joined(separator: ", ")
  }
}
