import FerryConformance
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The actions of the simulated users.
@Suite(.hangLimit)
struct WorkloadTests {
  private func plan(_ seed: UInt64) -> [PlannedAction] {
    Workload.plan(seed: seed, devices: 5, operations: 2_000, duration: 30_000)
  }

  @Test("a plan is the same for the same seed, sorted, and within its bounds")
  func planning() {
    let plan = plan(42)
    #expect(plan == self.plan(42))
    #expect(plan != self.plan(43))
    #expect(plan.count == 2_000)
    #expect(plan.map(\.ordinal) == Array(0..<2_000))
    #expect(zip(plan, plan.dropFirst()).allSatisfy { $0.at <= $1.at })
    #expect(plan.allSatisfy { (0..<30_000).contains($0.at) && (0..<5).contains($0.device) })
    #expect(Set(plan.map(\.device)).count == 5)
  }

  /// Rows of two spaces need a file with two, some actions tables of their own, and answers a
  /// conflict.
  private static let special: [UserAction] = [
    .share, .stray, .branch, .odd, .stack, .answer, .order,
  ]

  @Test("every action occurs; edits of notes most often, large posts seldom")
  func mix() {
    let counts = Dictionary(grouping: plan(1), by: \.action).mapValues(\.count)
    #expect(Set(counts.keys) == Set(UserAction.allCases).subtracting(Self.special))
    #expect(counts.max { $0.value < $1.value }?.key == .editNote)
    #expect(counts.min { $0.value < $1.value }?.key == .postLarge)
  }

  @Test(
    "every statement runs on a tracked replica at every level, and all actions record something")
  func running() throws {
    let world = try DirectWorld(seed: 1, devices: 1)
    let device = world.devices[0]
    try world.sync(device)
    var recorded: [UserAction: Int] = [:]
    for (index, planned) in plan(7).enumerated() {
      if index % 500 == 499 { try device.upgrade() }
      recorded[planned.action, default: 0] += try device.perform(
        planned, sizes: Workload.Sizes()
      ).count
    }
    #expect(device.level == DirectDevice.upgrades.count)
    for action in UserAction.allCases where !Self.special.contains(action) {
      #expect(recorded[action] ?? 0 > 0, "\(action)")
    }
    let evidence = try device.evidence()
    #expect(evidence.rows.tables.map(\.name) == Workload.tables.sorted())
    #expect(evidence.rows["notes"]?.columns == ["title", "body", "stars", "tag", "extra"])
    let notes = try #require(evidence.rows["notes"])
    for column: Name in ["tag", "extra", "body"] {
      #expect(notes.records.contains { notes[$0, column] != .null }, "\(column)")
    }
    let items = try #require(evidence.rows["items"])
    #expect(items.records.contains { items[$0, "weight"] != .null })
    #expect(OracleBench.found([.read(device: "device-0", evidence)]) == [])
  }

  @Test("the same replica, level and action give the same statements; another seed gives others")
  func deterministic() throws {
    let rows: [[Value]] = [["n1"], ["n2"], ["n3"]]
    func statements(_ action: UserAction, _ seed: UInt64, level: Int = 0) -> [String] {
      let planned = PlannedAction(ordinal: 0, at: 0, device: 0, action: action, seed: seed)
      return Workload.statements(
        for: planned, deviceName: "d'1", level: level, spaces: ["a", "b"]
      ) { _ in rows }
    }
    for action in UserAction.allCases {
      #expect(statements(action, 5) == statements(action, 5))
      let isFixed = [.beat, .batch, .answer].contains(action)
      #expect(isFixed || statements(action, 5) != statements(action, 6), "\(action)")
    }
    func batch(_ action: UserAction, _ seed: UInt64) -> Workload.BatchUpdate? {
      Workload.batch(
        for: PlannedAction(ordinal: 0, at: 0, device: 0, action: action, seed: seed))
    }
    #expect(batch(.batch, 5) == batch(.batch, 5) && batch(.batch, 5) != batch(.batch, 6))
    #expect(UserAction.allCases.filter { batch($0, 5) != nil } == [.batch])
    #expect(statements(.beat, 1)[0].contains("'d''1'"))
    let columns = (0..<40).flatMap { statements(.editNote, $0, level: 0) }.joined()
    #expect(!columns.contains("tag =") && !columns.contains("extra ="))
    #expect((0..<40).contains { statements(.editNote, $0, level: 3)[0].contains("extra =") })
  }

  @Test("an action without a target does nothing")
  func nothing() {
    for action: UserAction in [
      .editNote, .deleteNote, .addItem, .tickItem, .deleteList, .editMany,
    ] {
      let planned = PlannedAction(ordinal: 0, at: 0, device: 0, action: action, seed: 3)
      #expect(Workload.statements(for: planned, deviceName: "one", level: 0) { _ in [] } == [])
    }
  }

  @Test("posts have the requested sizes, and large ones exceed a packet")
  func posts() throws {
    let device = try DirectDevice("device-0", limits: .standard, clock: DirectClock(seed: 1))
    func post(_ action: UserAction, _ seed: UInt64) throws -> [LocalOperation] {
      try device.perform(
        PlannedAction(ordinal: 0, at: 0, device: 0, action: action, seed: seed),
        sizes: Workload.Sizes())
    }
    for seed in 0..<20 { #expect((2...5).contains(try post(.post, UInt64(seed)).count)) }
    #expect(try post(.postLarge, 1).count > Limits.standard.operationsPerPacket)
    #expect(OracleBench.found([.read(device: "device-0", try device.evidence())]) == [])
  }

  @Test("literals yield their values in their storage classes")
  func literals() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    let values: [Value] = [
      .null, .integer(.min), .integer(.max), .integer(9_007_199_254_740_993), .real(0.1),
      .real(1.0), .real(1e300), .real(-1e16), .real(.infinity), .real(-.infinity), .text(""),
      .text("it's"), .text("a\u{0}b\n😀"), .text("e\u{301}"), .blob([]), .blob([0, 15, 255]),
    ]
    for value in values {
      let found = try connection.prepare("SELECT \(value.sqlLiteral)").first { $0.value(0) }
      #expect(found == value, "\(value.sqlLiteral)")
    }
  }
}

extension OracleBench {
  static func found(_ events: [RunEvent]) -> [String] {
    var bench = OracleBench()
    return events.flatMap { bench.see($0) }.map(\.description)
  }
}
