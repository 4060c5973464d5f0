import FerryPostgres
import FerryProtocol
import Synchronization

/// The views of a mirror: compares their copies with them, beside the rounds.
final class MirrorViews: Sendable {
  private let views: [(sql: MirrorSQL, view: String)]
  private let ledger: MirrorLedger
  private let pool: any MirrorConnections
  private let log: Mirror.Log
  private let schedules = Mutex<[String: ViewSchedule]>([:])

  init(
    _ sql: [MirrorSQL], _ ledger: MirrorLedger, _ pool: any MirrorConnections,
    _ log: @escaping Mirror.Log
  ) {
    views = sql.compactMap { sql in sql.view.map { (sql, $0) } }
    (self.ledger, self.pool, self.log) = (ledger, pool, log)
  }

  /// The tables of all mirrors about views.
  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.views(  -- views that could not be read
      mirror bigint NOT NULL, tab text NOT NULL, reason text NOT NULL, PRIMARY KEY (mirror, tab));
    """

  /// Compares the copies that are due, each in a transaction of its own. A view that cannot be read
  /// stops no other one: the copy stays as it is, and the status has the reason.
  ///
  /// - Parameter all: whether each view is due.
  func refresh(all: Bool = false) async throws {
    for (sql, view) in views {
      let name = sql.table.name
      let begun = ContinuousClock.now
      do {
        let state = try await pool.run { connection in
          try connection.query(.once(MirrorSQL.viewState), [.text(view)]).first?.text(0) ?? ""
        }
        let schedule = schedules.withLock { $0[name.text] ?? ViewSchedule() }
        guard all || schedule.isDue(state, at: begun) else { continue }
        try await pool.run { try self.refresh(sql, $0) }
        schedules.withLock {
          $0[name.text, default: ViewSchedule()].record(state, from: begun, to: .now)
        }
      } catch let error as PostgresError where error.kind == .server && !error.isPassing {
        let message = error.message
        let isNew = try await pool.run { try self.ledger.store(message, of: name, $0) }
        if isNew { log("error", "view \(name) cannot be read: \(message)") }
      }
    }
  }

  private func refresh(_ sql: MirrorSQL, _ connection: PostgresConnection) throws {
    guard let refresh = sql.refresh else { return }
    try connection.transaction { connection in
      try connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL row_security = off")
      _ = try connection.query(.once(refresh))
      try ledger.forgetReason(of: sql.table.name, connection)
    }
  }
}

/// The reasons of views that could not be read. All calls block.
extension MirrorLedger {
  /// Returns `true` if the reason is another one than before.
  fileprivate func store(
    _ reason: String, of view: Name, _ connection: PostgresConnection
  ) throws -> Bool {
    try !connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.views AS v (mirror, tab, reason) VALUES ($1, $2, $3)
        ON CONFLICT (mirror, tab) DO UPDATE SET reason = excluded.reason
        WHERE v.reason <> excluded.reason RETURNING 1
        """), [.int8(number), .text(view.text), .text(reason)]
    ).isEmpty
  }

  fileprivate func forgetReason(of view: Name, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("DELETE FROM ferry_mirror.views WHERE mirror = $1 AND tab = $2"),
      [.int8(number), .text(view.text)])
  }

  /// Removes the copies of views.
  var dropCopies: String {
    """
    DO '
      DECLARE found record;
      BEGIN
        FOR found IN SELECT oid::regclass AS target FROM pg_class
          WHERE relnamespace = ''ferry_mirror''::regnamespace AND relkind = ''r''
            AND relname ~ ''^view_\(number)_''
        LOOP
          EXECUTE format(''DROP TABLE %s'', found.target);
        END LOOP;
      END'
    """
  }
}

extension MirrorConfiguration {
  /// True if a view is one of the tables.
  var hasViews: Bool { adoptions.values.contains { $0.view != nil } }
}

extension MirrorRounds {
  /// Returns the views of the mirror; `nil` if there are none.
  func views() async throws -> MirrorViews? {
    guard configuration.hasViews else { return nil }
    let plan = try configuration.plan(try await presentSchema())
    let sql = plan.tables.map {
      MirrorSQL(table: $0, schema: configuration.schema, mirror: ledger.number)
    }
    return MirrorViews(sql, ledger, pool, sides.log)
  }
}
