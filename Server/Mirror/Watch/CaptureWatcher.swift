import FerryPostgres
import Synchronization

/// Looks for captured writes of some mirrors on a listener's connection, as ``CaptureWatch``
/// decides.
final class CaptureWatcher: Sendable {
  private struct State {
    var watch = CaptureWatch()
    var mirrors: [Int64] = []
    /// The numbers of the locks for them: the mirrors' own ones, and those of groups.
    var locks: [Int64] = []
    /// The mirrors whose locks the connection has.
    var locked: [Int64] = []
    /// Mirrors with captured writes at the last look, and the first transaction of each.
    var found: [Int64: String] = [:]
    /// No earlier transaction can have a captured write.
    var begin = "0"
    var isChanged = false
  }

  private let state = Mutex(State())

  /// Changes the watched mirrors, by number. The listener has to be woken after the call.
  ///
  /// - Parameter groups: the groups whose triggers capture for some of them.
  func watch(_ mirrors: [Int64], groups: [Int64]) {
    state.withLock {
      ($0.mirrors, $0.locks, $0.isChanged) = (mirrors, mirrors + groups.map { -$0 }, true)
    }
  }

  /// Runs on the listener's thread. Returns the pause until the next run.
  ///
  /// - Parameter onFound: gets the mirrors with captured writes.
  func run(
    _ connection: PostgresConnection, _ occasion: PostgresListener.Occasion,
    onFound: ([Int64]) -> Void
  ) throws -> Duration {
    let (isChanged, mirrors, locks) = state.withLock { state in
      defer { state.isChanged = false }
      return (state.isChanged, state.mirrors, state.locks)
    }
    var event: CaptureWatch.Event
    switch occasion {
    case .connected:
      state.withLock { ($0.locked, $0.found, $0.begin) = ([], [:], "0") }
      event = .connected(sleeps: try Self.sleeps(connection))
    case .notified: event = .notified
    case .due: event = isChanged ? .changed : .due
    }
    // The last look did not concern new ones.
    if isChanged { state.withLock { $0.begin = "0" } }
    while true {
      for effect in state.withLock({ $0.watch.handle(event) }) {
        switch effect {
        case .look: event = .looked(try look(mirrors, connection, onFound))
        case .lock: event = .locked(try lock(locks, connection))
        case .unlock: try unlock(connection)
        case .wait(let pause): return pause
        }
      }
    }
  }

  private static func sleeps(_ connection: PostgresConnection) throws -> Bool {
    try connection.query(
      .once("SELECT current_setting('max_prepared_transactions') = '0'")
    ).first?.bool(0) ?? false
  }

  // MARK: Effects

  /// No transaction before the oldest running one of a look without any write can get one later.
  private func look(
    _ mirrors: [Int64], _ connection: PostgresConnection, _ onFound: ([Int64]) -> Void
  ) throws -> CaptureWatch.Found {
    guard !mirrors.isEmpty else { return .nothing }
    let rows = try connection.query(
      PostgresStatement(
        "mirror_look",
        """
        SELECT s.xmin, m.mirror, f.xid
        FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin) s
        LEFT JOIN (unnest($1::bigint[]) m(mirror) CROSS JOIN LATERAL (
          (SELECT c.xid::text FROM ferry_mirror.captured c
            WHERE c.mirror = m.mirror AND c.xid >= $2::text::xid8 ORDER BY c.xid LIMIT 1)
          UNION ALL
          SELECT 'stop' FROM ferry_mirror.stops s WHERE s.mirror = m.mirror LIMIT 1) f(xid)) ON true
        """),
      [.array(PostgresArray(mirrors.map { Optional($0) })), .text(state.withLock { $0.begin })])
    var found: [Int64: String] = [:]
    for row in rows where !row.isNull(1) { found[try row.int8(1)] = try row.text(2) }
    let begin = try found.isEmpty ? rows.first?.text(0) : nil
    let isNew = state.withLock { state in
      defer { state.found = found }
      if let begin { state.begin = begin }
      return state.found != found
    }
    if found.isEmpty { return .nothing }
    onFound(found.keys.sorted())
    return isNew ? .new : .same
  }

  /// Gets the locks of all mirrors, or of none.
  private func lock(_ locks: [Int64], _ connection: PostgresConnection) throws -> Bool {
    let rows = try connection.query(
      PostgresStatement(
        "mirror_lock",
        """
        SELECT m, pg_try_advisory_lock(\(MirrorLedger.lockClass), m::integer)
        FROM unnest($1::bigint[]) m
        """), [.array(PostgresArray(locks.map { Optional($0) }))])
    var locked: [Int64] = []
    for row in rows where try row.bool(1) { locked.append(try row.int8(0)) }
    state.withLock { $0.locked = locked }
    if locked.count == locks.count { return true }
    try unlock(connection)
    return false
  }

  private func unlock(_ connection: PostgresConnection) throws {
    let locked = state.withLock { state in
      defer { state.locked = [] }
      return state.locked
    }
    guard !locked.isEmpty else { return }
    _ = try connection.query(
      PostgresStatement(
        "mirror_unlock",
        """
        SELECT pg_advisory_unlock(\(MirrorLedger.lockClass), m::integer) FROM unnest($1::bigint[]) m
        """), [.array(PostgresArray(locked.map { Optional($0) }))])
  }
}
