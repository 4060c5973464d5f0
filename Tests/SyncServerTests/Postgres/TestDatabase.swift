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

  /// Ends a backend and returns when the backend's process is gone.
  static func terminate(_ backend: Int32, in database: String) async throws {
    let other = try PostgresPool(url: database, connections: 1)
    let wasThere = try await other.run { connection in
      // The second argument waits for the end of the backend, in milliseconds.
      let sql = "SELECT pg_terminate_backend($1, 60000)"
      return try connection.query(.once(sql), [.int4(backend)])[0].bool(0)
    }
    guard wasThere else { throw TestSupportError("backend \(backend) is still there") }
    await other.close()
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
