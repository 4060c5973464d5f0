import FerryConformance
import FerryLaboratory
import FerryPostgres
import FerryProtocol
import FerrySQLite
import Foundation

/// The real processes of one round: two nodes on one database, and devices behind proxies. Or one
/// node, devices, and a company's program with a mirror.
final class ProcessWorld: Sendable {
  static let space = "chaos"

  let chronicle = Chronicle()
  let directory: TemporaryDirectory
  let cluster: PostgresCluster
  let database: String
  let nodes: [ServerNode]
  let devices: [CommandLineDevice]
  /// The program beside the devices, if the plan has one.
  let company: Company?
  /// The writes of the shop's users.
  let ledger = WriteLedger()
  /// The folder of an embedded store.
  private let store: URL?

  /// Makes everything without starting it. Blocks.
  init(_ plan: RoundPlan, on cluster: PostgresCluster) throws {
    self.cluster = cluster
    let (chronicle, database) = (chronicle, try cluster.createDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-chaos-run")
    let isEmbedded = plan.program?.store == .embedded
    let store = isEmbedded ? directory.file("server") : nil
    let nodes = try (1...plan.nodes).map { number in
      guard let store else { return try ServerNode(number, database: database, chronicle) }
      return try ServerNode(folder: store, chronicle)
    }
    company = try plan.program.map {
      try Company(
        $0, database: try cluster.createDatabase(), directory: directory.url, node: nodes[0].port,
        chronicle)
    }
    devices = try (0..<plan.devices).map { index in
      // Every third is not connected all the time.
      try CommandLineDevice(
        index + 1, index % 3 == 2 ? .now(every: .milliseconds(700)) : .watching,
        directory: directory.url, node: nodes[index % nodes.count].port, chronicle)
    }
    (self.database, self.directory, self.nodes, self.store) = (database, directory, nodes, store)
  }

  /// Waits for the nodes, and has the devices join the space.
  func setUp() async throws {
    for node in nodes { try await node.waitUntilListening(within: .seconds(60)) }
    if let company { return try await setUp(company) }
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

  /// Adopts the company's tables, and makes the devices join the space.
  private func setUp(_ company: Company) async throws {
    try await company.create()
    try await devices[0].join(Self.space)
    try await devices[0].applySchema(company.spaceRules)
    try await company.adopt(Self.space)
    for device in devices {
      if device !== devices[0] { try await device.join(Self.space) }
      try await device.createTables(DeviceFile.journalSchema)
    }
  }

  /// The programs beside the nodes.
  var supervisors: [Supervisor] {
    devices.map(\.supervisor) + (company.map { [$0.mirrorRuns, $0.program] } ?? [])
  }

  /// Returns the newest change of the space. Blocks.
  func head() throws -> SequenceNumber {
    if store != nil { return try serverEvidence().head }
    return try withDatabase { connection in
      let rows = try connection.query(
        .once("SELECT head FROM spaces WHERE id = (SELECT id FROM space_names WHERE name = $1)"),
        [.text(Self.space)])
      return try rows[0].int8(0)
    }
  }

  /// The databases affected by faults of PostgreSQL's processes.
  var databases: [String] {
    (store == nil ? [database] : []) + (company.map { [$0.database] } ?? [])
  }

  /// Looks at the database past all proxies. Blocks.
  func withDatabase<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
    try body(try PostgresConnection(url: database))
  }

  /// Returns all evidence of the server for the oracles. Blocks.
  func serverEvidence() throws -> ServerEvidence {
    guard let space = SpaceName(Self.space) else { throw ChaosError("the space's name is invalid") }
    if let store {
      let file = try SQLiteConnection(
        path: store.appending(path: "ferry.sqlite").path, mode: .readOnly)
      return try ServerEvidence.read(file, space: space)
    }
    return try withDatabase { try ServerEvidence.read($0, space: space) }
  }

  /// Endings of processes without a fault as the reason.
  var unexpectedEnds: [String] {
    (nodes.map(\.supervisor) + supervisors).flatMap(\.unexpectedEnds)
  }
}
