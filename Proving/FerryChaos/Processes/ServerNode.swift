import FerryLaboratory
import Foundation

/// One `ferryd` of several on one database, reached by its devices through their proxies, and
/// reaching PostgreSQL through one of its own.
final class ServerNode: Sendable {
  let port: UInt16
  let supervisor: Supervisor
  /// The proxy between the node and PostgreSQL.
  let databaseProxy: TCPProxy

  /// - Parameter database: The URL of the database itself.
  init(_ number: Int, database: String, _ chronicle: Chronicle) throws {
    guard var url = URLComponents(string: database), let target = url.port.flatMap(UInt16.init)
    else { throw ChaosError("\(database) names no port") }
    databaseProxy = try TCPProxy(to: target)
    url.port = Int(databaseProxy.port)
    port = try FreePort.next()
    supervisor = Supervisor(
      Supervisor.Program(
        name: "node-\(number)", executable: try Executables.ferryd(),
        arguments: [
          "serve", "--listen", "127.0.0.1:\(port)", "--database", url.string ?? database,
          "--start-wait", "120s",
        ]), chronicle)
  }

  /// Returns when the node listens, once it has been started.
  func waitUntilListening(within limit: Duration) async throws {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline {
      if let child = supervisor.child {
        _ = try await child.line(within: limit) { $0.contains("listening on http://") }
        return
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    throw ChaosError("\(supervisor.program.name) was not started")
  }
}

/// Why a round could not be run, or its evidence not be read.
struct ChaosError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
