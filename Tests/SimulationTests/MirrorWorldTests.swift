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

  /// Companies whose tables refuse and change rows, with more devices that write such rows.
  private static func withRules(_ profile: WorldOptions.Profile) -> WorldOptions {
    var options = WorldOptions.small(profile, devices: 5, operations: 200, seconds: 60)
    (options.spaces, options.mirrors, options.companyRules, options.answers) = (1, 2, 1, 80)
    return options
  }

  @Test(
    "a company that refuses and changes rows passes all oracles",
    arguments: WorldOptions.Profile.allCases, 1...2)
  func rules(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    try await WorldThreads.expectSound(seed, Self.withRules(profile), with: .mirrored)
  }

  @Test("rows that a company's conditions and triggers refuse are returned with the reason")
  func reasons() async throws {
    let words = try await WorldThreads.words(of: .mirrored, Self.withRules(.mobile))
    #expect(
      words.isSuperset(of: [
        "returned", "\"\(CompanyRules.condition)\"", "tickets", "followed",
      ]))
  }

  private static func withKeys(_ profile: WorldOptions.Profile) -> WorldOptions {
    var options = Self.options(profile)
    (options.companyKeys, options.heldRows) = (1, 60)
    return options
  }

  @Test(
    "no two rows become one while a company's sequences number them and programs hold rows",
    arguments: WorldOptions.Profile.allCases, 1...2)
  func numbers(_ profile: WorldOptions.Profile, _ seed: UInt64) async throws {
    try await WorldThreads.expectSound(seed, Self.withKeys(profile), with: .mirrored)
  }

  @Test("a mirror's planted mistake is found", arguments: PlantedMirrorFault.allCases)
  func planted(_ mistake: PlantedMirrorFault) async throws {
    let options = mistake.needsRules ? Self.withRules(.mobile) : Self.options(.mobile)
    for seed in 1...8 as ClosedRange<UInt64> {
      let result = try await WorldThreads.world(seed, options) { database in
        let connection = try PostgresConnection(url: database)
        let isReady = try connection.query(
          .once(
            """
            SELECT count(*) FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
            WHERE t.relname = 'notes' AND to_regproc('planted') IS NULL
              AND to_regclass('ferry_mirror.mirrors') IS NOT NULL
            """))
        if try isReady[0].int8(0) == 2 { try connection.execute(mistake.statements) }
      }
      if result.violations.contains(where: { $0.oracle == MirrorSides.name }) { return }
    }
    Issue.record("no oracle found \(mistake)")
  }
}
