import FerryPostgres
import Synchronization

/// A worker of Citus through which a node sends packets and reads of spaces. So the coordinator,
/// which all nodes share, does not carry them.
///
/// Each server of Citus finds the rows of a space. If the worker fails, the coordinator does its
/// work for a while.
final class CitusWorker: Sendable {
  /// How long the coordinator does its work after a failure.
  private static let rest = Duration.seconds(5)

  private let pool: PostgresPool
  private let restsUntil = Mutex<ContinuousClock.Instant?>(nil)

  /// Creates a worker, and connects nothing yet.
  ///
  /// - Throws: `PostgresError` with `invalidURL`.
  init(_ url: String, connections: Int) throws(PostgresError) {
    pool = try PostgresPool(
      url: url, connections: connections,
      settings: PostgresStoreSchema.settings(isDistributed: true),
      options: PostgresStore.options(connections, .session))
  }

  /// The worker's connections; `nil` while the coordinator does its work.
  var present: PostgresPool? {
    let isPresent = restsUntil.withLock { end in end.map { $0 <= .now } ?? true }
    return isPresent ? pool : nil
  }

  func beginRest() { restsUntil.withLock { $0 = .now + Self.rest } }

  /// Throws if the address is of a server that is no worker of the coordinator, or cannot be
  /// reached. A stranger would take packets into another store.
  func check(_ coordinator: PostgresPool) async throws {
    let expected = try await coordinator.run(CitusCluster.read)
    let found = try await pool.run(CitusCluster.read)
    guard expected?.group == 0, let found, found.group != 0, found.servers == expected?.servers
    else {
      throw StoreError.failed(
        "--worker-database is not a worker of the coordinator at --database; name one of those "
          + "that citus_add_node has added, or omit --worker-database")
    }
  }

  func close() async { await pool.close() }
}

/// A database of Citus, as one of its servers knows it.
private struct CitusCluster: Sendable {
  /// The server's own number; 0 is the coordinator's.
  let group: Int32
  /// The database and all servers. Two coordinators cannot have one address.
  let servers: String

  /// Returns `nil` if the server knows of no others.
  static func read(_ connection: PostgresConnection) throws -> CitusCluster? {
    guard try PostgresDistribution.hasExtension(connection) else { return nil }
    let rows = try connection.query(
      .once(
        """
        SELECT (SELECT groupid FROM pg_dist_local_group), current_database() || ' on '
          || string_agg(concat_ws(':', groupid, nodename, nodeport), ', ' ORDER BY nodeid)
        FROM pg_dist_node HAVING count(*) > 0
        """))
    guard let row = rows.first else { return nil }
    return CitusCluster(group: try row.int4(0), servers: try row.text(1))
  }
}
