import FerryPostgres
import Synchronization

/// A hot standby that serves pulls (PostgreSQL manual, chapter 27.4). There may be several behind
/// one address.
///
/// A pull is never behind an earlier confirmed commit. The primary reports the position of its log,
/// and the standby answers after it has replayed the log up to there. If it is late, or fails, the
/// primary answers.
final class ReadReplica: Sendable {
  /// The longest time of a standby to reach the primary's position.
  private static let waitLimit = Duration.milliseconds(50)
  private static let pause = Duration.milliseconds(2)

  private struct State {
    var work = SharedWork()
    var rest = ServerRest()
  }

  private let pool: PostgresPool
  private let primary: PostgresPool
  private let state = Mutex(State())

  /// Creates a replica, and connects nothing yet.
  ///
  /// - Throws: `PostgresError` with `invalidURL`.
  init(_ url: String, of primary: PostgresPool, connections: Int) throws(PostgresError) {
    var options = PostgresPool.Options()
    options.shares.patience = .seconds(2)
    options.answerLimit = .seconds(60)
    options.feelsPulse = true
    options.prefersStandby = true
    pool = try PostgresPool(
      url: url, connections: connections,
      settings: PostgresStoreSchema.settings(isDistributed: false),
      options: options)
    self.primary = primary
  }

  var work: SharedWork { state.withLock(\.work) }

  /// Runs a read on the standby.
  ///
  /// - Returns: `nil` if the primary has to answer.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws(CancellationError) -> Value? {
    let answer = try await attempt(body)
    state.withLock { state in
      if answer == nil { state.work.passedOn += 1 } else { state.work.done += 1 }
    }
    return answer
  }

  private func attempt<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws(CancellationError) -> Value? {
    guard let use = state.withLock({ $0.rest.begin(now: .now) }) else { return nil }
    // An error of the primary is for the primary's own answer.
    guard let place = try? await primary.run(in: .pull, LogPlace.current) else { return nil }
    do {
      let deadline = ContinuousClock.now + Self.waitLimit
      while true {
        let (progress, answer) = try await read(place, body)
        if progress != .unrelated { state.withLock { $0.rest.succeeded(use) } }
        if let answer { return answer }
        if progress == .unrelated {
          beginRest()
          return nil
        }
        guard ContinuousClock.now < deadline else { return nil }
        try await Task.sleep(for: Self.pause)
      }
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      beginRest()
      return nil
    }
  }

  /// Reads if the server has reached the place. Both are on one connection: another one may be of
  /// another standby behind the same address, which is further behind.
  private func read<Value: Sendable>(
    _ place: LogPlace, _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> (progress: LogPlace.Progress, answer: Value?) {
    try await pool.traced("changes", isStandby: true) {
      (connection) throws -> (progress: LogPlace.Progress, answer: Value?) in
      let progress = try place.progress(on: connection)
      guard progress == .reached else { return (progress, nil) }
      return (progress, try body(connection))
    }
  }

  private func beginRest() { state.withLock { $0.rest.failed(now: .now) } }

  /// Throws if the server at the address is no standby of the primary. An unreachable standby is
  /// permitted: the primary answers until the standby can. If the primary's address names several
  /// servers, the standby may have become the primary.
  func check() async throws(StoreError) {
    do {
      let place = try await primary.run(in: .pull, LogPlace.current)
      guard (try? await pool.run { try $0.query(.once("SELECT 1")).count }) != nil else { return }
      let mayBePrimary = primary.namesSeveralServers
      let isRight = try await pool.run { connection in
        try place.isOfSameDatabase(on: connection, orPrimary: mayBePrimary)
      }
      if isRight { return }
    } catch {
      throw StoreError(postgres: error)
    }
    throw .failed(
      "--read-database is not a standby of --database, or is another database of it; name a "
        + "standby, or omit --read-database")
  }

  func close() async { await pool.close() }
}

/// A place in the log of a primary.
struct LogPlace: Sendable, Equatable {
  /// The end of the log on the primary's disk, as text (type `pg_lsn`).
  let position: String
  /// The cluster's identifier, common to all standbys.
  let cluster: Int64
  let database: String
  /// The history of the log: a promotion begins another one.
  let timeline: Int32

  /// The state of a server, compared with a place.
  enum Progress: Sendable {
    /// The standby has replayed the log up to the place.
    case reached
    case behind
    /// Is no standby, or follows another history: after a failover, for example.
    case unrelated
  }

  /// Returns the present place. All commits confirmed before are in front of it.
  ///
  /// With `synchronous_commit = off`, commits are confirmed before they are on the disk.
  static func current(on connection: PostgresConnection) throws -> LogPlace {
    let row = try connection.query(now)[0]
    return LogPlace(
      position: try row.text(0), cluster: try row.int8(1), database: try row.text(2),
      timeline: try row.int4(3))
  }

  private static let now = PostgresStatement(
    "log_place",
    """
    SELECT (CASE current_setting('synchronous_commit') WHEN 'off'
        THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END)::text,
      system_identifier, current_database()::text,
      ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int4
    FROM pg_control_system()
    """)

  /// The receiver's timeline is known sooner than the other, and not to every role.
  private static let comparison = PostgresStatement(
    "log_place_progress",
    """
    SELECT pg_is_in_recovery() AND system_identifier = $1 AND current_database() = $2
        AND $3 = greatest((SELECT min_recovery_end_timeline FROM pg_control_recovery()),
          (SELECT received_tli FROM pg_stat_wal_receiver)),
      coalesce(pg_last_wal_replay_lsn() >= ($4::text)::pg_lsn, false)
    FROM pg_control_system()
    """)

  private static let same = PostgresStatement(
    "log_place_same",
    """
    SELECT system_identifier = $1 AND current_database() = $2, pg_is_in_recovery()
    FROM pg_control_system()
    """)

  /// Compares a server with this place.
  func progress(on connection: PostgresConnection) throws -> Progress {
    let row = try connection.query(
      Self.comparison, [.int8(cluster), .text(database), .int4(timeline), .text(position)])[0]
    guard try row.bool(0) else { return .unrelated }
    return try row.bool(1) ? .reached : .behind
  }

  /// Returns `true` if this server is a standby with the same database.
  ///
  /// - Parameter orPrimary: Whether it may be a primary.
  func isOfSameDatabase(on connection: PostgresConnection, orPrimary: Bool) throws -> Bool {
    let row = try connection.query(Self.same, [.int8(cluster), .text(database)])[0]
    let isStandby = try row.bool(1)
    return try row.bool(0) && (isStandby || orPrimary)
  }
}
