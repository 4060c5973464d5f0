import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Groups of mirrors that capture the writes of programs from PostgreSQL's log: one slot serves all
/// spaces.
@Suite("Groups that read the log", .hangLimit)
struct MirrorGroupLogTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let tasks = """
    CREATE TABLE tasks(id int PRIMARY KEY, account text, title text);
    INSERT INTO tasks SELECT i, i % 3 + 1, 't' || i FROM generate_series(1, 30) i
    """
  private static let slots = """
    SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()
    """

  private static func adopt(
    _ company: Company, capture: String = "log"
  ) async throws -> ChildProcess.Finished {
    try await company.stage.mirror([
      "adopt", "all", "--server", company.server.url, "--database", company.stage.database,
      "--table", "tasks", "--space-column", "account", "--space-name", "account-{}", "--capture",
      capture,
    ])
  }

  private static func adopted() async throws -> Company {
    let company = try await Company.make(tasks)
    _ = try await adopt(company)
    return company
  }

  private static func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  /// Compares each space with its rows, and removes the group: PostgreSQL would keep the log for it.
  private static func end(_ company: Company) async throws {
    let verified = try await company.stage.mirror(["verify", "all"])
    #expect(verified.output == "0 rows differ\n")
    try await company.stage.mirror(["remove", "all"])
    #expect(try company.stage.rows(slots) == [])
    #expect(
      try company.stage.rows(
        """
        SELECT pubname::text FROM pg_publication
        UNION ALL SELECT relname::text FROM pg_class WHERE relname = 'tasks' AND relreplident <> 'd'
        """) == [])
  }

  private static func device(_ company: Company, _ space: String) async throws -> Device {
    let device = try Device()
    try await device.ferry("init", "--server", company.server.url, "--space", space)
    try await device.exchange()
    try await device.ferry("track", "--create", "--all")
    try await device.exchange()
    return device
  }

  /// Waits until the device has the rows of the table with a value.
  private static func expect(
    _ device: Device, _ value: String, _ company: Company, from run: ChildProcess
  ) async throws {
    let rows = try company.stage.rows(
      "SELECT id::text, title FROM tasks WHERE account = '\(value)' ORDER BY tasks.id")
    try await eventually("the rows of \(value)", from: run) {
      try await device.exchange()
      let here = try await device.rows(
        "SELECT CAST(id AS text), title FROM tasks ORDER BY tasks.id")
      return here == rows.map { row in row.map { .text($0 ?? "") } }
    }
  }

  @Test("rows move between spaces, devices write, and programs' transactions have nothing of Ferry")
  func moved() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    #expect(try stage.rows(Self.slots).count == 1)
    let run = try stage.run("all")
    let (one, two) = (
      try await Self.device(company, "account-1"), try await Self.device(company, "account-2")
    )
    try stage.sql(
      """
      BEGIN; UPDATE tasks SET account = '2', title = 'moved' WHERE id IN (3, 6);
      UPDATE tasks SET account = '1' WHERE id = 1; INSERT INTO tasks VALUES (40, '1', 'new');
      DELETE FROM tasks WHERE id = 9; COMMIT;
      UPDATE tasks SET id = 50, account = '1' WHERE id = 4
      """)
    try await Self.expect(one, "1", company, from: run)
    try await Self.expect(two, "2", company, from: run)
    try await one.write("UPDATE tasks SET title = 'one' WHERE id = 40")
    try await two.write("DELETE FROM tasks WHERE id = 3")
    try await one.exchange()
    try await two.exchange()
    try await stage.eventuallyRows(
      "SELECT title FROM tasks WHERE id IN (3, 40)", [["one"]])
    #expect(
      try stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
    let status = try await stage.mirror(["status", "all"]).output
    #expect(
      status.contains("from PostgreSQL's log") && status.contains("bytes are kept"), "\(status)")
    try await Self.stop(run)
    try await Self.end(company)
  }

  @Test("after a lost slot and after a truncate, all spaces are compared, and new values are found")
  func gaps() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try stage.sql("SELECT pg_drop_replication_slot(slot_name) FROM (\(Self.slots)) s(slot_name)")
    try stage.sql(
      "UPDATE tasks SET title = 'unseen' WHERE id < 10; INSERT INTO tasks VALUES (60, 'late', 'x')")
    let run = try stage.run("all")
    for value in ["1", "2", "3"] {
      try await Self.expect(
        try await Self.device(company, "account-\(value)"), value, company, from: run)
    }
    try await stage.eventuallyRows(
      "SELECT name FROM ferry_mirror.mirrors WHERE name = 'all-late'", [["all-late"]])
    try stage.sql("TRUNCATE tasks; INSERT INTO tasks VALUES (1, '1', 'only')")
    for value in ["1", "2"] {
      try await Self.expect(
        try await Self.device(company, "account-\(value)"), value, company, from: run)
    }
    #expect(try stage.rows(Self.slots).count == 1)
    try await Self.stop(run)
    try await Self.end(company)
  }

  @Test("a removed mirror leaves the slot to the others, and its value gets a mirror again")
  func removedMember() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try await stage.mirror(["remove", "all-2"])
    #expect(try stage.rows(Self.slots).count == 1)
    try stage.sql("UPDATE tasks SET title = 'later'")
    // One mirror reads the log for all.
    try await stage.mirror(["verify", "all-1"])
    #expect(
      try stage.rows(
        "SELECT DISTINCT m.name FROM ferry_mirror.captured c "
          + "JOIN ferry_mirror.mirrors m ON m.number = c.mirror") == [["all-3"]])
    #expect(try stage.rows("SELECT value FROM ferry_mirror.wanted") == [["2"]])
    _ = try await Self.adopt(company)
    try await Self.end(company)
  }

  @Test("after DROP PUBLICATION, the running group publishes the tables again")
  func droppedPublication() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let run = try stage.run("all")
    let (one, two) = (
      try await Self.device(company, "account-1"), try await Self.device(company, "account-2")
    )
    try stage.sql(
      """
      BEGIN; DROP PUBLICATION ferry_group_1; UPDATE tasks SET title = 'unseen'; COMMIT;
      UPDATE tasks SET title = 'later' WHERE id = 1
      """)
    try await Self.expect(one, "1", company, from: run)
    try await Self.expect(two, "2", company, from: run)
    try stage.sql("UPDATE tasks SET title = 'seen'")
    try await Self.expect(one, "1", company, from: run)
    try await Self.expect(two, "2", company, from: run)
    try await Self.stop(run)
    try await Self.end(company)
  }

  @Test("a table without whole former rows stops all mirrors, and a repair continues them")
  func stops() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try stage.sql(
      "ALTER TABLE tasks REPLICA IDENTITY DEFAULT; UPDATE tasks SET title = 'unseen' WHERE id < 4")
    try await stage.mirror(["verify", "all"], exits: 1)
    let status = try await stage.mirror(["status", "all"], exits: 4).output
    for name in ["all-1", "all-2", "all-3"] {
      #expect(status.contains("\(name): stopped: table tasks: its REPLICA IDENTITY"), "\(status)")
    }
    #expect(try stage.rows(Self.slots).count == 1)
    try stage.sql("UPDATE tasks SET title = 'again' WHERE id = 5")
    try await stage.mirror(["verify", "all", "--repair", "space"])
    try stage.sql("UPDATE tasks SET title = 'last' WHERE id = 6")
    try await Self.end(company)
  }

  @Test("with --capture auto, the database decides for a group")
  func automatic() async throws {
    let company = try await Company.make(Self.tasks)
    _ = try await Self.adopt(company, capture: "auto")
    let status = try await company.stage.mirror(["status", "all"]).output
    let isLogged = try company.stage.rows(Self.slots).count == 1
    // A transaction of another test may last too long.
    #expect(
      status.contains(isLogged ? "from PostgreSQL's log" : "by triggers"), "\(status)")
    try await company.stage.mirror(["remove", "all"])
    #expect(try company.stage.rows(Self.slots) == [])
  }

  @Test("a group without a slot leaves nothing")
  func noSlot() async throws {
    let company = try await Company.make(Self.tasks)
    let stage = company.stage
    let slot = """
      SELECT 'ferry_group_' || oid || '_1' FROM pg_database WHERE datname = current_database()
      """
    try stage.sql("SELECT pg_create_physical_replication_slot((\(slot)))")
    let failed = try await stage.mirror(
      [
        "adopt", "all", "--server", company.server.url, "--database", stage.database, "--table",
        "tasks", "--space-column", "account", "--space-name", "account-{}", "--capture", "log",
      ], exits: 1)
    #expect(failed.error.contains("already exists"), "\(failed.error)")
    try stage.sql("SELECT pg_drop_replication_slot((\(slot)))")
    #expect(
      try stage.rows(
        """
        SELECT name FROM ferry_mirror.groups UNION ALL SELECT target FROM ferry_mirror.identities
        UNION ALL SELECT slot FROM ferry_mirror.logs UNION ALL SELECT pubname::text FROM pg_publication
        UNION ALL SELECT relname::text FROM pg_class WHERE relname = 'tasks' AND relreplident <> 'd'
        """) == [])
    _ = try await Self.adopt(company)
    try await Self.end(company)
  }

  @Test("without its folder, a group is removed from the database", arguments: ["log", "triggers"])
  func lostFolder(capture: String) async throws {
    let company = try await Company.make(Self.tasks)
    let stage = company.stage
    _ = try await Self.adopt(company, capture: capture)
    try FileManager.default.removeItem(at: stage.mirrors.url)
    try FileManager.default.createDirectory(
      at: stage.mirrors.url, withIntermediateDirectories: false)
    try await stage.mirror(["remove", "all", "--database", stage.database])
    #expect(
      try stage.rows(
        """
        \(Self.slots) UNION ALL SELECT name FROM ferry_mirror.groups
        UNION ALL SELECT name FROM ferry_mirror.mirrors UNION ALL SELECT pubname::text FROM pg_publication
        UNION ALL SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal
        """) == [])
    let missing = try await stage.mirror(
      ["remove", "all", "--database", stage.database], exits: 1)
    #expect(missing.error.contains("no mirror and no group all"), "\(missing.error)")
  }

  @Test("a stopped mirror is repaired while its group runs: the group reads the log for it")
  func repairBeside() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let run = try stage.run("all")
    try stage.sql(
      """
      INSERT INTO ferry_mirror.stops(mirror, tab, reason)
      SELECT number, 'tasks', 'a test' FROM ferry_mirror.mirrors WHERE name = 'all-3';
      UPDATE tasks SET title = 'unseen' WHERE account = '3'
      """)
    try await eventually("the repair after the end of the stopped mirror", from: run) {
      let command = ["mirror", "verify", "all-3", "--repair", "space", "--mirrors"]
      let repair = try await ChildProcess.run(
        try Executables.ferryd(), command + [stage.mirrors.url.path], directory: stage.mirrors.url,
        input: "")
      return repair.status == .exited(0)
    }
    #expect(try stage.rows("SELECT tab FROM ferry_mirror.stops") == [])
    #expect(try stage.rows(Self.slots).count == 1)
    // The group still reads for the others.
    let one = try await Self.device(company, "account-1")
    try stage.sql("UPDATE tasks SET title = 'seen' WHERE account = '1'")
    try await Self.expect(one, "1", company, from: run)
    try await Self.stop(run)
    try await Self.end(company)
  }
}
