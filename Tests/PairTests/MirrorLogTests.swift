import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Mirrors that capture the writes of programs from PostgreSQL's log.
@Suite("Mirrors that read the log", .hangLimit)
struct MirrorLogTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let tables = """
    CREATE TABLE lists(id text PRIMARY KEY, name text);
    CREATE TABLE tasks(id text PRIMARY KEY, title text, done bigint, note text, archived boolean,
      list text REFERENCES lists ON DELETE CASCADE);
    ALTER TABLE tasks ALTER note SET STORAGE EXTERNAL;
    INSERT INTO lists SELECT 'l' || i, 'list' FROM generate_series(1, 5) i;
    INSERT INTO tasks SELECT 't' || i, 'task', 0, repeat('long', 2000), false, 'l' || i % 5 + 1
    FROM generate_series(1, 50) i
    """
  private static let query = "SELECT id, title, CAST(done AS text), list FROM tasks ORDER BY id"

  /// A company whose tables are adopted, with a device that has them.
  private static func adopted(_ more: String...) async throws -> Company {
    let company = try await Company.make(tables)
    try await company.stage.mirror(
      company.arguments(["--table", "lists", "--table", "tasks", "--capture", "log"] + more))
    try await company.join()
    return company
  }

  /// Ends a mirror: PostgreSQL would keep the log for it.
  private static func end(_ run: ChildProcess?, _ company: Company) async throws {
    if let run {
      run.send(SIGTERM)
      _ = try await run.exitStatus()
    }
    try await company.stage.mirror(["remove", "crm"])
    #expect(
      try company.stage.rows(
        """
        SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()
        UNION ALL SELECT pubname::text FROM pg_publication
        UNION ALL SELECT relname::text FROM pg_class
          WHERE relname IN ('lists', 'tasks') AND relreplident <> 'd'
        """) == [])
  }

  @Test("programs' writes reach the devices without any trigger, and devices' writes the tables")
  func bothWays() async throws {
    let company = try await Self.adopted("--where", "tasks=NOT archived")
    let (stage, device) = (company.stage, company.device)
    let run = try stage.run()
    #expect(
      try stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
    try stage.sql(
      """
      BEGIN; UPDATE tasks SET title = 'it''s "one" \\ two' WHERE id = 't1';
      INSERT INTO tasks VALUES ('new', NULL, 7, NULL, false, 'l1'); DELETE FROM tasks WHERE id = 't2';
      UPDATE tasks SET id = 'other' WHERE id = 't3'; UPDATE tasks SET archived = true WHERE id = 't5';
      COMMIT
      """)
    try await company.expectEqual(
      "SELECT id, title, CAST(done AS text), list FROM tasks WHERE NOT archived ORDER BY id",
      count: 49)
    #expect(
      try await device.rows("SELECT length(note) FROM tasks WHERE id = 'other'") == [[8_000]])
    try await device.write(
      "UPDATE tasks SET title = 'device' WHERE id = 't10'; DELETE FROM lists WHERE id = 'l5'")
    try await device.exchange()
    try await stage.eventuallyRows(
      """
      SELECT title FROM tasks WHERE id = 't10'
      UNION ALL SELECT id FROM tasks WHERE list = 'l5' UNION ALL SELECT id FROM lists WHERE id = 'l5'
      """, [["device"]])
    try await stage.eventuallyRows(
      "SELECT archived::text FROM tasks WHERE id = 't5'", [["true"]])
    try await Self.end(run, company)
  }

  @Test("after a truncate and after a lost slot, all rows are compared")
  func gaps() async throws {
    let company = try await Self.adopted()
    let (stage, device) = (company.stage, company.device)
    let run = try stage.run()
    try stage.sql("TRUNCATE tasks; INSERT INTO tasks(id, title) VALUES ('only', 'one')")
    try await eventually("the device has the rows left") {
      try await device.exchange()
      return try await device.rows("SELECT id FROM tasks") == [["only"]]
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    try await eventually("the slot is gone") {
      let dropped = try? stage.rows(
        """
        SELECT pg_drop_replication_slot(slot_name)::text FROM pg_replication_slots
        WHERE database = current_database()
        """)
      return dropped != nil
    }
    // A device's row that the table refuses, beside the writes that are missing in the log.
    try await device.write("INSERT INTO tasks(id, title) VALUES ('bad', 'refused')")
    try await device.exchangeAll()
    try stage.sql(
      """
      UPDATE tasks SET title = 'unseen'; INSERT INTO tasks(id) VALUES ('unseen');
      ALTER TABLE tasks ADD CHECK (title <> 'refused')
      """)
    let again = try stage.run()
    try await company.expectEqual(Self.query, count: 2)
    let reasons = try await device.open().quarantine.entries().compactMap(\.detail)
    #expect(reasons.contains { $0.contains("violates check constraint") }, "\(reasons)")
    #expect(try await device.rows("SELECT title FROM tasks WHERE id = 'only'") == [["unseen"]])
    try await Self.end(again, company)
  }

  @Test("the kept log has a limit, and beyond it the slot is lost: status shows both")
  func limit() async throws {
    let cluster = try PostgresCluster()
    let company = try await Company.make(Self.tables, in: cluster)
    let stage = company.stage
    try await company.adopt("--table", "lists", "--table", "tasks", "--capture", "log")
    try await company.join()
    let unlimited = try await stage.mirror(["status", "crm"]).output
    #expect(unlimited.contains("without max_slot_wal_keep_size, the log may fill the disk"))
    try stage.sql("ALTER SYSTEM SET max_slot_wal_keep_size = '32MB'")
    try stage.sql("SELECT pg_reload_conf()")
    try await eventually("the log has a limit") {
      try await !stage.mirror(["status", "crm"]).output.contains("warning    without")
    }
    for round in 1...6 {
      try stage.sql("INSERT INTO lists VALUES ('round \(round)', 'unseen')")
      try stage.sql("SELECT pg_switch_wal()")
    }
    try stage.sql("CHECKPOINT")
    #expect(
      try await stage.mirror(["status", "crm"]).output.contains("log        the slot is lost"))
    let run = try stage.run()
    try await company.expectEqual("SELECT id, name FROM lists ORDER BY id", count: 11)
    try stage.sql("DELETE FROM lists WHERE name = 'unseen'")
    try await company.expectEqual("SELECT id, name FROM lists ORDER BY id", count: 5)
    try await Self.end(run, company)
  }

  @Test("a table without whole former rows stops the mirror, and a repair continues it")
  func stops() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try stage.sql(
      "ALTER TABLE tasks REPLICA IDENTITY DEFAULT; UPDATE tasks SET title = 'unseen' WHERE id = 't1'"
    )
    let stopped = try await stage.mirror(["verify", "crm"], exits: 4)
    #expect(stopped.error.contains("REPLICA IDENTITY"), "\(stopped.error)")
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try await company.expectEqual(Self.query, count: 50)
    try await Self.end(nil, company)
  }

  @Test("adopt names the reason if the log cannot be read")
  func unsuitable() async throws {
    let company = try await Company.make(Self.tables)
    let role = "plain_\(UUID().uuidString.prefix(8).lowercased())"
    try company.stage.sql(
      """
      CREATE ROLE \(role) LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO \(role);
      DO 'BEGIN EXECUTE format(''GRANT CREATE ON DATABASE %I TO \(role)'', current_database()); END'
      """)
    let database = company.stage.database.replacing("postgres@", with: "\(role)@")
    let finished = try await company.stage.mirror(
      [
        "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
        database, "--table", "tasks", "--capture", "log",
      ], exits: 1)
    #expect(finished.error.contains("lacks REPLICATION"), "\(finished.error)")
    try company.stage.sql("DROP OWNED BY \(role) CASCADE; DROP ROLE \(role)")
    // The programs' updates would fail.
    try company.stage.sql("CREATE PUBLICATION reports FOR TABLE tasks (id)")
    let listed = try await company.adopt("--table", "tasks", "--capture", "log", exits: 1)
    #expect(listed.error.contains("a list of columns"), "\(listed.error)")
    try company.stage.sql("UPDATE tasks SET title = title")
  }

  @Test("with --capture auto, the database decides, and the mirror names the reason")
  func automatic() async throws {
    let company = try await Company.make(Self.tables)
    let stage = company.stage
    let command = [
      "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      stage.database, "--table", "lists", "--table", "tasks", "--capture", "auto",
    ]
    var logged = try await stage.mirror(command).output
    // A transaction of another test may have lasted too long.
    for _ in 0..<20 where logged.contains("cannot be read: programs") {
      try await Self.end(nil, company)
      logged = try await stage.mirror(command).output
    }
    #expect(logged.contains("capture    from PostgreSQL's log\n"))
    try await Self.end(nil, company)
    let role = "plain_\(UUID().uuidString.prefix(8).lowercased())"
    try stage.sql(
      """
      CREATE ROLE \(role) LOGIN BYPASSRLS; GRANT ALL ON ALL TABLES IN SCHEMA public TO \(role);
      DROP SCHEMA ferry_mirror CASCADE;
      DO 'BEGIN EXECUTE format(''GRANT CREATE ON DATABASE %I TO \(role)'', current_database()); END'
      """)
    let asked = [
      "crm", "--server", company.server.url, "--space", Device.space, "--database",
      stage.database.replacing("postgres@", with: "\(role)@"), "--table", "lists", "--capture",
    ]
    let planned = try await stage.mirror(["plan"] + asked + ["auto"])
    #expect(planned.output.contains("the mirror's role lacks REPLICATION"))
    let line = "capture    by triggers: PostgreSQL's log cannot be read: the mirror's role lacks"
    #expect(try await stage.mirror(["adopt"] + asked + ["auto"]).output.contains(line))
    // The same command, and one with the chosen way, go on with it.
    #expect(try await stage.mirror(["adopt"] + asked + ["auto"]).output.contains(line))
    #expect(try await stage.mirror(["adopt"] + asked + ["triggers"]).output.contains(line))
    #expect(try await stage.mirror(["status", "crm"]).output.contains(line))
    try await stage.mirror(["remove", "crm"])
    try stage.sql("DROP OWNED BY \(role) CASCADE; DROP ROLE \(role)")
  }

  @Test(
    "with --capture auto, triggers capture beside a transaction that lasts too long for the log")
  func longTransaction() async throws {
    let company = try await Company.make(Self.tables)
    let stage = company.stage
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN; SELECT FROM tasks LIMIT 1")
    let arguments = [
      "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      stage.database, "--table", "lists", "--table", "tasks", "--capture", "auto",
    ]
    let adopted = try await stage.mirror(arguments)
    #expect(
      adopted.output.contains("capture    by triggers: PostgreSQL's log cannot be read: programs"))
    try program.execute("COMMIT")
    // The same command goes on with the chosen way.
    try await stage.mirror(arguments)
    try await company.join()
    let run = try stage.run()
    try stage.sql("UPDATE tasks SET title = 'seen' WHERE id = 't1'")
    try await company.expectEqual(Self.query, count: 50)
    try await Self.end(run, company)
  }

  @Test("an adoption goes on after kills, before the slot and among the slices, beside writers")
  func killedAdoption() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE lists(id int PRIMARY KEY, n int); CREATE TABLE others(id int);
      INSERT INTO lists SELECT i, 0 FROM generate_series(1, 20000) i
      """)
    let stage = company.stage
    let arguments = company.arguments(["--table", "lists", "--capture", "log"])
    let start = {
      try ChildProcess(
        try Executables.ferryd(), ["mirror"] + arguments + ["--mirrors", stage.mirrors.url.path],
        directory: stage.mirrors.url)
    }
    // PostgreSQL creates a slot behind such a transaction.
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN; INSERT INTO others VALUES (1)")
    let first = try start()
    try await eventually("the slot waits for the transaction", from: first) {
      try stage.rows(
        """
        SELECT state FROM pg_stat_activity WHERE datname = current_database()
          AND pid <> pg_backend_pid() AND query LIKE '%pg_create_logical_replication_slot%'
        """) == [["active"]]
    }
    first.send(SIGKILL)
    _ = try await first.exitStatus()
    try stage.sql("UPDATE lists SET n = 1 WHERE id % 7 = 0; INSERT INTO lists VALUES (-1, 1)")
    try program.execute("COMMIT")
    var last = ""
    for round in 2...4 {
      let adopt = try start()
      try await eventually("the adoption goes on in round \(round)") {
        let state = try? stage.rows("SELECT place::text || done FROM ferry_mirror.adopted")
        guard let text = state?.first?.first ?? nil, text != last || text.hasSuffix("true") else {
          return false
        }
        last = text
        return true
      }
      adopt.send(SIGKILL)
      _ = try await adopt.exitStatus()
      try stage.sql(
        "UPDATE lists SET n = \(round) WHERE id % 5 = 0; DELETE FROM lists WHERE id % 999 = \(round)"
      )
    }
    #expect(try await stage.mirror(arguments).output.contains("unsent     0 rows"))
    let run = try stage.run()
    try await company.join()
    try await company.expectEqual(
      "SELECT CAST(id AS text), CAST(n AS text) FROM lists ORDER BY lists.id")
    try await Self.end(run, company)
  }

  @Test("an adoption without a slot leaves nothing, and goes on when there may be one")
  func noSlot() async throws {
    let company = try await Company.make(Self.tables)
    let stage = company.stage
    // The name of the first mirror's slot.
    let slot = """
      SELECT 'ferry_mirror_' || oid || '_1' FROM pg_database WHERE datname = current_database()
      """
    try stage.sql("SELECT pg_create_physical_replication_slot((\(slot)))")
    let arguments = company.arguments(["--table", "lists", "--table", "tasks", "--capture", "log"])
    let failed = try await stage.mirror(arguments, exits: 1)
    #expect(failed.error.contains("already exists"), "\(failed.error)")
    #expect(
      try stage.rows(
        """
        SELECT name FROM ferry_mirror.mirrors UNION ALL SELECT target FROM ferry_mirror.identities
        UNION ALL SELECT slot FROM ferry_mirror.logs UNION ALL SELECT pubname::text FROM pg_publication
        UNION ALL SELECT relname::text FROM pg_class
          WHERE relname IN ('lists', 'tasks') AND relreplident <> 'd'
        """) == [])
    #expect(!FileManager.default.fileExists(atPath: stage.mirrors.url.path + "/crm"))
    try stage.sql("SELECT pg_drop_replication_slot((\(slot)))")
    try await stage.mirror(arguments)
    try await Self.end(nil, company)
  }

  @Test("a removal names a table whose REPLICA IDENTITY was an index that is gone")
  func goneIndex() async throws {
    let company = try await Company.make(
      """
      \(Self.tables); ALTER TABLE lists ALTER name SET NOT NULL;
      UPDATE lists SET name = id; CREATE UNIQUE INDEX lists_name ON lists(name);
      ALTER TABLE lists REPLICA IDENTITY USING INDEX lists_name
      """)
    let stage = company.stage
    try await stage.mirror(company.arguments(["--table", "lists", "--capture", "log"]))
    try stage.sql("DROP INDEX lists_name")
    let removed = try await stage.mirror(["remove", "crm"])
    #expect(
      removed.error.contains("table \"public\".\"lists\": the index lists_name of its REPLICA"),
      "\(removed.error)")
    #expect(
      try stage.rows("SELECT relreplident::text FROM pg_class WHERE relname = 'lists'") == [["d"]])
  }
}
