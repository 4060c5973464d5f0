import Foundation

/// Two nodes on one database.
struct NodePair: Sendable {
  let daemons: [Daemon]
  let clients: [LoadClient]
  let ports: [UInt16]

  /// - Parameter connections: The largest number of connections of each node; all may be streams.
  static func start(database: String, connections: Int) async throws -> NodePair {
    var daemons: [Daemon] = []
    for _ in 0..<2 {
      daemons.append(
        try await Daemon.start(
          database: database,
          arguments: ["--connections", "\(connections)", "--streams", "\(connections)"]))
    }
    return try NodePair(daemons)
  }

  private init(_ daemons: [Daemon]) throws {
    self.daemons = daemons
    clients = daemons.map { LoadClient($0) }
    ports = try daemons.map { daemon in
      guard let port = daemon.url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
        throw BenchError("no port in \(daemon.url)")
      }
      return port
    }
  }

  func figures() throws -> [ProcessFigures] {
    try daemons.map { try ProcessFigures.read($0.processID) }
  }

  func stop() async throws { for daemon in daemons { try await daemon.stop() } }
}
