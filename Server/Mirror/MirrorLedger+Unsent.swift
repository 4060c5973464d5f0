import FerryPlatform
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
  /// The key of the record with the row's unique value, if this is the reason.
  var holder: [String?]?

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
  func unsent(
    _ connection: PostgresConnection, limit: Int64 = Self.deferredMax
  ) throws -> (rows: [DeferredRow], count: Int64) {
    let rows = try connection.query(
      .once(
        """
        SELECT tab, key, reason, count(*) OVER () FROM ferry_mirror.unsent WHERE mirror = $1
        ORDER BY at, tab, key LIMIT $2
        """), [.int8(number), .int8(limit)])
    return (
      try rows.map { row in
        DeferredRow(
          table: try row.text(0), key: try row.array(1, of: String.self), reason: try row.text(2))
      }, try rows.first?.int8(3) ?? 0
    )
  }

  /// Returns those of some rows that are not stored yet.
  func unlisted(
    _ rows: [UnsentRow], _ connection: PostgresConnection
  ) throws -> [DeferredRow] {
    if rows.isEmpty { return [] }
    let keys = RowKeys(rows)
    let listed = try connection.query(
      .once(
        """
        SELECT r.place FROM unnest($2::text[], $3::text[]) WITH ORDINALITY r(tab, key, place)
          JOIN ferry_mirror.unsent u ON u.tab = r.tab AND u.key = r.key::text[]
        WHERE u.mirror = $1
        """), [.int8(number), .array(keys.tables), .array(keys.texts)]
    ).map { Int(try $0.int8(0)) - 1 }
    return Set(rows.indices).subtracting(listed).sorted().map {
      DeferredRow(table: rows[$0].table, key: rows[$0].key, reason: rows[$0].reason)
    }
  }

  func hasUnsent(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.unsent WHERE mirror = $1 LIMIT 1"), [.int8(number)]
    ).isEmpty
  }

  /// Stores rows that the space does not have, each with the last reason. No row is there twice.
  func store(_ rows: [UnsentRow], _ connection: PostgresConnection) throws {
    guard !rows.isEmpty else { return }
    let keys = RowKeys(rows)
    _ = try connection.pipeline {
      $0.add(.once(Self.forgetStored), [.int8(number), .array(keys.tables), .array(keys.texts)])
      $0.add(
        .once(Self.storeAll),
        [
          .int8(number), .array(keys.tables), .array(keys.texts),
          // It may quote a record's key.
          .array(PostgresArray(rows.map { Optional(Self.storable($0.reason)) })),
          .array(PostgresArray(rows.map { Optional($0.canRetry) })),
          .array(PostgresArray(rows.map { Optional($0.isGone) })),
          .array(PostgresArray(rows.map { $0.holder.map(RowKeys.text) })),
        ])
    }
  }

  /// The keys of rows as two parameters; an array cannot have arrays of several lengths.
  struct RowKeys {
    let tables: PostgresArray<String>
    let texts: PostgresArray<String>

    init(_ rows: [(table: String, key: [String?])]) {
      tables = PostgresArray(rows.map { Optional($0.table) })
      texts = PostgresArray(rows.map { Optional(Self.text($0.key)) })
    }

    init(_ rows: [UnsentRow]) { self.init(rows.map { ($0.table, $0.key) }) }

    /// Returns a key as PostgreSQL reads an array.
    static func text(_ key: [String?]) -> String {
      let parts = key.map { part in
        guard let part = part.map(MirrorLedger.storable) else { return "NULL" }
        let text = part.replacing(bytes: "\\", with: "\\\\").replacing(bytes: "\"", with: "\\\"")
        return "\"\(text)\""
      }
      return "{\(parts.joined(separator: ","))}"
    }
  }

  private static let forgetStored = """
    DELETE FROM ferry_mirror.unsent u
    USING (SELECT tab, key::text[] FROM unnest($2::text[], $3::text[]) r(tab, key)) r
    WHERE u.mirror = $1 AND u.tab = r.tab AND u.key = r.key
    """

  private static let storeAll = """
    INSERT INTO ferry_mirror.unsent(mirror, tab, key, reason, retry, gone, holder)
    SELECT $1, tab, key::text[], reason, retry, gone, holder::text[]
    FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[], $6::boolean[], $7::text[])
      r(tab, key, reason, retry, gone, holder)
    """

  // MARK: Sent writes

  /// Forgets unsent rows that the space has by the writes of a step, stores failed ones, and frees
  /// rows that may have waited for one of these writes.
  ///
  /// - Parameter marks: the mirror, and the last write of each transaction.
  func recordSent(
    _ read: ReadWrites, _ marks: PostgresParameters, _ connection: PostgresConnection
  ) throws {
    var failed = marks
    let keys = RowKeys(read.unsent + read.refused)
    failed.append(keys.tables)
    failed.append(keys.texts)
    _ = try connection.query(.once(Self.forgetSent), marks)
    try store(read.unsent, connection)
    _ = try connection.query(.once(Self.freeHeld), failed)
  }

  /// The writes of a step.
  private static let taken = """
    WITH taken AS MATERIALIZED (
      SELECT c.tab, c.kind, c.key, c.olds FROM ferry_mirror.captured c
        JOIN unnest($2::text[]::xid8[], $3::bigint[], $4::bigint[]) r(xid, tries, id)
        ON c.xid = r.xid AND (c.tries, c.id) <= (r.tries, r.id)
      WHERE c.mirror = $1)
    """

  /// A failed write frees nothing: rows waiting for each other would be retried without an end.
  private static let freeHeld = """
    \(taken)
    UPDATE ferry_mirror.unsent u SET retry = true FROM (
      (SELECT tab, key FROM taken UNION ALL SELECT tab, olds FROM taken WHERE kind = 'K')
      EXCEPT SELECT tab, key::text[] FROM unnest($5::text[], $6::text[]) f(tab, key)) c
    WHERE u.mirror = $1 AND c.tab = u.tab AND c.key = u.holder AND NOT u.retry
    """

  /// An update has sent some columns of the row only.
  private static let forgetSent = """
    \(taken),
    -- The space may lack other columns of the row.
    again AS (
      UPDATE ferry_mirror.unsent u SET retry = true FROM taken c
      WHERE u.mirror = $1 AND c.tab = u.tab AND c.kind = 'U' AND c.key = u.key)
    DELETE FROM ferry_mirror.unsent u USING (
      SELECT tab, key FROM taken WHERE kind <> 'U'
      UNION ALL SELECT tab, olds FROM taken WHERE kind = 'K') c
    WHERE u.mirror = $1 AND c.tab = u.tab AND c.key = u.key
    """

  // MARK: Retries

  /// Returns `true` if unsent rows wait for a change of another record.
  func hasHeld(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once(
        """
        SELECT FROM ferry_mirror.unsent
        WHERE mirror = $1 AND holder IS NOT NULL AND NOT retry LIMIT 1
        """), [.int8(number)]
    ).isEmpty
  }

  /// Makes all unsent rows due for a retry, whatever the reason was.
  func allowRetry(_ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("UPDATE ferry_mirror.unsent SET retry = true WHERE mirror = $1 AND NOT retry"),
      [.int8(number)])
  }

  /// Makes all unsent rows due for a retry if the space has another schema: a former rule may have
  /// refused them. Returns `true` if it has.
  func allowRetry(withSchema version: Int64, _ connection: PostgresConnection) throws -> Bool {
    try connection.transaction { connection in
      let changed = try connection.query(
        .once(
          """
          UPDATE ferry_mirror.mirrors SET version = $2 WHERE number = $1 AND version <> $2
          RETURNING 1
          """), [.int8(number), .int8(version)])
      if changed.isEmpty { return false }
      try allowRetry(connection)
      return true
    }
  }

  /// Captures the rows due for a retry, and forgets those equal in the space. Returns the number of
  /// retried rows.
  func retryUnsent(
    _ sql: [MirrorSQL], most: Int64, _ reader: LogReader?, _ connection: PostgresConnection
  ) throws -> Int64 {
    guard try hasUnsent(connection) else { return 0 }
    try connection.execute("SET LOCAL lock_timeout = '200ms'; SET LOCAL row_security = off")
    try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
    var count: Int64 = 0
    for sql in sql.map(RecaptureSQL.init) {
      for capture in [sql.captureUnsent, sql.captureGone] {
        let rows = try connection.query(
          .once("WITH c AS (\(capture) RETURNING 1) SELECT count(*) FROM c"), [.int8(most)])
        count += try rows.first?.int8(0) ?? 0
        try awaitLog(reader, connection)
      }
      _ = try connection.query(.once(sql.forgetAbsent))
    }
    return count
  }

  /// Waits until former writes to the locked rows are captured from the log, and orders the rows
  /// captured by the present transaction behind them.
  func awaitLog(_ reader: LogReader?, _ connection: PostgresConnection) throws {
    guard let reader else { return }
    try reader.catchUp(within: LogReader.lockLimit)
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.captured SET id = DEFAULT
        WHERE mirror = $1 AND xid = pg_current_xact_id() AND kind <> 'D'
        """), [.int8(number)])
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
