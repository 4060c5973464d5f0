import FerryPostgres
import Synchronization

/// A worker of Citus through which a node sends packets and reads of spaces. So the coordinator,
/// which all nodes share, does not carry them.
///
/// Each server of Citus finds the rows of a space. If the worker fails, the coordinator does its
/// work for a while.
final class CitusWorker: Sendable {
  private let pool: PostgresPool
  private let rest = Mutex(ServerRest())

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
    } catch let error as PostgresError where ServerRest.isFault(error) {
      rest.withLock { $0.failed(now: .now) }
      return nil
    }
  }

  /// Throws if the address is of a server that is no active worker of the coordinator, that lacks
  /// the store, or that cannot be reached. A stranger would take packets into another store.
  func check(_ coordinator: PostgresPool) async throws(StoreError) {
    do {
      let (hasStore, found) = try await pool.run { connection in
        (
          try PostgresDistribution.isInForce(on: connection),
          try connection.query(.once("SELECT \(Self.identity)"))[0].text(0)
        )
      }
      let known = try await coordinator.run { connection in
        try connection.query(
          .once("SELECT result FROM run_command_on_workers($$SELECT \(Self.identity)$$)")
        ).map { try $0.text(0) }
      }
      if hasStore, known.contains(found) { return }
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
