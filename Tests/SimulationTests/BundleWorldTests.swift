import FerryConformance
import FerrySimulation
import FerryTestSupport
import Testing

/// Bundles in whole worlds, while everything goes wrong. The product's server publishes them for a
/// share of the devices, and withdraws them. The product's shells show them.
@Suite(.hangLimit)
struct BundleWorldTests {
  private static func options(_ profile: WorldOptions.Profile, bundles: Int = 2) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 4, operations: 20, seconds: 60)
    options.bundles = bundles
    // Outcomes lost by a server are not reported again.
    options.serverRestores = 0
    return options
  }

  @Test("a world with bundles passes all oracles", arguments: WorldOptions.Profile.allCases, 1...2)
  func sound(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    try await WorldThreads.expectSound(seed, Self.options(profile), with: .bundle)
  }

  @Test("versions are published, promoted, withdrawn, updated, confirmed, failed and named")
  func happens() async throws {
    let seen = try await WorldThreads.words(of: .bundle, Self.options(.mobile))
    let words = [
      "published", "promote", "withdraw", "another", "works", "failed", "silent", "crashed", "user",
    ]
    for word in words { #expect(seen.contains(word), "\(word)") }
  }

  @Test("a world with bundles is the same twice", arguments: 1...2)
  func twice(_ seed: UInt64) async throws {
    try await WorldThreads.expectTwice(seed, Self.options(.hostile))
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
