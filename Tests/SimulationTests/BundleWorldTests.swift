import FerryConformance
import FerrySimulation
import FerryTestSupport
import Testing

/// Bundles in whole worlds: published for a share of the devices and withdrawn by the product's
/// server, and shown by the product's shells, while everything goes wrong.
@Suite(.hangLimit)
struct BundleWorldTests {
  private static func options(_ profile: WorldOptions.Profile, bundles: Int = 2) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 4, operations: 20, seconds: 60)
    options.bundles = bundles
    // Outcomes that a server lost are not reported again.
    options.serverRestores = 0
    return options
  }

  @Test("a world with bundles passes all oracles", arguments: WorldOptions.Profile.allCases, 1...2)
  func sound(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    let result = try await WorldThreads.world(seed, Self.options(profile))
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.counts[.bundle, default: 0] > 0)
  }

  @Test("versions are published, promoted, withdrawn, updated, confirmed, failed and named")
  func happens() async throws {
    var seen: Set<String> = []
    for seed in 1...6 as ClosedRange<UInt64> {
      let result = try await WorldThreads.world(seed, Self.options(.mobile), keepsEvents: true)
      for event in result.events where event.kind == .bundle {
        for word in event.detail.split(whereSeparator: { " :".contains($0) }) {
          seen.insert(String(word))
        }
      }
    }
    let words = [
      "published", "promote", "withdraw", "another", "works", "failed", "silent", "crashed", "user",
    ]
    for word in words { #expect(seen.contains(word), "\(word)") }
  }

  @Test("a world with bundles is the same twice", arguments: 1...3)
  func twice(_ seed: UInt64) async throws {
    let first = try await WorldThreads.world(seed, Self.options(.hostile))
    let second = try await WorldThreads.world(seed, Self.options(.hostile))
    #expect(first.traceHash == second.traceHash)
    #expect(first.steps == second.steps && first.virtualTime == second.virtualTime)
  }

  @Test("a world without bundles has no bundle events")
  func without() async throws {
    let options = Self.options(.mobile, bundles: 0)
    #expect(WorldPlan(seed: 1, options: options).bundles.isEmpty)
    let result = try await WorldThreads.world(1, options)
    #expect(result.counts[.bundle] == nil && result.counts[.mission] == nil)
  }

  @Test("a swarm draws bundles for some of its worlds")
  func drawn() {
    let drawn = (1...60).map {
      WorldOptions.drawn(seed: $0, devices: 4, operations: 40).bundles
    }
    #expect(drawn.contains(0) && drawn.contains { $0 > 0 })
  }
}
