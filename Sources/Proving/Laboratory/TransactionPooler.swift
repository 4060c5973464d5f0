import FerryPostgres
import Foundation

/// A real pgbouncer: each transaction gets another session of a PostgreSQL server.
package final class TransactionPooler: Sendable {
  private static let pgbouncer = "/usr/sbin/pgbouncer"
  package static var isAvailable: Bool {
    FileManager.default.isExecutableFile(atPath: pgbouncer)
  }

  private let directory: TemporaryDirectory
  private let process: ChildProcess
  private let port: UInt16

  /// Starts a pooler for all databases of the server of `database`.
  ///
  /// - Parameter sessions: Sessions of each database, shared by all connections.
  package init(before database: String, sessions: Int = 2) async throws {
    guard let server = URLComponents(string: database), let host = server.host,
      let serverPort = server.port
    else { throw TestSupportError("\(database) names no host and port") }
    directory = try TemporaryDirectory(prefix: "ferry-pgbouncer")
    port = try FreePort.next()
    let password = server.password.map { " password=\($0)" } ?? ""
    let text = """
      [databases]
      * = host=\(host) port=\(serverPort) user=\(server.user ?? "postgres")\(password)
      [pgbouncer]
      listen_addr = 127.0.0.1
      listen_port = \(port)
      unix_socket_dir =
      auth_type = any
      pool_mode = transaction
      default_pool_size = \(sessions)
      max_client_conn = 400
      server_round_robin = 1

      """
    let file = directory.file("pgbouncer.ini")
    try Data(text.utf8).write(to: file)
    // pgbouncer refuses to run as root.
    let user = try PostgresInstallation.find().user
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: directory.url.path)
    let command = user.map { user in
      [
        "/usr/bin/setpriv", "--reuid", user.name, "--regid", "\(user.group)", "--init-groups",
        "--", Self.pgbouncer, file.path,
      ]
    }
    let arguments = command ?? [Self.pgbouncer, file.path]
    process = try ChildProcess(URL(filePath: arguments[0]), Array(arguments.dropFirst()))
    _ = try await process.line { $0.contains("process up") }
  }

  /// Returns a database's address behind the pooler.
  package func url(of database: String) -> String {
    guard var address = URLComponents(string: database) else { return database }
    (address.host, address.port) = ("127.0.0.1", Int(port))
    return address.string ?? database
  }
}
