import FerryLaboratory
import Foundation

/// One `ferryd`, reached by devices through their proxies. One of several on one database reaches
/// PostgreSQL through a separate proxy.
final class ServerNode: Sendable {
  let port: UInt16
  let supervisor: Supervisor
  /// The proxy between the node and PostgreSQL; `nil` with an embedded store.
  let databaseProxy: TCPProxy?

  /// - Parameter database: The URL of the database itself.
  init(_ number: Int, database: String, _ chronicle: Chronicle) throws {
    guard var url = URLComponents(string: database), let target = url.port.flatMap(UInt16.init)
    else { throw ChaosError("\(database) names no port") }
    let proxy = try TCPProxy(to: target)
    url.port = Int(proxy.port)
    databaseProxy = proxy
    port = try FreePort.next()
    supervisor = try Self.supervisor(
      number, port, ["--database", url.string ?? database, "--start-wait", "120s"], chronicle)
  }

  /// Creates a server with an embedded store.
  init(folder: URL, _ chronicle: Chronicle) throws {
    databaseProxy = nil
    port = try FreePort.next()
    supervisor = try Self.supervisor(1, port, ["--data", folder.path], chronicle)
  }

  private static func supervisor(
    _ number: Int, _ port: UInt16, _ store: [String], _ chronicle: Chronicle
  ) throws -> Supervisor {
    Supervisor(
      Supervisor.Program(
        name: "node-\(number)", executable: try Executables.ferryd(),
        arguments: ["serve", "--listen", "127.0.0.1:\(port)"] + store), chronicle)
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

/// The reason why a round could not be run, or the evidence not be read.
struct ChaosError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
