import FerryPostgres

/// The migration of a database, one step after the other.
///
/// One node at a time migrates; others wait for its lock, for as long as it takes. No timeout of
/// the server's applies. Each step is a transaction. A step over all rows of a large table is one
/// transaction for each slice of them. So a migration that is killed goes on from its last slice.
struct PostgresMigration {
  /// Raises the version by one.
  struct Step: ExpressibleByStringInterpolation, Sendable {
    /// Statements that run in one transaction.
    let sql: String
    /// A statement that runs after `sql` until it returns no row: a walk over the records, which
    /// keeps its place in `ferry_migration`. It returns the number of records walked over.
    let slice: String?

    init(_ sql: String, slice: String? = nil) {
      self.sql = sql
      self.slice = slice
    }

    init(stringLiteral sql: String) { self.init(sql) }
  }

  let steps: [Step]
  /// Whether a store is made if there is none.
  let createsIfMissing: Bool
  /// Takes a description of the current step.
  let report: @Sendable (String) -> Void

  /// A role or a database may have timeouts of its own.
  static let connectionSettings = [
    """
    SET statement_timeout = 0; SET lock_timeout = 0;
    SET idle_in_transaction_session_timeout = 0; SET jit = off
    """
  ]

  private static let lockKey: Int64 = 7_380_945_921

  func run(on connection: PostgresConnection) throws {
    if !createsIfMissing, try version(on: connection) == nil {
      throw StoreError.failed("the database contains no store of Ferry")
    }
    guard try version(on: connection) != steps.count else { return }
    try lock(on: connection)
    // The lock is the connection's own, and ends with it however this ends.
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS ferry_schema(version integer NOT NULL);
      CREATE TABLE IF NOT EXISTS ferry_migration(
        version integer PRIMARY KEY, space bigint NOT NULL, tbl text COLLATE "C" NOT NULL,
        record text COLLATE "C" NOT NULL)
      """)
    let found = try version(on: connection) ?? 0
    guard found <= steps.count else {
      throw StoreError.failed(
        "a newer ferryd wrote the database (format \(found)); this version supports "
          + "\(steps.count)")
    }
    if found == 0 {
      try make(on: connection)
    } else {
      for version in found..<steps.count { try take(version + 1, on: connection) }
    }
    try connection.execute("SELECT pg_advisory_unlock(\(Self.lockKey))")
  }

  /// Returns the version that the database has; `nil` if there is no store in it.
  private func version(on connection: PostgresConnection) throws -> Int? {
    let table = try connection.query(.once("SELECT to_regclass('ferry_schema') IS NOT NULL"))
    guard try table[0].bool(0) else { return nil }
    let found = try connection.query(.once("SELECT coalesce(max(version), 0) FROM ferry_schema"))
    return Int(try found[0].int8(0))
  }

  private func lock(on connection: PostgresConnection) throws {
    let attempt = try connection.query(.once("SELECT pg_try_advisory_lock(\(Self.lockKey))"))
    if try attempt[0].bool(0) { return }
    report("another process is migrating the database; waiting until it finishes")
    try connection.execute("SELECT pg_advisory_lock(\(Self.lockKey))")
  }

  /// Makes a store in one transaction: it has no records to walk over.
  private func make(on connection: PostgresConnection) throws {
    try connection.transaction { connection in
      for step in steps { try connection.execute(step.sql) }
      try connection.execute("INSERT INTO ferry_schema VALUES (\(steps.count))")
    }
  }

  private func take(_ version: Int, on connection: PostgresConnection) throws {
    let step = steps[version - 1]
    report("step \(version) of \(steps.count)")
    let finish = "INSERT INTO ferry_schema VALUES (\(version))"
    guard let slice = step.slice else {
      return try connection.transaction { try $0.execute("\(step.sql);\n\(finish)") }
    }
    let begun = try connection.query(
      .once("SELECT 1 FROM ferry_migration WHERE version = \(version)"))
    if begun.isEmpty {
      try connection.transaction {
        try $0.execute(
          "\(step.sql);\nINSERT INTO ferry_migration VALUES (\(version), -1, '', '')")
      }
    }
    var records: Int64 = 0
    while let row = try connection.query(.once(slice)).first {
      records += try row.int8(0)
      report("step \(version) of \(steps.count): \(records) records")
    }
    try connection.transaction {
      try $0.execute("DELETE FROM ferry_migration WHERE version = \(version);\n\(finish)")
    }
  }

  /// Returns one slice of a walk over all records in the order of their key.
  ///
  /// - Parameter change: A statement on records that are in `part`: their `space`, `tbl`, `record`.
  static func slice(of size: Int = 20_000, _ change: String) -> String {
    """
    WITH place AS (SELECT space, tbl, record FROM ferry_migration),
    part AS (
      SELECT r.space, r.tbl, r.record FROM records AS r, place AS p
      WHERE (r.space, r.tbl, r.record) > (p.space, p.tbl, p.record)
      ORDER BY r.space, r.tbl, r.record LIMIT \(size)
    ),
    changed AS (\(change)),
    last AS (SELECT * FROM part ORDER BY space DESC, tbl DESC, record DESC LIMIT 1)
    UPDATE ferry_migration AS m SET space = l.space, tbl = l.tbl, record = l.record
    FROM last AS l RETURNING (SELECT count(*) FROM part)
    """
  }
}
