import FerryPostgres
import Synchronization

/// A worker of Citus for the packets and reads of spaces from one node. So they bypass the
/// coordinator, which all nodes share.
///
/// Each server of Citus finds the rows of a space. If the worker fails, the coordinator does the
/// work for a while.
final class CitusWorker: Sendable {
  private struct State {
    var work = SharedWork()
    var rest = ServerRest()

    mutating func begin() -> ServerRest.Attempt? {
      let attempt = rest.begin(now: .now)
      if attempt == nil { work.passedOn += 1 }
      return attempt
    }
  }

  private let pool: PostgresPool
  private let state = Mutex(State())
  private let known: KnownCluster

  /// Creates a worker, and connects nothing yet.
  ///
  /// - Throws: `PostgresError` with `invalidURL`.
  init(_ url: String, connections: Int) throws(PostgresError) {
    let known = KnownCluster()
    var options = StorePools.options(connections, .session)
    options.preparation = known.check
    self.known = known
    pool = try PostgresPool(
      url: url, connections: connections,
      settings: PostgresStoreSchema.settings(isDistributed: true), options: options)
  }

  var work: SharedWork { state.withLock(\.work) }

  /// Runs `body` on the worker.
  ///
  /// - Parameter deadline: If the worker fails later, the error is thrown: the caller would wait in
  ///   vain.
  /// - Returns: `nil` if the coordinator has to do it. The worker may have done it as well.
  func run<Value: Sendable>(
    _ operation: String, in lane: PoolLane, deadline: ContinuousClock.Instant,
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value? {
    guard let attempt = state.withLock({ $0.begin() }) else { return nil }
    do {
      let value = try await pool.traced(operation, in: lane, body)
      state.withLock { state in
        state.rest.succeeded(attempt)
        state.work.done += 1
      }
      return value
    } catch let error as PostgresError {
      let effect = ServerRest.effect(of: error)
      if effect == .rest { state.withLock { $0.rest.failed(now: .now) } }
      guard effect != .none, .now < deadline else { throw error }
      state.withLock { $0.work.passedOn += 1 }
      return nil
    }
  }

  /// Throws if the server at the address is no active worker of the coordinator, lacks the store,
  /// or cannot be reached. A stranger would take packets into another store, so each later
  /// connection has to be to the same cluster.
  func check(_ coordinator: PostgresPool) async throws(StoreError) {
    do {
      let (hasStore, found, cluster) = try await pool.run { connection in
        (
          try PostgresDistribution.isInForce(on: connection),
          try connection.query(.once("SELECT \(Self.identity)"))[0].text(0),
          try KnownCluster.identifier(on: connection)
        )
      }
      let known = try await coordinator.run { connection in
        try connection.query(
          .once("SELECT result FROM run_command_on_workers($$SELECT \(Self.identity)$$)")
        ).map { try $0.text(0) }
      }
      if hasStore, known.contains(found) { return self.known.set(cluster) }
    } catch {
      let error = StoreError(postgres: error)
      guard case .unavailable(let why) = error else { throw error }
      throw .unavailable("--worker-database: " + why)
    }
    throw .failed(
      "--worker-database is not a worker of the coordinator at --database, or lacks the store's "
        + "tables; name an active worker, with the same database and the same options")
  }

  /// A text unique to each database, by SQL.
  private static let identity = """
    concat_ws(' ', current_database(), extract(epoch FROM pg_postmaster_start_time()),
      (SELECT system_identifier FROM pg_control_system()))
    """

  func close() async { await pool.close() }
}

/// The cluster of a worker. A name may lead to another server later.
private final class KnownCluster: Sendable {
  private let identifier = Mutex<Int64?>(nil)

  func set(_ cluster: Int64) { identifier.withLock { $0 = cluster } }

  /// Throws if a cluster is known, and the connection is to another one.
  @Sendable
  func check(_ connection: PostgresConnection) throws {
    guard let known = identifier.withLock(\.self) else { return }
    guard try Self.identifier(on: connection) == known else {
      throw PostgresError(.connectionFailed, "another server answers for the worker")
    }
  }

  /// A standby of a cluster has the same one.
  static func identifier(on connection: PostgresConnection) throws -> Int64 {
    try connection.query(.once("SELECT system_identifier FROM pg_control_system()"))[0].int8(0)
  }
}
