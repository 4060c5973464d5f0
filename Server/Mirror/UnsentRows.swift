import FerryPlatform
import FerryPostgres
import FerryProtocol

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
  /// The reason for devices, if it is PostgreSQL's answer to a step.
  var answer: String?

  var description: String {
    "\(table) \(key.map { $0 ?? "NULL" }.joined(separator: ", ")): \(reason)"
  }
}

/// The rows of a mirror that the space lacks as their tables have them, in `ferry_mirror.unsent`. All
/// calls block.
struct UnsentRows: Sendable {
  let mirror: Int64

  /// Returns some rows that the space does not have as their tables do, and the number of all.
  func list(
    _ connection: PostgresConnection, limit: Int64 = MirrorLedger.deferredMax
  ) throws -> (rows: [DeferredRow], count: Int64) {
    let rows = try connection.query(
      .once(
        """
        SELECT tab, key, reason, count(*) OVER () FROM ferry_mirror.unsent WHERE mirror = $1
        ORDER BY at, tab, key LIMIT $2
        """), [.int8(mirror), .int8(limit)])
    return (
      try rows.map { row in
        DeferredRow(
          table: try row.text(0), key: try row.array(1, of: String.self), reason: try row.text(2))
      }, try rows.first?.int8(3) ?? 0
    )
  }

  /// Returns `true` if the space does not have a row as the table does.
  func contains(
    _ table: String, _ key: [String?], _ connection: PostgresConnection
  ) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.unsent WHERE mirror = $1 AND tab = $2 AND key = $3"),
      [.int8(mirror), .text(table), .array(PostgresArray(key))]
    ).isEmpty
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
        """), [.int8(mirror), .array(keys.tables), .array(keys.texts)]
    ).map { Int(try $0.int8(0)) - 1 }
    return Set(rows.indices).subtracting(listed).sorted().map {
      DeferredRow(table: rows[$0].table, key: rows[$0].key, reason: rows[$0].reason)
    }
  }

  func hasAny(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.unsent WHERE mirror = $1 LIMIT 1"), [.int8(mirror)]
    ).isEmpty
  }

  /// Stores rows that the space does not have, each with the last reason. No row is there twice.
  func store(_ rows: [UnsentRow], _ connection: PostgresConnection) throws {
    guard !rows.isEmpty else { return }
    let keys = RowKeys(rows)
    _ = try connection.query(
      .once(Self.storeAll),
      [
        .int8(mirror), .array(keys.tables), .array(keys.texts),
        // It may quote a record's key.
        .array(PostgresArray(rows.map { Optional(MirrorLedger.storable($0.reason)) })),
        .array(PostgresArray(rows.map { Optional($0.canRetry) })),
        .array(PostgresArray(rows.map { Optional($0.isGone) })),
        .array(PostgresArray(rows.map { $0.holder.map(RowKeys.text) })),
        .array(PostgresArray(rows.map { $0.answer.map(MirrorLedger.storable) })),
      ])
  }

  private static let storeAll = """
    WITH r AS MATERIALIZED (
      SELECT tab, key::text[], reason, retry, gone, holder::text[], answer
      FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[], $6::boolean[], $7::text[],
        $8::text[])
        r(tab, key, reason, retry, gone, holder, answer)),
    former AS (
      DELETE FROM ferry_mirror.unsent u USING r
      WHERE u.mirror = $1 AND u.tab = r.tab AND u.key = r.key
      RETURNING u.tab, u.key, u.merges)
    INSERT INTO ferry_mirror.unsent(mirror, tab, key, reason, retry, gone, holder, answer, merges)
    SELECT $1, tab, key, reason, retry, gone, holder, answer, coalesce(merges, true)
    FROM r LEFT JOIN former USING (tab, key)
    """

  /// Lets unsent rows travel as the tables have them: the mirror's file may not know all writes that
  /// the space lacks.
  ///
  /// - Parameter table: the table of the rows; `nil` for all.
  func sendWhole(of table: Name? = nil, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.unsent SET merges = false
        WHERE mirror = $1 AND tab = coalesce($2, tab) AND merges
        """), [.int8(mirror), .text(table?.text)])
  }

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
      WHERE u.mirror = $1 AND c.tab = u.tab AND c.kind IN ('U', '\(OverwriteSQL.kind)') AND c.key = u.key)
    DELETE FROM ferry_mirror.unsent u USING (
      SELECT tab, key FROM taken WHERE kind NOT IN ('U', '\(OverwriteSQL.kind)')
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
        """), [.int8(mirror)]
    ).isEmpty
  }

  /// Makes all unsent rows due for a retry, whatever the reason was.
  func allowRetry(_ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("UPDATE ferry_mirror.unsent SET retry = true WHERE mirror = $1 AND NOT retry"),
      [.int8(mirror)])
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
          """), [.int8(mirror), .int8(version)])
      if changed.isEmpty { return false }
      try allowRetry(connection)
      return true
    }
  }

  /// Gives the captured rows the reasons of the answers that the space has refused.
  private static let answer = """
    UPDATE ferry_mirror.captured c SET reason = u.answer FROM ferry_mirror.unsent u
    WHERE c.mirror = $1 AND c.xid = pg_current_xact_id() AND c.kind IN ('S', 'D')
      AND u.mirror = c.mirror AND u.tab = c.tab AND u.key = c.key AND u.answer IS NOT NULL
    """

  /// Captures the rows due for a retry, and forgets those equal in the space. Returns the number of
  /// retried rows.
  func retry(
    _ sql: [MirrorSQL], most: Int64, _ reader: LogReader?, _ connection: PostgresConnection
  ) throws -> Int64 {
    guard try hasAny(connection) else { return 0 }
    try connection.execute("SET LOCAL lock_timeout = '200ms'; SET LOCAL row_security = off")
    try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
    var count: Int64 = 0
    for sql in sql.map(RecaptureSQL.init) {
      for capture in [sql.captureUnsent, sql.captureGone] {
        let rows = try connection.query(
          .once("WITH c AS (\(capture) RETURNING 1) SELECT count(*) FROM c"), [.int8(most)])
        count += try rows.first?.int8(0) ?? 0
        try MirrorLedger(number: mirror).awaitLog(reader, connection)
      }
      _ = try connection.query(.once(sql.forgetAbsent))
    }
    if count > 0 { _ = try connection.query(.once(Self.answer), [.int8(mirror)]) }
    return count
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
