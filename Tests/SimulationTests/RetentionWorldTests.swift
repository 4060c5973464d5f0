import FerryConformance
import FerrySimulation
import FerryTestSupport
import Testing

/// Worlds whose server prunes.
@Suite(.hangLimit)
struct RetentionWorldTests {
  private static func options(_ profile: WorldOptions.Profile = .calm) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 4, operations: 120, seconds: 60)
    (options.retention, options.pruneEvery, options.watchers) = (2, 1, 0)
    (options.serverRestores, options.syncPause) = (0, 6_000)
    return options
  }

  @Test("devices that return too late pull from scratch, and lose none of their writes")
  func expired() async throws {
    var (pruned, expired) = (0, 0)
    for seed in 1...4 as ClosedRange<UInt64> {
      let result = try await WorldThreads.world(seed, Self.options(), keepsEvents: true)
      #expect(result.violations.isEmpty, "\(result.violations)")
      pruned += result.counts[.pruned, default: 0]
      expired += result.events.count {
        $0.kind == .refused && $0.detail.hasSuffix("cursor_expired")
      }
    }
    #expect(pruned > 20 && expired > 20)
  }

  @Test("a server that prunes, with all faults, has one run for one seed")
  func hostile() async throws {
    let options = Self.options(.hostile)
    let first = try await WorldThreads.world(9, options)
    #expect(first.violations.isEmpty, "\(first.violations)")
    #expect(first.counts[.pruned, default: 0] > 0)
    #expect(first.traceHash == (try await WorldThreads.world(9, options).traceHash))
  }

  @Test("the swarm draws worlds with and without a server that prunes")
  func drawn() {
    let forgetful = (1...60).count { seed in
      WorldOptions.drawn(seed: seed, devices: 5, operations: 200).retention > 0
    }
    #expect((10...30).contains(forgetful))
  }
}
