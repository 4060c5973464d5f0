import FerryPostgres
import Foundation
import Synchronization

/// A private PostgreSQL server for tests, with durable commits as in production.
///
/// It listens on a free port of 127.0.0.1 and trusts all roles except `passwordRole`. It is stopped
/// and removed when this object is released or the process ends, even by kill -9.
package final class PostgresCluster: Sendable {
  /// The ways to stop a server (pg_ctl's modes).
  package enum Shutdown: String, Sendable {
    /// Rolls back and disconnects all clients, then writes a checkpoint.
    case fast
    /// As in a crash: the next start recovers from the log.
    case immediate
  }

  /// A role of this name must give a password; tests that need it create it.
  package static let passwordRole = "ferry_password"

  private static let sharedCluster = Mutex<PostgresCluster?>(nil)

  private let server: TestServer
  private let privateServer: PrivateServer?

  /// Creates a separate cluster, for tests that stop it. It takes a second or two.
  package init() throws {
    let privateServer = try PrivateServer()
    self.privateServer = privateServer
    server = TestServer(
      administration: privateServer.url(database: "postgres"), outlivesTests: false)
  }

  private init(_ privateServer: PrivateServer) {
    self.privateServer = privateServer
    server = TestServer(
      administration: privateServer.url(database: "postgres"), outlivesTests: false)
  }

  /// Creates a hot standby of this cluster, which follows it. It takes a second or two.
  package func makeStandby() throws -> PostgresCluster {
    PostgresCluster(try PrivateServer(standbyOf: try owned()))
  }

  /// Makes a standby a primary. Returns when it takes writes.
  package func promote() throws { try owned().promote() }

  /// Returns this server's address of a database of another one, its primary.
  package func url(of database: String) throws -> String {
    let name = URLComponents(string: database)?.path.dropFirst() ?? ""
    return try owned().url(database: String(name))
  }

  private init(external url: String) {
    privateServer = nil
    server = TestServer(administration: url, outlivesTests: true)
  }

  /// Returns the cluster shared by all tests of this process, started at the first call. If
  /// FERRY_TEST_POSTGRES is set, it is the server named by the variable. Do not stop it.
  package static func shared() throws -> PostgresCluster {
    try sharedCluster.withLock { cluster in
      if let cluster { return cluster }
      let external = ProcessInfo.processInfo.environment["FERRY_TEST_POSTGRES"] ?? ""
      let new = try external.isEmpty ? PostgresCluster() : PostgresCluster(external: external)
      cluster = new
      return new
    }
  }

  /// Creates an empty database and returns the `postgres://` URL.
  package func createDatabase() throws -> String { try server.createDatabase() }

  /// The data directory; nil for an external server.
  package var directory: String? { privateServer?.directory }

  /// Starts the server after `stop`, on the same port. Returns when it takes connections.
  package func start() throws { try owned().start() }

  /// Stops the server; the data stays. Returns when it is down, and throws if it is not in time.
  package func stop(_ shutdown: Shutdown = .fast, within limit: Duration = .hangLimit) throws {
    try owned().stop(shutdown, within: limit)
  }

  package func restart(_ shutdown: Shutdown = .fast) throws {
    try stop(shutdown)
    try start()
  }

  /// Stops all processes of the server with SIGSTOP. The connections stay.
  package func freeze() throws { try owned().signal(SIGSTOP) }

  /// Continues the stopped processes.
  package func thaw() throws { try owned().signal(SIGCONT) }

  /// Returns the server's processes for connections to a database of `createDatabase`, found
  /// without asking the server (Linux only). Empty while it is down.
  package func backendProcessIDs(serving url: String) throws -> [Int32] {
    let database = URLComponents(string: url)?.path.dropFirst() ?? ""
    return try owned().children { $0.hasPrefix("postgres: ") && $0.contains(" \(database) ") }
  }

  /// Ends all connections to a database. Returns when their processes are gone.
  ///
  /// - Throws: a ``TestSupportError`` if there was none, or if one is still there after a minute.
  package static func disconnectAll(from database: String) throws {
    let rows = try PostgresConnection(url: database).query(
      .once(
        """
        SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND backend_type = 'client backend'
        """))
    guard try !rows.isEmpty && rows.allSatisfy({ try $0.bool(0) }) else {
      throw TestSupportError("there was no connection, or one is still there")
    }
  }

  private func owned() throws -> PrivateServer {
    guard let privateServer else {
      throw TestSupportError("the server of FERRY_TEST_POSTGRES is not ours to start or stop")
    }
    return privateServer
  }
}
