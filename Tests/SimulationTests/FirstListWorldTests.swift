import FerryConformance
import FerrySimulation
import FerryTestSupport
import Testing

/// Worlds whose devices fill in their first lists beside their tables.
@Suite(.hangLimit)
struct FirstListWorldTests {
  private static func options(_ profile: WorldOptions.Profile = .calm) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 2, operations: 50, seconds: 25)
    // A table created again could have the place of a former copy.
    (options.latecomers, options.migrations, options.serverRestores) = (3, 0, 0)
    return options
  }

  @Test("devices that come late exchange the tables of their first lists")
  func exchanged() async throws {
    for seed in [1, 2] as [UInt64] {
      let result = try await WorldThreads.world(seed, Self.options(), keepsEvents: true)
      #expect(result.violations.isEmpty, "\(result.violations)")
      #expect(result.counts[.filled, default: 0] > 3)
      // The last one comes when the others have written.
      let exchanges = result.events.filter { $0.kind == .exchanged }
      #expect(exchanges.count > 1 && exchanges.contains { $0.actor == "device-04" })
    }
  }

  @Test("devices whose processes die between the slices of a first list get all of it")
  func killed() async throws {
    var (killed, exchanged) = (0, 0)
    for seed in [1, 2] as [UInt64] {
      var options = Self.options()
      options.fillCrash = 100_000
      let result = try await WorldThreads.world(seed, options)
      #expect(result.violations.isEmpty, "\(result.violations)")
      killed += result.happened.count { $0.kind == .fillCrash }
      exchanged += result.counts[.exchanged, default: 0]
    }
    #expect(killed > 0 && exchanged > 0)
  }

  @Test("first lists, with all faults, have one run for one seed")
  func repeatable() async throws {
    try await WorldThreads.expectTwice(4, Self.options(.hostile))
  }

  @Test("the swarm draws worlds with and without devices that come late")
  func drawn() {
    let late = (1...60).count { seed in
      WorldOptions.drawn(seed: seed, devices: 5, operations: 200).latecomers > 0
    }
    #expect((10...30).contains(late))
  }
}
