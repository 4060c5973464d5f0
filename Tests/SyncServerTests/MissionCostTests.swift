import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The work of publishing: the same for any number of retracted missions.
@Suite("The cost of missions", .hangLimit)
struct MissionCostTests {
  private static let now: Int64 = 1_800_000_000_000

  private func hash(_ number: Int) -> ContentHash { ContentHash(of: Array("\(number)".utf8)) }

  private func publish(_ number: Int, in space: SpaceSummary, _ file: SQLiteStoreFile) throws {
    let id = try #require(MissionID("tour\(number)"))
    let item = MissionItem(path: "index.html", size: 5, hash: hash(number))
    let document = MissionManifest(
      space: space.name, id: id, version: 1, title: "A tour", items: [item])
    let record = MissionRecord(
      of: document, hash: hash(number), manifestSize: 77,
      signature: [UInt8](repeating: 3, count: 64), signer: [UInt8](repeating: 4, count: 32),
      publishedAt: Self.now)
    _ = try file.change(space.id, now: Self.now, random: UInt64(number)) {
      try $0.publish(record, [MissionBlob(hash: hash(number), size: 5)], by: nil)
    }.get()
  }

  /// Returns the work of SQLite in `body`, in thousands of instructions.
  private func work(_ file: SQLiteStoreFile, _ body: () throws -> Void) throws -> Int {
    var count = 0
    let due: () -> (any Error)? = {
      count += 1
      return nil
    }
    try file.connection.interrupting(when: due, body)
    return count
  }

  @Test("publishing costs the same beside 1,000 retracted missions as beside 20")
  func embedded() throws {
    let directory = try TemporaryDirectory()
    let file = try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard)
    let space = try file.createSpace(try #require(SpaceName("notes")), epoch: Epoch(7))
    var costs: [Int] = []
    for (round, missions) in [0..<20, 20..<1_020].enumerated() {
      for number in missions {
        try publish(number, in: space, file)
        let id = try #require(MissionID("tour\(number)"))
        let isRetracted = try file.change(
          space.id, now: Self.now, random: UInt64(number) + 10_000
        ) { try $0.retract(id, by: nil) }
        #expect(isRetracted)
      }
      costs.append(
        try work(file) {
          for number in 0..<20 { try publish(2_000 + 20 * round + number, in: space, file) }
        })
    }
    // Twenty times 1,000 records would be more than twenty thousand instructions.
    #expect(costs[1] <= costs[0] + 10, "\(costs)")
  }

  @Test("PostgreSQL counts and lists the missions in force by an index of just these")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await (try await PostgresStore(url: url)).close()
    let connection = try PostgresConnection(url: url)
    for setting in ["enable_seqscan", "enable_bitmapscan"] {
      try connection.execute("SET \(setting) = off")
    }
    try connection.execute("SET plan_cache_mode = force_generic_plan")
    let plans: [(PlainStatement, String)] = [
      (MissionQueries.count, "1, 1"), (MissionQueries.sizes, "1, '', 1"),
      (MissionQueries.list, "1, '', ''"),
    ]
    for (statement, values) in plans {
      try connection.execute("PREPARE plan AS \(statement.sql)")
      let lines = try connection.query(.once("EXPLAIN EXECUTE plan(\(values))")).map {
        try $0.text(0)
      }
      try connection.execute("DEALLOCATE plan")
      let plan = lines.joined(separator: "\n")
      #expect(plan.contains("using records_missions on"), "\(plan)")
      #expect(!plan.contains("Sort") && !plan.contains("Filter"), "\(plan)")
    }
  }
}
