import FerryConformance
import FerryPostgres
import FerrySimulation
import FerryTestSupport
import Testing

/// Mirrors in whole worlds: the product's rounds over tables of a real PostgreSQL, where programs write, while
/// everything goes wrong around them.
@Suite(.hangLimit)
struct MirrorWorldTests {
  private static func options(_ profile: WorldOptions.Profile) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 4, operations: 120, seconds: 60)
    (options.spaces, options.mirrors) = (1, 2)
    return options
  }

  @Test("a world with mirrors passes all oracles", arguments: WorldOptions.Profile.allCases, 1...2)
  func sound(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    try await WorldThreads.expectSound(seed, Self.options(profile), with: .mirrored)
  }

  @Test("a world with mirrors is the same twice")
  func twice() async throws {
    try await WorldThreads.expectTwice(3, Self.options(.hostile))
  }

  @Test(
    "a mirror's planted mistake is found",
    arguments: PlantedMirrorFault.allCases.filter { !$0.needsRules })
  func planted(_ mistake: PlantedMirrorFault) async throws {
    for seed in 1...8 as ClosedRange<UInt64> {
      let result = try await WorldThreads.world(seed, Self.options(.mobile)) { database in
        let connection = try PostgresConnection(url: database)
        let isReady = try connection.query(
          .once(
            """
            SELECT count(*) FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
            WHERE t.relname = 'notes' AND to_regproc('planted') IS NULL
            """))
        if try isReady[0].int8(0) == 2 { try connection.execute(mistake.statements) }
      }
      if result.violations.contains(where: { $0.oracle == MirrorSides.name }) { return }
    }
    Issue.record("no oracle found \(mistake)")
  }
}
