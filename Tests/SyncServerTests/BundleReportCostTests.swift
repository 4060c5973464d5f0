import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The work of reports about bundles, and of the overview: the same for any number of devices.
@Suite("The cost of reports about bundles", .hangLimit)
struct BundleReportCostTests {
  private static let now: Int64 = 1_800_000_000_000
  private let bundle: BundleID
  private let manifest: ContentHash

  init() throws {
    bundle = BundleID(try #require(BundleName("board")), try #require(BundleVersion("1")))
    manifest = try #require(ContentHash([UInt8](repeating: 1, count: 32)))
  }

  private func publish(in file: SQLiteStoreFile) throws -> Int64 {
    let space = try file.createSpace(try #require(SpaceName("notes")), epoch: Epoch(7))
    let item = MissionItem(path: "index.html", size: 5, hash: manifest)
    let document = MissionManifest(
      space: space.name, id: bundle.mission, version: 1, title: "Board", items: [item],
      bundle: BundleDeclaration(bundle))
    let record = MissionRecord(
      of: document, hash: manifest, manifestSize: 77,
      signature: [UInt8](repeating: 3, count: 64), signer: [UInt8](repeating: 4, count: 32),
      publishedAt: Self.now)
    _ = try file.change(space.id, now: Self.now, random: 1) {
      try $0.publish(record, [], by: nil)
    }.get()
    return space.id
  }

  private func report(_ devices: Range<UInt64>, in space: Int64, _ file: SQLiteStoreFile) throws {
    let reports = BundleReports(space: space)
    try file.connection.transaction {
      for number in devices {
        let report = BundleReport(
          bundle, manifest, .failure(BundleReason(bounding: "blank")), number: 1)
        let kept = try reports.store(
          [report], of: DeviceID(UniqueID(high: 1, low: number)), owner: nil,
          now: Self.now + Int64(number), by: .anonymous, quota: 10_000, on: file)
        #expect(try kept.get() == 1)
      }
    }
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

  @Test("a new device's report, and the overview, cost the same among 2,000 devices as among 20")
  func embedded() throws {
    let directory = try TemporaryDirectory()
    let file = try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard)
    let space = try publish(in: file)
    var costs: [[Int]] = []
    for devices in [0, 2_000] as [UInt64] {
      try report(20..<devices + 20, in: space, file)
      let reporting = try work(file) { try report(devices + 20..<devices + 40, in: space, file) }
      let reading = try work(file) {
        for _ in 0..<20 {
          let tally = try BundleReports(space: space).tally(of: bundle, latest: 20, on: file)
          #expect(tally.failures == Int64(devices) + 20)
          #expect(tally.latest.count == 20)
          #expect(tally.latest.first?.device.value.low == devices + 39)
        }
      }
      costs.append([reporting, reading])
    }
    // Twenty times 2,000 rows would be more than forty thousand instructions.
    #expect(costs[1][0] <= costs[0][0] + 10 && costs[1][1] <= costs[0][1] + 10, "\(costs)")
  }

  @Test("PostgreSQL looks up each report and count by its key, and sorts no failures")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await (try await PostgresStore(url: url)).close()
    let connection = try PostgresConnection(url: url)
    for setting in ["enable_seqscan", "enable_bitmapscan"] {
      try connection.execute("SET \(setting) = off")
    }
    let plans: [(PlainStatement, String, keys: [String])] = [
      (BundleReports.former, "bundle_reports_pkey", ["space", "mission", "device"]),
      (BundleReports.counted, "bundle_counts_pkey", ["space", "mission", "account"]),
      (BundleReports.latest, "bundle_reports_failed", ["space", "mission"]),
    ]
    for (statement, index, keys) in plans {
      try connection.execute("PREPARE plan AS \(statement.sql)")
      try connection.execute("SET plan_cache_mode = force_generic_plan")
      let lines = try connection.query(.once("EXPLAIN EXECUTE plan(1, '1', '1')")).map {
        try $0.text(0)
      }
      try connection.execute("DEALLOCATE plan")
      let plan = lines.joined(separator: "\n")
      #expect(plan.contains("using \(index) on"), "\(plan)")
      #expect(!plan.contains("Sort") && !plan.contains("Filter"), "\(plan)")
      let condition = try #require(lines.first { $0.contains("Index Cond:") })
      for key in keys { #expect(condition.contains("(\(key) = "), "\(plan)") }
    }
  }
}
