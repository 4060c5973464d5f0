import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Failures of mirrors that capture the writes of programs from PostgreSQL's log.
@Suite("Failures of mirrors that read the log", .hangLimit)
struct MirrorLogFaultTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let tables = """
    CREATE TABLE lists(id int PRIMARY KEY, name text); CREATE TABLE others(id int);
    INSERT INTO lists SELECT i, 'list' FROM generate_series(1, 50) i
    """
  private static let options = ["--table", "lists", "--capture", "log"]
  private static let query = "SELECT CAST(id AS text), name FROM lists ORDER BY lists.id"

  /// Everything of a mirror that stays in a database.
  private static let left = """
    SELECT name FROM ferry_mirror.mirrors UNION ALL SELECT target FROM ferry_mirror.identities
    UNION ALL SELECT slot FROM ferry_mirror.logs UNION ALL SELECT pubname::text FROM pg_publication
    UNION ALL SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()
    UNION ALL SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
      AND relkind = 'r' AND relreplident <> 'd'
    """

  private static func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  /// Ends a mirror: PostgreSQL would keep the log for it.
  private static func end(_ run: ChildProcess?, _ company: Company) async throws {
    if let run { try await stop(run) }
    try await company.stage.mirror(["remove", "crm"])
    #expect(try company.stage.rows(left) == [])
  }

  /// Fails an adoption at its slot, beside a transaction with a lock of the table: so nothing can be
  /// removed again.
  private static func fail(_ company: Company) async throws {
    let stage = company.stage
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN; INSERT INTO others VALUES (1)")
    let adopt = try ChildProcess(
      try Executables.ferryd(),
      ["mirror"] + company.arguments(options) + ["--mirrors", stage.mirrors.url.path],
      directory: stage.mirrors.url)
    let making = """
      FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND state = 'active' AND query LIKE '%pg_create_logical_replication_slot%'
      """
    try await eventually("the slot waits for the transaction", from: adopt) {
      try stage.rows("SELECT datname::text \(making)").count == 1
    }
    try program.execute("SELECT FROM lists LIMIT 1")
    try stage.sql("SELECT pg_cancel_backend(pid) \(making)")
    #expect(try await adopt.exitStatus() == .exited(1))
    #expect(adopt.error.contains("a reader of the log begins behind it"), "\(adopt.error)")
    #expect(adopt.error.contains("The database still has the mirror, the publication"))
    #expect(adopt.error.contains("ferryd mirror remove crm"))
    try program.execute("COMMIT")
    #expect(try stage.rows(left) != [])
  }

  @Test(
    "a failed adoption names the first error and its rest; a removal or the same command clears it")
  func undone() async throws {
    // The open transaction would delay the slots of other tests.
    let cluster = try PostgresCluster()
    let company = try await Company.make(Self.tables, in: cluster)
    try await Self.fail(company)
    try await Self.end(nil, company)
    try await Self.fail(company)
    try await company.stage.mirror(company.arguments(Self.options))
    try await company.join()
    try await company.expectEqual(Self.query, count: 50)
    try await Self.end(nil, company)
  }

  @Test("a removal gives a renamed table its former REPLICA IDENTITY, beside a dropped one")
  func renamed() async throws {
    let company = try await Company.make(
      "\(Self.tables); CREATE TABLE tasks(id int PRIMARY KEY, title text)")
    try await company.stage.mirror(company.arguments(Self.options + ["--table", "tasks"]))
    try company.stage.sql(
      """
      ALTER TABLE lists RENAME TO "new ""lists"; DROP TABLE tasks;
      CREATE TABLE lists(id int PRIMARY KEY)
      """)
    try await Self.end(nil, company)
  }

  private static let slots = """
    SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()
    """

  /// A company whose table is adopted, with a device that has it.
  private static func adopted(in cluster: PostgresCluster? = nil) async throws -> Company {
    let company = try await Company.make(tables, in: cluster)
    try await company.stage.mirror(company.arguments(options))
    try await company.join()
    return company
  }

  @Test("a stopped mirror keeps no log, and a repair makes a new slot before it compares")
  func stopped() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let run = try stage.run()
    try stage.sql(
      "ALTER TABLE lists REPLICA IDENTITY DEFAULT; UPDATE lists SET name = 'unseen' WHERE id = 1")
    #expect(try await run.exitStatus() == .exited(4))
    #expect(try stage.rows(Self.slots) == [])
    let status = try await stage.mirror(["status", "crm"], exits: 4)
    #expect(status.output.contains("log        0 bytes are kept"), "\(status.output)")
    try stage.sql("UPDATE lists SET name = 'later' WHERE id = 2")
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    #expect(try stage.rows(Self.slots).count == 1)
    let again = try stage.run()
    try stage.sql("UPDATE lists SET name = 'last' WHERE id = 3")
    try await company.expectEqual(Self.query, count: 50)
    try await Self.end(again, company)
  }

  @Test("a repair does not read the writes that stopped the mirror, however many they are")
  func formerWrites() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try stage.sql("ALTER TABLE lists REPLICA IDENTITY DEFAULT")
    try await stage.mirror(["verify", "crm"], exits: 4)
    // No row differs, so the comparison does not wait for them.
    let program = try PostgresConnection(url: stage.database)
    for _ in 1...2_000 { try program.execute("UPDATE lists SET name = name WHERE id = 1") }
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try await stage.mirror(["verify", "crm"])
    try await Self.end(nil, company)
  }

  @Test("after DROP PUBLICATION, the mirror publishes the tables again, and compares all rows")
  func droppedPublication() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let update = { (name: String, id: Int) in
      try stage.sql("UPDATE lists SET name = '\(name)' WHERE id = \(id)")
    }
    try stage.sql("DROP PUBLICATION ferry_mirror_1")
    try update("unseen", 1)
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try await company.expectEqual(Self.query, count: 50)
    let run = try stage.run()
    try update("seen", 2)
    try await company.expectEqual(Self.query, count: 50)
    try stage.sql("DROP PUBLICATION ferry_mirror_1")
    try update("later", 3)
    try await company.expectEqual(Self.query, count: 50)
    // A publication made again by the administrator lacks the change before.
    try stage.sql(
      """
      BEGIN; DROP PUBLICATION ferry_mirror_1; UPDATE lists SET name = 'before' WHERE id = 4;
      CREATE PUBLICATION ferry_mirror_1 FOR TABLE lists; COMMIT
      """)
    try update("last", 5)
    try await company.expectEqual(Self.query, count: 50)
    // The log never lacks the publication, but the update.
    try stage.sql(
      """
      BEGIN; DROP PUBLICATION ferry_mirror_1;
      CREATE PUBLICATION ferry_mirror_1 FOR TABLE lists WITH (publish = 'insert'); COMMIT
      """)
    try update("unpublished", 7)
    try await company.expectEqual(Self.query, count: 50)
    try update("published", 8)
    try await company.expectEqual(Self.query, count: 50)
    // A definition changes before the next round.
    try await Self.stop(run)
    try stage.sql("DROP PUBLICATION ferry_mirror_1; ALTER TABLE lists ADD note text")
    try update("noted", 6)
    let again = try stage.run()
    try await company.expectEqual(Self.query, count: 50)
    try await Self.end(again, company)
  }

  @Test("while the reader of the log is behind, the writes captured so far travel")
  func behind() async throws {
    // The open transaction would delay the slots of other tests.
    let cluster = try PostgresCluster()
    let company = try await Self.adopted(in: cluster)
    let (stage, device) = (company.stage, company.device)
    let first = try stage.run()
    try stage.sql("UPDATE lists SET name = 'zero' WHERE id = 1")
    try await company.expectEqual(Self.query, count: 50)
    try await company.server.kill()
    try stage.sql("UPDATE lists SET name = 'one' WHERE id = 1")
    try await stage.eventuallyRows("SELECT count(*)::text FROM ferry_mirror.captured", [["1"]])
    try await Self.stop(first)
    // The reader can capture nothing more.
    let obstacle = try PostgresConnection(url: stage.database)
    try obstacle.execute("BEGIN; SELECT FROM ferry_mirror.logs FOR UPDATE")
    try stage.sql("UPDATE lists SET name = 'two' WHERE id = 2")
    try await company.server.start()
    let run = try stage.run()
    let names = "SELECT name FROM lists WHERE lists.id IN (1, 2) ORDER BY lists.id"
    try await eventually("the captured write is in the space", from: run) {
      try await device.exchangeAll()
      return try await device.rows(names) == [["one"], ["list"]]
    }
    try obstacle.execute("COMMIT")
    try await company.expectEqual(Self.query, count: 50)
    try await Self.end(run, company)
  }
}
