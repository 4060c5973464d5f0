import FerryPostgres
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

/// Migrations that take long, fail half-way, and are begun by several at once.
@Suite(.hangLimit)
struct PostgresMigrationTests {
  static let table = """
    CREATE TABLE records(
      space bigint, tbl text COLLATE "C", record text COLLATE "C", dead boolean DEFAULT false,
      changes integer DEFAULT 0, PRIMARY KEY(space, tbl, record))
    """

  static func walk(_ change: String) -> PostgresMigration.Step {
    PostgresMigration.Step(
      "ALTER TABLE records ADD COLUMN walked boolean",
      slice: PostgresMigration.slice(
        of: 100,
        """
        UPDATE records SET \(change)
        WHERE (space, tbl, record) IN (SELECT space, tbl, record FROM part)
        """))
  }

  static func migrate(
    _ url: String, _ steps: [PostgresMigration.Step],
    report: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws {
    let pool = try PostgresPool(
      url: url, connections: 1, prepareConnection: PostgresMigration.connectionSettings)
    let migration = PostgresMigration(steps: steps, createsIfMissing: true, report: report)
    let failure: (any Error)?
    do {
      try await pool.run { try migration.run(on: $0) }
      failure = nil
    } catch {
      failure = error
    }
    await pool.close()
    if let failure { throw failure }
  }

  static func number(_ sql: String, _ url: String) throws -> Int64 {
    try PostgresConnection(url: url).query(.once(sql))[0].int8(0)
  }

  static let fill = """
    INSERT INTO records SELECT s, 't', lpad(r::text, 5, '0')
    FROM generate_series(1, 2) AS s, generate_series(1, 500) AS r
    """

  @Test("a step that takes longer than any timeout of the database succeeds")
  func timeouts() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    // The least that there is: it ends every statement that waits.
    try PostgresConnection(url: url).execute(
      """
      DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 500',
        current_database()); END $$
      """)
    let steps: [PostgresMigration.Step] = [
      "CREATE TABLE t(v integer)", "SELECT pg_sleep(1); INSERT INTO t VALUES (1)",
    ]
    try await Self.migrate(url, [steps[0]])
    try await Self.migrate(url, steps)
    #expect(try Self.number("SELECT count(*) FROM t", url) == 1)
  }

  @Test("a walk over a large table runs in slices, and reports its progress")
  func slices() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let reports = Mutex<[String]>([])
    let first = PostgresMigration.Step(Self.table)
    try await Self.migrate(url, [first])
    try PostgresConnection(url: url).execute(Self.fill)
    try await Self.migrate(url, [first, Self.walk("changes = changes + 1")]) { line in
      reports.withLock { $0.append(line) }
    }
    #expect(try Self.number("SELECT count(*) FROM records WHERE changes = 1", url) == 1_000)
    #expect(try Self.number("SELECT max(version)::bigint FROM ferry_schema", url) == 2)
    #expect(try Self.number("SELECT count(*) FROM ferry_migration", url) == 0)
    let lines = reports.withLock { $0 }
    #expect(lines.first == "step 2 of 2")
    #expect(lines.count == 11)
    #expect(lines.last == "step 2 of 2: 1000 records")
  }

  @Test("an interrupted migration continues at its place")
  func resumes() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let steps = [PostgresMigration.Step(Self.table), Self.walk("changes = changes + 1")]
    try await Self.migrate(url, [steps[0]])
    let connection = try PostgresConnection(url: url)
    try connection.execute(Self.fill)
    try connection.execute(
      """
      CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.space = 2 THEN RAISE 'the disk is full'; END IF; RETURN NEW;
      END $$;
      CREATE TRIGGER broken BEFORE UPDATE ON records FOR EACH ROW EXECUTE FUNCTION broken()
      """)
    await #expect(throws: PostgresError.self) { try await Self.migrate(url, steps) }
    #expect(try Self.number("SELECT count(*) FROM records WHERE changes = 1", url) == 500)
    #expect(try Self.number("SELECT max(version)::bigint FROM ferry_schema", url) == 1)
    try connection.execute("DROP TRIGGER broken ON records")
    try await Self.migrate(url, steps)
    #expect(try Self.number("SELECT count(*) FROM records WHERE changes = 1", url) == 1_000)
    #expect(try Self.number("SELECT max(version)::bigint FROM ferry_schema", url) == 2)
  }

  @Test("of several nodes that start at the same time, one migrates and the others wait")
  func nodes() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let steps = [PostgresMigration.Step(Self.table), Self.walk("changes = changes + 1")]
    try await Self.migrate(url, [steps[0]])
    try PostgresConnection(url: url).execute(Self.fill)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { try await Self.migrate(url, steps) } }
      try await group.waitForAll()
    }
    #expect(try Self.number("SELECT count(*) FROM records WHERE changes = 1", url) == 1_000)
    #expect(try Self.number("SELECT count(*) FROM ferry_schema WHERE version = 2", url) == 1)
  }

  @Test("a store that a newer server wrote is not changed")
  func newer() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let step = PostgresMigration.Step(Self.table)
    try await Self.migrate(url, [step, "SELECT 1"])
    await #expect(throws: StoreError.self) { try await Self.migrate(url, [step]) }
  }
}
