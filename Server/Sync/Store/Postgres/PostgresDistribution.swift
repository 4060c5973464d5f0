import FerryPostgres
import FerryProtocol

/// The store's tables on several PostgreSQL servers, by the extension Citus.
///
/// A node of Ferry talks to the coordinator, or to a worker (``CitusWorker``). Either sends each
/// statement of a space to the one worker with all rows of this space.
enum PostgresDistribution {
  /// The tables distributed by space, each with the column for it. The rows of one space are on one
  /// worker.
  static let columns: [String: String] = {
    var columns = ["spaces": "id"]
    for table in [
      "operations", "records", "head_times", "timelines", "devices", "buffered", "usage",
      "notices", "unique_keys", "table_columns", "record_digests", "leaf_digests", "digest_states",
      "missions",
      "mission_blobs",
    ] + StoreAdditions.all.map(\.name) {
      columns[table] = "space"
    }
    return columns
  }()

  /// The small tables, which each server has whole.
  static let copied = [
    "ferry_schema", "meta", "space_names", "access_tokens", "token_secrets", "members",
    "invitations", "audit",
  ]

  /// All tables: first the small ones and the spaces, which the others go by.
  private static var tables: [String] {
    copied + ["spaces"] + columns.keys.filter { $0 != "spaces" }.sorted()
  }

  /// Returns `true` if the store is distributed.
  ///
  /// - Throws: ``StoreError/failed(_:)`` if only some tables are.
  static func isInForce(on connection: PostgresConnection) throws -> Bool {
    guard try hasExtension(connection) else { return false }
    let missing = try undistributed(on: connection)
    if missing.count == tables.count { return false }
    guard missing.isEmpty else {
      throw StoreError.failed(
        "the tables \(missing.joined(separator: ", ")) are not distributed, and the others are; "
          + "run `ferryd migrate --distribute`")
    }
    return true
  }

  static func hasExtension(_ connection: PostgresConnection) throws -> Bool {
    try connection.query(.once("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"))[0]
      .bool(0)
  }

  private static func undistributed(on connection: PostgresConnection) throws -> [String] {
    let known = Set(
      try connection.query(
        .once(
          """
          SELECT c.relname::text FROM pg_dist_partition AS d
          JOIN pg_class AS c ON c.oid = d.logicalrelid WHERE c.oid = to_regclass(c.relname)
          """)
      ).map { try $0.text(0) })
    return tables.filter { !known.contains($0) }
  }

  // MARK: Distributing

  /// A lock of each open store, on the connection for notifications.
  private static let useKey = 738_094_596
  /// Acquires this lock. Nothing waits for it: it only shows an open store.
  static let markUse = "SELECT pg_advisory_lock_shared(\(useKey))"

  /// Connections with the same name, and the holders of the lock, whose addresses may give other
  /// names. A closed connection may still be counted for a moment.
  private static let others = """
    SELECT count(*) FROM pg_stat_activity AS a
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND (application_name = current_setting('application_name')
        OR EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND l.locktype = 'advisory'
          AND l.classid = 0 AND l.objid = \(useKey) AND l.objsubid = 1))
    """

  /// Returns the number of Ferry's other connections to the database.
  static func otherConnections(on connection: PostgresConnection) throws -> Int {
    Int(try connection.query(.once(others))[0].int8(0))
  }

  /// Returns the number of workers, before anything is changed.
  static func workers(on connection: PostgresConnection) throws -> Int {
    guard try hasExtension(connection) else { throw DistributionFault.noExtension }
    guard try isCoordinator(connection) else { throw DistributionFault.notCoordinator }
    let workers = try connection.query(
      .once(
        """
        SELECT count(*) FROM pg_dist_node WHERE isactive AND noderole = 'primary'
          AND shouldhaveshards AND groupid <> 0
        """))[0].int8(0)
    guard workers > 0 else { throw DistributionFault.noWorkers }
    return Int(workers)
  }

  /// Distributes the remaining tables, all or none, with their rows. Returns their number.
  static func begin(on connection: PostgresConnection) throws -> Int {
    let missing = try undistributed(on: connection)
    var others = try otherConnections(on: connection)
    for _ in 0..<20 where others > 0 && !missing.isEmpty {
      try connection.execute("SELECT pg_sleep(0.1)")
      others = try otherConnections(on: connection)
    }
    guard others == 0 || missing.isEmpty else { throw DistributionFault.inUse(others) }
    try connection.transaction { connection in
      try PostgresStoreSchema.lock(connection)
      try connection.execute("SET LOCAL statement_timeout = 0")
      for table in missing { try connection.execute(statement(for: table)) }
    }
    try truncateCopies(on: connection)
    return missing.count
  }

  /// Deletes the coordinator's own rows, already copied to the workers by Citus; also those left by
  /// an interrupted call.
  private static func truncateCopies(on connection: PostgresConnection) throws {
    let full = try connection.query(
      .once("SELECT t FROM unnest($1::text[]) AS t WHERE pg_relation_size(t::regclass) > 0"),
      [.array(PostgresArray<String>(tables))])
    for table in try full.map({ try $0.text(0) }) {
      try connection.execute(
        single: "SELECT truncate_local_data_after_distributing_table(\(quoted(postgres: table)))")
    }
  }

  private static func isCoordinator(_ connection: PostgresConnection) throws -> Bool {
    try connection.query(.once("SELECT groupid = 0 FROM pg_dist_local_group"))[0].bool(0)
  }

  private static func statement(for table: String) -> String {
    let name = quoted(postgres: table)
    guard let column = columns[table] else { return "SELECT create_reference_table(\(name))" }
    let neighbour = quoted(postgres: table == "spaces" ? "none" : "spaces")
    return """
      SELECT create_distributed_table(\(name), \(quoted(postgres: column)),
        colocate_with => \(neighbour))
      """
  }
}

/// The result of distributing a store.
package struct StoreDistribution: Sendable, Equatable {
  /// Servers with rows of spaces.
  package let workers: Int
  /// Tables not distributed before.
  package let tables: Int
}

/// A reason for which a store cannot be distributed. No row was moved.
package enum DistributionFault: Error, Equatable {
  /// The database lacks the extension Citus.
  case noExtension
  /// No other server was added to the coordinator.
  case noWorkers
  /// The address is a worker's.
  case notCoordinator
  /// Other programs of Ferry use the database, by so many connections.
  case inUse(Int)
}

extension PostgresStore {
  /// Creates the tables if there are none, and distributes them over the workers of Citus by space.
  /// Distributed tables stay as they are.
  ///
  /// - Throws: ``DistributionFault``; ``StoreError``.
  package static func distribute(_ addresses: PostgresAddresses) async throws -> StoreDistribution {
    do {
      let pool = try PostgresPool(
        url: addresses.direct ?? addresses.main, connections: 1,
        settings: PostgresStoreSchema.settings(isDistributed: true))
      do {
        let answer = try await pool.run { connection in
          let workers = try PostgresDistribution.workers(on: connection)
          try PostgresStoreSchema.prepare(connection, createsIfMissing: true)
          let tables = try PostgresDistribution.begin(on: connection)
          return StoreDistribution(workers: workers, tables: tables)
        }
        await pool.close()
        return answer
      } catch {
        await pool.close()
        throw error
      }
    } catch let fault as DistributionFault {
      throw fault
    } catch {
      throw StoreError(postgres: error)
    }
  }
}
