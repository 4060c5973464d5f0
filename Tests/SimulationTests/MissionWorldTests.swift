import FerryConformance
import FerrySimulation
import FerryTestSupport
import Foundation
import Testing

/// Missions in whole worlds: published, renewed and retracted by the product's server, and kept by
/// the product's managers, while everything goes wrong.
@Suite(.hangLimit)
struct MissionWorldTests {
  private static func options(_ profile: WorldOptions.Profile, missions: Int = 3) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 3, operations: 20, seconds: 60)
    options.missions = missions
    return options
  }

  @Test("a world with missions passes all oracles", arguments: WorldOptions.Profile.allCases, 1...2)
  func sound(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    let result = try await WorldThreads.world(seed, Self.options(profile))
    #expect(result.violations.isEmpty, "\(result.violations)")
    #expect(result.counts[.mission, default: 0] > 0)
  }

  @Test("missions are published, retracted, requested, fetched, and paused")
  func happens() async throws {
    var seen: Set<String> = []
    for seed in 1...6 as ClosedRange<UInt64> {
      let result = try await WorldThreads.world(seed, Self.options(.mobile), keepsEvents: true)
      for event in result.events where event.kind == .mission {
        for word in event.detail.split(whereSeparator: { " :".contains($0) }) {
          seen.insert(String(word))
        }
      }
    }
    for word in ["published", "retracted", "opened", "downloading", "paused", "done"] {
      #expect(seen.contains(word), "\(word)")
    }
  }

  @Test("a world with missions is the same twice", arguments: 1...3)
  func twice(_ seed: UInt64) async throws {
    let first = try await WorldThreads.world(seed, Self.options(.hostile))
    let second = try await WorldThreads.world(seed, Self.options(.hostile))
    #expect(first.traceHash == second.traceHash)
    #expect(first.steps == second.steps && first.virtualTime == second.virtualTime)
  }

  @Test("a world without missions has no mission events")
  func without() async throws {
    let options = Self.options(.mobile, missions: 0)
    #expect(WorldPlan(seed: 1, options: options).missions.isEmpty)
    let result = try await WorldThreads.world(1, options)
    #expect(result.counts[.mission] == nil)
  }

  @Test("a swarm draws missions for some of its worlds")
  func drawn() {
    let drawn = (1...60).map {
      WorldOptions.drawn(seed: $0, devices: 4, operations: 40).missions
    }
    #expect(drawn.contains(0) && drawn.contains { $0 > 0 })
  }

  @Test("a world leaves nothing on this machine")
  func cleaned() async throws {
    let options = Self.options(.calm)
    let (wasThere, folder) = try await WorldThreads.run {
      let world = try World(seed: 2, options: options)
      let folder = try #require(world.contentFolder)
      let wasThere = FileManager.default.fileExists(atPath: folder)
      _ = world.run()
      return (wasThere, folder)
    }
    #expect(wasThere && !FileManager.default.fileExists(atPath: folder))
  }
}
