import FerryPostgres
import Synchronization

/// A worker of Citus through which a node sends packets and reads of spaces. So the coordinator,
/// which all nodes share, does not carry them.
///
/// Each server of Citus finds the rows of a space. If the worker fails, the coordinator does its
/// work for a while.
final class CitusWorker: Sendable {
  private let pool: PostgresPool
  private let rest = Mutex(WorkerRest())

  /// Creates a worker, and connects nothing yet.
  ///
  /// - Throws: `PostgresError` with `invalidURL`.
  init(_ url: String, connections: Int) throws(PostgresError) {
    pool = try PostgresPool(
      url: url, connections: connections,
      settings: PostgresStoreSchema.settings(isDistributed: true),
      options: PostgresStore.options(connections, .session))
  }

  /// Runs `body` on the worker.
  ///
  /// - Returns: `nil` if the coordinator has to do it. The worker may have done it as well.
  func run<Value: Sendable>(
    _ operation: String, in lane: PoolLane,
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value? {
    guard rest.withLock({ $0.mayUse(now: .now) }) else { return nil }
    do {
      let value = try await pool.traced(operation, in: lane, body)
      rest.withLock { $0.succeeded() }
      return value
    } catch let error as PostgresError where WorkerRest.isFault(error) {
      rest.withLock { $0.failed(now: .now) }
      return nil
    }
  }

  /// Throws if the address is of a server that is no active worker of the coordinator, that lacks
  /// the store, or that cannot be reached. A stranger would take packets into another store.
  func check(_ coordinator: PostgresPool) async throws(StoreError) {
    do {
      let worker = try await pool.run { connection in
        let hasStore = try PostgresDistribution.isInForce(on: connection)
        return (
          hasStore, try connection.query(.once("SELECT \(Self.identity)"))[0].text(0)
        )
      }
      let known = try await coordinator.run { connection in
        try connection.query(
          .once("SELECT result FROM run_command_on_workers($$SELECT \(Self.identity)$$)")
        ).map { try $0.text(0) }
      }
      if worker.0, known.contains(worker.1) { return }
    } catch {
      let error = StoreError(postgres: error)
      guard case .unavailable(let why) = error else { throw error }
      throw .unavailable("--worker-database: " + why)
    }
    throw .failed(
      "--worker-database is not a worker of the coordinator at --database, or lacks the store's "
        + "tables; name an active worker, with the same database and the same options")
  }

  /// A text that no two databases share, by SQL.
  private static let identity = """
    concat_ws(' ', current_database(), extract(epoch FROM pg_postmaster_start_time()),
      (SELECT system_identifier FROM pg_control_system()))
    """

  func close() async { await pool.close() }
}

/// The pauses of a worker that fails; pure.
///
/// After a failure the coordinator does its work. When the pause is over, one caller tries the
/// worker; the others go on with the coordinator until it succeeds.
struct WorkerRest {
  static let length = Duration.seconds(5)

  private var end: ContinuousClock.Instant?

  /// Returns whether a caller may use the worker.
  mutating func mayUse(now: ContinuousClock.Instant) -> Bool {
    guard let end else { return true }
    guard end <= now else { return false }
    self.end = now + Self.length
    return true
  }

  mutating func succeeded() { end = nil }

  mutating func failed(now: ContinuousClock.Instant) { end = now + Self.length }

  /// Returns whether an error is about the worker and not about the work: connections, rights,
  /// missing tables, missing resources, the end of a server.
  static func isFault(_ error: PostgresError) -> Bool {
    switch error.kind {
    case .connectionFailed, .connectionLost, .noAnswer, .readOnly, .busy: return true
    case .invalidURL, .unexpectedResult, .poolClosed: return false
    case .server:
      let state = error.sqlState ?? ""
      return ["08", "42", "53", "57P"].contains { state.hasPrefix($0) }
    }
  }
}
