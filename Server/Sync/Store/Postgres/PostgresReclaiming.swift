import FerryPostgres
import FerryProtocol

/// The reclaiming of deleted rows' room. PostgreSQL's own vacuum frees it for new rows in time, but
/// never makes an index or the middle of a table smaller. So after many deletions this asks for a
/// vacuum, and rewrites small tables.
struct PostgresReclaiming {
  let isDistributed: Bool

  /// The lock of the reclaiming server.
  static let key = 738_094_594
  /// The size of rows and indexes up to which a table is rewritten. Writers wait meanwhile, for
  /// about a second.
  private static let rewrittenBytes: Int64 = 64 << 20
  /// Room not worth the work.
  private static let slackBytes: Int64 = 1 << 20

  /// Reclaims on one server at a time. A table locked by another session, such as PostgreSQL's own
  /// vacuum or a long read, is left for the next time.
  func run(on connection: PostgresConnection) throws -> ReclaimStep {
    let claim = try connection.query(.once("SELECT pg_try_advisory_lock(\(Self.key))"))
    guard try claim[0].bool(0) else { return .busy }
    defer { try? connection.execute("SELECT pg_advisory_unlock(\(Self.key))") }
    // A vacuum of a large table takes minutes, and is silent.
    return try connection.withoutAnswerLimit { connection in
      try connection.apply([("statement_timeout", "0"), ("lock_timeout", "1s")])
      defer { try? connection.apply(PostgresStoreSchema.settings(isDistributed: isDistributed)) }
      return try vacuum(on: connection)
    }
  }

  private func vacuum(on connection: PostgresConnection) throws -> ReclaimStep {
    var isBusy = false
    for table in ["operations", "records", "notices", "buffered"] {
      guard try hasRun("VACUUM \(table)", on: connection) else {
        isBusy = true
        continue
      }
      let (needed, taken) = try size(of: table, on: connection)
      guard needed <= Self.rewrittenBytes, taken > needed + needed / 2 + Self.slackBytes
      else { continue }
      if try !hasRun("VACUUM (FULL) \(table)", on: connection) { isBusy = true }
    }
    return isBusy ? .busy : .done
  }

  /// Runs a statement. Returns `false` if another session has locked the table.
  private func hasRun(_ sql: String, on connection: PostgresConnection) throws -> Bool {
    do throws(PostgresError) {
      try connection.execute(sql)
      return true
    } catch {
      // lock_not_available
      guard error.sqlState == "55P03" else { throw error }
      return false
    }
  }

  /// Returns the approximate bytes needed by a table's rows and indexes, and the bytes taken by
  /// them. The vacuum before has counted the rows.
  private func size(
    of table: String, on connection: PostgresConnection
  ) throws -> (needed: Int64, taken: Int64) {
    // The coordinator's own tables are empty.
    let rows =
      isDistributed
      ? """
      (SELECT sum(result::float8) FROM run_command_on_shards(\(quoted(postgres: table)),
        'SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = ''%s''::regclass'))
      """ : "greatest(reltuples, 0)"
    let size = isDistributed ? "citus_total_relation_size" : "pg_total_relation_size"
    let row = try connection.query(
      .once(
        """
        SELECT (\(rows) * (40 * (SELECT count(*) FROM pg_index
            WHERE indrelid = c.oid) + 30 + coalesce((SELECT avg(pg_column_size(r.*)) FROM
              (SELECT * FROM \(table) LIMIT 500) AS r), 0)))::bigint,
          \(size)(c.oid)
        FROM pg_class AS c WHERE c.oid = \(quoted(postgres: table))::regclass
        """))[0]
    return (try row.int8(0), try row.int8(1))
  }
}
