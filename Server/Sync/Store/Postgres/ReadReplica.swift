import FerryPostgres
import Synchronization

/// A hot standby that serves pulls (PostgreSQL manual, chapter 27.4).
///
/// A pull is never behind a commit that was confirmed before it. The primary reports the position
/// of its log, and the standby answers once it has replayed the log up to there. If it has not in
/// time, or fails, the primary answers.
final class ReadReplica: Sendable {
  /// How long a standby may take to reach the primary's position.
  private static let waitLimit = Duration.milliseconds(50)
  private static let pause = Duration.milliseconds(2)
  /// How long the primary answers alone after a failure of the standby.
  private static let rest = Duration.seconds(5)

  private struct State {
    var counts = StandbyPulls()
    var restsUntil: ContinuousClock.Instant?
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
    pool = try PostgresPool(
      url: url, connections: connections,
      settings: PostgresStoreSchema.settings(isDistributed: false),
      options: options)
    self.primary = primary
  }

  var counts: StandbyPulls { state.withLock(\.counts) }

  /// Runs a read on the standby.
  ///
  /// - Returns: `nil` if the primary has to answer.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws(CancellationError) -> Value? {
    let answer = try await attempt(body)
    state.withLock { state in
      if answer == nil { state.counts.passedOn += 1 } else { state.counts.answered += 1 }
    }
    return answer
  }

  private func attempt<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws(CancellationError) -> Value? {
    if let end = state.withLock(\.restsUntil), end > .now { return nil }
    // An error of the primary is for the primary's own answer.
    guard let place = try? await primary.run(in: .pull, LogPlace.current) else { return nil }
    do {
      let deadline = ContinuousClock.now + Self.waitLimit
      while try await !pool.run({ try place.isReached(on: $0) }) {
        guard ContinuousClock.now < deadline else { return nil }
        try await Task.sleep(for: Self.pause)
      }
      return try await pool.traced("changes", isStandby: true, body)
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      state.withLock { $0.restsUntil = .now + Self.rest }
      return nil
    }
  }

  /// Throws if the address is of a server that is no standby of the primary. A standby that cannot
  /// be reached is permitted: the primary answers until it can.
  func check() async throws(StoreError) {
    do {
      let place = try await primary.run(in: .pull, LogPlace.current)
      guard (try? await pool.run { try $0.query(.once("SELECT 1")).count }) != nil else { return }
      if try await pool.run({ try place.isOfSameDatabase(on: $0) }) { return }
    } catch {
      throw StoreError(postgres: error)
    }
    throw .failed("--read-database is not a standby of --database, or is another database of it")
  }

  func close() async { await pool.close() }
}

/// A place in the log of a primary.
struct LogPlace: Sendable, Equatable {
  /// The end of the log that is on the primary's disk, as text (type `pg_lsn`).
  let position: String
  /// The cluster's identifier, which its standbys share.
  let cluster: Int64
  let database: String

  /// Reads the present place. All commits that were confirmed before are in front of it.
  ///
  /// With `synchronous_commit = off`, commits are confirmed before they are on the disk.
  static func current(on connection: PostgresConnection) throws -> LogPlace {
    let row = try connection.query(now)[0]
    return LogPlace(
      position: try row.text(0), cluster: try row.int8(1), database: try row.text(2))
  }

  private static let now = PostgresStatement(
    "log_place",
    """
    SELECT (CASE current_setting('synchronous_commit') WHEN 'off'
        THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END)::text,
      system_identifier, current_database()::text
    FROM pg_control_system()
    """)

  private static let reached = PostgresStatement(
    "log_place_reached",
    """
    SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= ($1::text)::pg_lsn
      AND system_identifier = $2 AND current_database() = $3
    FROM pg_control_system()
    """)

  private static let same = PostgresStatement(
    "log_place_same",
    """
    SELECT system_identifier = $1 AND current_database() = $2 FROM pg_control_system()
    """)

  /// Whether this server is a standby of the same cluster and database, and has replayed the log up
  /// to this place.
  func isReached(on connection: PostgresConnection) throws -> Bool {
    let rows = try connection.query(
      Self.reached, [.text(position), .int8(cluster), .text(database)])
    return try rows[0].bool(0)
  }

  /// Whether this server has the same database, as a primary or as a standby.
  func isOfSameDatabase(on connection: PostgresConnection) throws -> Bool {
    try connection.query(Self.same, [.int8(cluster), .text(database)])[0].bool(0)
  }
}
