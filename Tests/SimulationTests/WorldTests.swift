import FerryConformance
import FerrySimulation
import FerryTestSupport
import Testing

/// Whole worlds: sound ones pass, and each option has an effect.
@Suite(.hangLimit)
struct WorldTests {
  @Test("a world passes all oracles", arguments: WorldOptions.Profile.allCases, [1, 2])
  func sound(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    let result = try await WorldThreads.world(
      seed, .small(profile, devices: 4, operations: 60, seconds: 60))
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.committed > 0)
    #expect(result.counts[.synced, default: 0] > 0)
    #expect(result.counts[.applied, default: 0] > 0)
  }

  @Test(
    "strange values, broken chains and hostile members end no device's syncs",
    arguments: [3, 4, 5] as [UInt64])
  func strangers(_ seed: UInt64) async throws {
    var options = WorldOptions.small(.calm, devices: 4, operations: 100, seconds: 60)
    (options.strays, options.strangers) = (200, 2)
    let result = try await WorldThreads.world(seed, options)
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.counts[.applied, default: 0] > 0)
  }

  @Test(
    "answers to conflicts keep the chosen side, bring records back whole and end questions",
    arguments: [1, 2, 3, 4] as [UInt64])
  func answers(_ seed: UInt64) async throws {
    var options = WorldOptions.small(.calm, devices: 3, operations: 200, seconds: 60)
    (options.answers, options.drafts) = (200, 500)
    let result = try await WorldThreads.world(seed, options)
    #expect(result.violations.isEmpty, "\(result.violations)")
  }

  @Test(
    "whatever a hostile server answers, the honest server gets all work and the devices agree",
    arguments: 1...6 as ClosedRange<UInt64>)
  func lies(_ seed: UInt64) async throws {
    var options = WorldOptions.small(.calm, devices: 4, operations: 100, seconds: 60)
    options.setLies(10)
    (options.strays, options.strangers) = seed.isMultiple(of: 2) ? (100, 1) : (0, 0)
    let result = try await WorldThreads.world(seed, options)
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.counts[.corrupted, default: 0] > 0)
  }

  @Test("the device that defines tables publishes them again if a restored server has lost them")
  func published() async throws {
    var options = WorldOptions.small(.calm, devices: 3, operations: 20, seconds: 10)
    (options.odd, options.serverRestores, options.upgrades, options.shares) = (300, 4, 0, 0)
    let result = try await WorldThreads.world(2, options)
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.counts[.copied, default: 0] > 0)
  }

  @Test("a calm world has no failure")
  func calm() async throws {
    let result = try await WorldThreads.world(5, .small(.calm))
    #expect(result.happened.isEmpty)
    #expect(result.plannedFaults.allSatisfy { $0.kind == .upgrade })
    let troubles: [TraceEvent.Kind] = [
      .dropped, .duplicated, .delayed, .corrupted, .stalled, .partitioned, .crashed, .lostPower,
      .copied, .clockMoved, .diskFull, .syncFailure, .tornWrite, .diskFailed, .syncFailed,
    ]
    for kind in troubles { #expect(result.counts[kind] == nil, "\(kind)") }
  }

  /// A value of an option that has an effect in a small world, and the event that shows it.
  private static let effects: [String: (value: Int, kind: TraceEvent.Kind)] = [
    "drop": (100_000, .dropped), "duplicate": (200_000, .duplicated),
    "corrupt": (100_000, .corrupted), "stall": (100_000, .dropped), "slow": (100_000, .delayed),
    "reset": (100_000, .dropped), "disk-full": (2_000, .diskFull),
    "sync-failure": (5_000, .syncFailure), "disk-failure": (2_000, .diskFailed),
    "torn-write": (1_000, .tornWrite), "partitions": (4, .partitioned),
    "one-way-partitions": (4, .partitioned), "device-crashes": (3, .crashed),
    "device-power-losses": (3, .lostPower), "server-crashes": (3, .crashed),
    "server-power-losses": (3, .lostPower), "clock-jumps": (3, .clockMoved),
    "copies": (2, .copied), "restores": (2, .copied), "absences": (2, .crashed),
    "crash": (2_000, .crashed), "server-restores": (1, .copied),
    "batch-copies": (2, .copied), "node-clock-jumps": (3, .clockMoved),
    "migrations": (6, .migrated), "attachments": (6, .attached),
    "latecomers": (2, .exchanged), "fill-crash": (200_000, .crashed),
  ]

  @Test(
    "every fault that can be requested occurs, and does no harm alone",
    arguments: WorldOptions.Field.all.filter(\.isFault).map(\.name))
  func happens(_ name: String) async throws {
    let field = try #require(WorldOptions.Field.all.first { $0.name == name })
    let effect = try #require(Self.effects[name], "say here what the option does")
    var (seen, counted) = (0, 0)
    for seed in 1...3 as ClosedRange<UInt64> {
      var options = WorldOptions.small(.calm)
      // Only devices that come late have a first list to fill in.
      if name == "fill-crash" { options.latecomers = 2 }
      field.set(&options, effect.value)
      let result = try await WorldThreads.world(seed, options)
      seen += result.counts[effect.kind, default: 0]
      // A restored server has lost acknowledged operations: the loss is no fault to get over.
      if name != "server-restores" {
        #expect(result.violations.isEmpty, "\(result.violations)")
      }
      counted += result.faultCounts.reduce(0) { $0 + ($1.name == "upgrade" ? 0 : $1.count) }
    }
    #expect(seen > 0 && counted > 0)
  }

  @Test("every random fault has an option, and every option a value in the hostile profile")
  func options() {
    let hostile = WorldOptions(.hostile)
    #expect(hostile.ratios.count == ChanceFault.allCases.count)
    for field in WorldOptions.Field.all where field.isFault {
      // A server is restored only on request.
      let isOnRequest = field.name == "server-restores"
      #expect(field.get(hostile) > 0 || isOnRequest, "\(field.name)")
      #expect(field.get(WorldOptions(.calm)) == 0, "\(field.name)")
      var options = WorldOptions()
      field.set(&options, 12_345)
      #expect(field.get(options) == 12_345 && options != WorldOptions())
    }
    #expect(Set(WorldOptions.Field.all.map(\.name)).count == WorldOptions.Field.all.count)
  }

  @Test("a world that does not drain in time is reported with its remaining work")
  func liveness() async throws {
    var options = WorldOptions.small(.calm)
    (options.livenessSeconds, options.syncPause, options.watchers) = (1, 60_000, 0)
    let result = try await WorldThreads.world(1, options)
    let violation = try #require(result.violations.first)
    #expect(violation.oracle == "liveness")
    #expect(violation.detail.contains("after 1 s without faults: device-00: "))
    #expect(result.counts[.violation] == 1)
  }

  @Test("a world in an endless loop is reported")
  func circles() async throws {
    let result = try await WorldThreads.run {
      try World(seed: 1, options: .small(.calm), stepsMax: 500).run()
    }
    #expect(result.violations.map(\.oracle) == ["liveness"])
    #expect(result.violations.first?.detail.contains("500 steps") == true)
  }

  @Test("a copied file continues as a separate device")
  func copies() async throws {
    var options = WorldOptions.small(.calm)
    options.copies = 2
    let result = try await WorldThreads.world(2, options)
    #expect(
      result.actors == ["device-00", "device-01", "device-02", "device-03", "device-04", "server"])
  }

  @Test("coarse clocks result in writes of the same time")
  func coarseClocks() async throws {
    var options = WorldOptions.small(.calm, operations: 80)
    options.clockStep = 60_000
    let coarse = try await WorldThreads.world(1, options)
    options.clockStep = 1
    #expect(coarse.violations.isEmpty)
    #expect(coarse.traceHash != (try await WorldThreads.world(1, options).traceHash))
  }
}
