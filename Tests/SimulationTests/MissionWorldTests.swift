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
    try await WorldThreads.expectSound(seed, Self.options(profile), with: .mission)
  }

  @Test("missions are published, retracted, requested, fetched, and paused")
  func happens() async throws {
    let seen = try await WorldThreads.words(of: .mission, Self.options(.mobile))
    for word in ["published", "retracted", "opened", "downloading", "paused", "done"] {
      #expect(seen.contains(word), "\(word)")
    }
  }

  @Test("a world with missions is the same twice", arguments: 1...2)
  func twice(_ seed: UInt64) async throws {
    try await WorldThreads.expectTwice(seed, Self.options(.hostile))
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
