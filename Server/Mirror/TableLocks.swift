import FerryPostgres
import FerryProtocol

/// The locks of all tables whose triggers or definitions a transaction changes.
///
/// One statement locks them, in the order of their names. So two mirrors do not wait in a circle. A
/// program may have locked some of the tables in another order: then the statement fails before
/// PostgreSQL looks for a circle, and would cancel the program.
enum TableLocks {
  enum Mode: String {
    /// Programs read, and wait before they write.
    case writers = "SHARE ROW EXCLUSIVE"
    case all = "ACCESS EXCLUSIVE"
  }

  /// The longest wait for all tables, shorter than `deadlock_timeout` (1 s by default).
  private static let waitMax = quoted(postgres: "900ms")

  /// Locks existing tables until the end of the transaction. Tables without the right to do so are
  /// left to the later statements.
  ///
  /// - Parameter targets: names, quoted and qualified by the schema.
  /// - Throws: ``PostgresError`` if programs have them for too long; see ``PostgresError/isWait``.
  static func lock(_ targets: [String], _ mode: Mode, _ connection: PostgresConnection) throws {
    let sorted = Set(targets).sorted { Name($0) < Name($1) }
    let tables = try connection.query(
      .once(
        """
        SELECT target FROM unnest($1::text[]) WITH ORDINALITY t(target, place)
        WHERE to_regclass(target) IS NOT NULL
          AND has_table_privilege(to_regclass(target), 'UPDATE, DELETE, TRUNCATE') ORDER BY place
        """), [.array(PostgresArray(sorted.map { Optional($0) }))]
    ).map { try $0.text(0) }
    if tables.isEmpty { return }
    let names = tables.joined(separator: ", ")
    let former =
      try connection.query(.once("SELECT current_setting('statement_timeout')")).first?.text(0)
    // The first one is for each table, the second one for all.
    for limit in ["lock_timeout", "statement_timeout"] {
      try connection.execute(single: "SET LOCAL \(limit) = \(waitMax)")
    }
    do {
      try connection.execute(single: "LOCK TABLE \(names) IN \(mode.rawValue) MODE")
    } catch {
      guard error.isWait || error.sqlState == "57014" else { throw error }
      throw PostgresError(
        .server,
        "programs use \(names) in transactions that last too long: the mirror needs a lock of "
          + "the tables for a moment; try again when these transactions have ended",
        sqlState: "55P03")
    }
    _ = try connection.query(
      .once("SELECT set_config('statement_timeout', $1, true)"), [.text(former ?? "0")])
    // Programs wait behind a statement that waits for a table.
    try connection.execute("SET LOCAL lock_timeout = '2s'")
  }

  /// Returns the tables with triggers of functions, by a pattern of the functions' names.
  static func triggered(
    by pattern: String, _ connection: PostgresConnection
  ) throws -> [String] {
    try connection.query(
      .once(
        """
        SELECT DISTINCT format('%I.%I', n.nspname, c.relname)
        FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
          JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE p.pronamespace = to_regnamespace('ferry_mirror') AND p.proname ~ $1
        """), [.text(pattern)]
    ).map { try $0.text(0) }
  }
}

extension PostgresError {
  /// True if it waited too long for a lock, or in a circle.
  var isWait: Bool { kind == .server && ["55P03", "40P01"].contains(sqlState) }
}

extension MirrorConnections {
  /// Runs a transaction that locks tables, and tries it again for a while if programs have them.
  func runLocking<Value: Sendable>(
    tries: Int = MirrorAdopter.triesMax,
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value {
    var attempt = 1
    while true {
      do {
        return try await run(body)
      } catch let error as PostgresError where error.isWait && attempt < tries {
        attempt += 1
        try await pause(.milliseconds(500))
      }
    }
  }
}

extension MirrorStep {
  /// The settings of the transaction. The parameters are the mirror's number, and the name of the
  /// space for programs' triggers.
  ///
  /// A step waits for the lock of a row for half of the time after which PostgreSQL looks for a
  /// deadlock: the step gives way before a program fails.
  static let settings = """
    SELECT set_config('ferry.mirror', $1, true), set_config('ferry.space', $2, true),
      set_config('lock_timeout', greatest(1, least(2000,
        extract(epoch FROM current_setting('deadlock_timeout')::interval) * 500))::int::text, true),
      set_config('statement_timeout', '0', true), set_config('extra_float_digits', '1', true)
    """
}
