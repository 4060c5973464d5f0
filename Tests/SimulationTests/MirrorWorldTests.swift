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

  /// Possible mistakes of a mirror, as triggers in the mirror's database.
  enum Mistake: String, CaseIterable {
    /// A program's write is committed, and not captured.
    case notCaptured = """
      CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.kind = 'I' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER planted BEFORE INSERT ON ferry_mirror.captured
        FOR EACH ROW EXECUTE FUNCTION planted();
      """
    /// A device's change does not reach the table.
    case notBrought = """
      CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF current_setting('ferry.mirror', true) <> '' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT schema FROM ferry_mirror.mirrors LOOP
          EXECUTE format(
            'CREATE TRIGGER planted BEFORE UPDATE ON %I.notes FOR EACH ROW EXECUTE FUNCTION planted()', name);
        END LOOP; END $$;
      """
  }

  @Test("a mirror's planted mistake is found", arguments: Mistake.allCases)
  func planted(_ mistake: Mistake) async throws {
    for seed in 1...8 as ClosedRange<UInt64> {
      let result = try await WorldThreads.world(seed, Self.options(.mobile)) { database in
        let connection = try PostgresConnection(url: database)
        let isReady = try connection.query(
          .once(
            """
            SELECT count(*) FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
            WHERE t.relname = 'notes' AND to_regproc('planted') IS NULL
            """))
        if try isReady[0].int8(0) == 2 { try connection.execute(mistake.rawValue) }
      }
      if result.violations.contains(where: { $0.oracle == MirrorSides.name }) { return }
    }
    Issue.record("no oracle found \(mistake)")
  }
}
