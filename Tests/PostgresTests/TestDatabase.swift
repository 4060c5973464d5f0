import FerryPostgres
import FerryTestSupport

/// An empty database in the shared cluster, with a pool on it.
struct TestDatabase {
  let url: String
  let pool: PostgresPool

  init(connections: Int = 1, setUp: [String] = []) async throws {
    url = try PostgresCluster.shared().createDatabase()
    pool = try PostgresPool(url: url, connections: connections)
    for statement in setUp { try await pool.run { try $0.execute(statement) } }
  }

  /// Ends a backend and returns when its process is gone.
  static func terminate(_ backend: Int32, in database: String) async throws {
    let other = try PostgresPool(url: database, connections: 1)
    let wasThere = try await other.run { connection in
      // The second argument waits for the end of the backend, in milliseconds.
      let sql = "SELECT pg_terminate_backend($1, 10000)"
      return try connection.query(.once(sql), [.int4(backend)])[0].bool(0)
    }
    guard wasThere else { throw TestSupportError("backend \(backend) is still there") }
    await other.close()
  }

  /// Ends all other backends of a database and returns when their processes are gone.
  static func terminateAll(in database: String) async throws {
    let connection = try PostgresConnection(url: database)
    let rows = try connection.query(
      .once(
        """
        SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND backend_type = 'client backend'
        """))
    guard try rows.allSatisfy({ try $0.bool(0) }) else {
      throw TestSupportError("a backend is still there")
    }
  }
}

extension PostgresConnection {
  /// Returns the first column of the first row.
  func int8(_ sql: String, _ parameters: PostgresParameters = []) throws -> Int64 {
    let rows = try query(.once(sql), parameters)
    guard let row = rows.first else { throw TestSupportError("no row from \(sql)") }
    return try row.int8(0)
  }
}
