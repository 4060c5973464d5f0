import FerryConformance
import FerryLaboratory
import FerryPostgres
import FerryProtocol
import Foundation

/// The real processes of one round: two nodes on one database, and devices behind proxies.
final class ProcessWorld: Sendable {
  static let space = "chaos"

  let chronicle = Chronicle()
  let directory: TemporaryDirectory
  let cluster: PostgresCluster
  let database: String
  let nodes: [ServerNode]
  let devices: [CommandLineDevice]

  /// Makes all that does not run yet. Blocks.
  init(_ plan: RoundPlan, on cluster: PostgresCluster) throws {
    self.cluster = cluster
    let (chronicle, database) = (chronicle, try cluster.createDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-chaos-run")
    let nodes = try (1...RoundPlan.nodes).map {
      try ServerNode($0, database: database, chronicle)
    }
    devices = try (0..<plan.devices).map { index in
      // Every third is not connected all the time.
      try CommandLineDevice(
        index + 1, index % 3 == 2 ? .now(every: .milliseconds(700)) : .watching,
        directory: directory.url, node: nodes[index % nodes.count].port, chronicle)
    }
    (self.database, self.directory, self.nodes) = (database, directory, nodes)
  }

  /// Waits for the nodes, and has the devices join the space.
  func setUp() async throws {
    for node in nodes { try await node.waitUntilListening(within: .seconds(60)) }
    // A few at a time: each takes a processor.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, device) in devices.enumerated() {
        if index >= 4 { try await group.next() }
        group.addTask {
          try await device.setUp(
            space: Self.space, schema: Application.schema, tables: Workload.tables.map(\.text))
        }
      }
      try await group.waitForAll()
    }
    let schema = directory.file("schema.json")
    try Data(Workload.declared.utf8).write(to: schema)
    try await devices[0].applySchema(schema)
  }

  /// Looks at the database past all proxies. Blocks.
  func withDatabase<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
    try body(try PostgresConnection(url: database))
  }

  /// Returns all evidence of the server for the oracles. Blocks.
  func serverEvidence() throws -> ServerEvidence {
    guard let space = SpaceName(Self.space) else { throw ChaosError("the space's name is invalid") }
    return try withDatabase { try ServerEvidence.read($0, space: space) }
  }

  /// Endings of processes that no fault brought about.
  var unexpectedEnds: [String] {
    (nodes.map(\.supervisor) + devices.map(\.supervisor)).flatMap(\.unexpectedEnds)
  }
}
