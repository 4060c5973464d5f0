import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// One table of a company with rows of many spaces, and a group of mirrors that follows the table's
/// values.
@Suite("Groups of mirrors", .hangLimit)
struct MirrorGroupTests {
  private static let tasks = """
    CREATE TABLE tasks(id int PRIMARY KEY, account text, title text);
    INSERT INTO tasks SELECT i, i % 2 + 1, 't' || i FROM generate_series(1, 6) i
    """

  private func adopt(
    _ company: MirrorAdoptionTests.Company, by capture: String = "triggers", _ more: String...,
    exits code: Int32 = 0
  ) async throws -> ChildProcess.Finished {
    try await company.stage.mirror(
      [
        "adopt", "all", "--server", company.server.url, "--database", company.stage.database,
        "--table", "tasks", "--space-column", "account", "--capture", capture,
      ] + (more.isEmpty ? ["--space-name", "account-{}"] : more), exits: code)
  }

  private static let ways = ["triggers", "log"]

  /// Removes a group, and expects nothing of it in the database: PostgreSQL would keep the log.
  private func end(_ company: MirrorAdoptionTests.Company) async throws {
    try await company.stage.mirror(["remove", "all"])
    #expect(try company.stage.rows(Self.left) == [])
  }

  private static let left = """
    SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'ferry%'
    UNION ALL SELECT pubname::text FROM pg_publication
    UNION ALL SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()
    UNION ALL SELECT relname::text FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relreplident <> 'd'
    UNION ALL SELECT mirror::text FROM ferry_mirror.logged
    UNION ALL SELECT slot FROM ferry_mirror.logs
    UNION ALL SELECT target FROM ferry_mirror.identities
    """

  private func device(
    _ company: MirrorAdoptionTests.Company, _ space: String
  ) async throws -> Device {
    let device = try Device()
    try await device.ferry("init", "--server", company.server.url, "--space", space)
    try await device.exchange()
    try await device.ferry("track", "--create", "--all")
    try await device.exchange()
    return device
  }

  /// Waits until a device has the titles of its space's rows.
  private func expect(_ device: Device, _ titles: [String]) async throws {
    try await eventually("\(titles)") {
      try await device.exchange()
      return try await device.rows("SELECT title FROM tasks ORDER BY id")
        == titles.map { [.text($0)] }
    }
  }

  private func names(_ company: MirrorAdoptionTests.Company) throws -> [String?] {
    try company.stage.rows("SELECT name FROM ferry_mirror.mirrors ORDER BY name").map { $0[0] }
  }

  @Test(
    "all rows of a shared table are in each space, and rows of a space may refer to them",
    arguments: ways)
  func shared(capture: String) async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE kinds(id int PRIMARY KEY, name text); INSERT INTO kinds VALUES (1, 'short'), (2, 'long');
      CREATE TABLE tasks(id int PRIMARY KEY, account text, title text, kind int REFERENCES kinds);
      INSERT INTO tasks SELECT i, i % 2 + 1, 't' || i, i % 2 + 1 FROM generate_series(1, 6) i
      """)
    let stage = company.stage
    let options = ["--space-name", "account-{}", "--shared", "kinds", "--capture", capture]
    let plan = try await stage.mirror(
      [
        "plan", "all", "--server", company.server.url, "--database", stage.database, "--table",
        "tasks", "--space-column", "account",
      ] + options)
    #expect(plan.output.contains("foreign key"), "\(plan.output)")
    let adopted = try await stage.mirror(
      [
        "adopt", "all", "--server", company.server.url, "--database", stage.database, "--table",
        "tasks", "--space-column", "account",
      ] + options)
    #expect(!adopted.output.contains("left out: foreign key"), "\(adopted.output)")
    let run = try stage.run("all")
    let devices = [
      try await device(company, "account-1"), try await device(company, "account-2"),
    ]
    let names = "SELECT name FROM kinds ORDER BY id"
    func expect(_ expected: [String]) async throws {
      for device in devices {
        try await eventually("\(expected)", from: run) {
          try await device.exchange()
          return try await device.rows(names) == expected.map { [.text($0)] }
        }
      }
      try await stage.eventuallyRows(names, expected.map { [$0] })
    }
    try await expect(["short", "long"])
    try stage.sql("UPDATE kinds SET name = 'brief' WHERE id = 1")
    try await expect(["brief", "long"])
    // A device's row reaches the other space, too.
    try await devices[0].write("INSERT INTO kinds VALUES (3, 'new')")
    try await devices[0].write("UPDATE tasks SET kind = 3")
    try await expect(["brief", "long", "new"])
    try await stage.eventuallyRows(
      "SELECT DISTINCT account, kind::text FROM tasks ORDER BY 1", [["1", "3"], ["2", "2"]])
    // A new space begins with all of them.
    try stage.sql("INSERT INTO tasks VALUES (7, '9', 't7', 1)")
    try await eventually("the new mirror", from: run) { try self.names(company).contains("all-9") }
    try await stage.quiet()
    let third = try await device(company, "account-9")
    try await eventually("the new space has the rows", from: run) {
      try await third.exchange()
      return try await third.rows(names) == [["brief"], ["long"], ["new"]]
    }
    try await stage.mirror(["status", "all"])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    try await stage.mirror(["verify", "all"])
    try await end(company)
  }

  @Test("each value has a space; a new value gets one while the group runs", arguments: ways)
  func newValues(capture: String) async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    let stage = company.stage
    let adopted = try await adopt(company, by: capture)
    #expect(adopted.output.contains("all-1   account-1"), "\(adopted.output)")
    #expect(adopted.output.contains("next: ferryd mirror run all"))
    let run = try stage.run("all")
    let (one, two) = (
      try await device(company, "account-1"), try await device(company, "account-2")
    )
    try await expect(one, ["t2", "t4", "t6"])
    try await expect(two, ["t1", "t3", "t5"])
    // A program's new account, a row moved into another new one, and a device's row.
    try stage.sql(
      """
      INSERT INTO tasks VALUES (10, '3', 'c1'), (11, '3', 'c2'), (12, '1', 'a');
      UPDATE tasks SET account = 'x-4' WHERE id = 2
      """)
    try await stage.eventuallyRows(
      "SELECT name FROM ferry_mirror.mirrors ORDER BY name",
      [["all-1"], ["all-2"], ["all-3"], ["all-x-4"]])
    try await stage.quiet()
    let three = try await device(company, "account-3")
    try await expect(three, ["c1", "c2"])
    try await expect(try await device(company, "account-x-4"), ["t2"])
    try await expect(one, ["t4", "t6", "a"])
    try await three.write("INSERT INTO tasks(id, title) VALUES (20, 'from a device')")
    try await three.exchange()
    try await stage.eventuallyRows(
      "SELECT account, title FROM tasks WHERE id = 20", [["3", "from a device"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "all"]).output == "0 rows differ\n")
    #expect(try await stage.mirror(["status", "all"]).output.contains("all-x-4  account-x-4"))
    try await end(company)
  }

  @Test(
    "values that programs write while the group is killed get their spaces in the next run",
    arguments: ways)
  func killed(capture: String) async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    let stage = company.stage
    _ = try await adopt(company, by: capture)
    for round in 1...4 {
      let run = try stage.run("all")
      try stage.sql("INSERT INTO tasks VALUES (\(100 + round), 'k\(round)', 'one')")
      // The kill comes at another place in each round.
      if round % 2 == 0 {
        try await eventually("the mirror of round \(round)", from: run) {
          try names(company).contains("all-k\(round)")
        }
      }
      run.send(SIGKILL)
      _ = try await run.exitStatus()
      try stage.sql("UPDATE tasks SET title = 'two' WHERE id = \(100 + round)")
    }
    let run = try stage.run("all")
    try await eventually("all mirrors", from: run) { try names(company).count == 6 }
    try await stage.quiet()
    for round in 1...4 {
      try await expect(try await device(company, "account-k\(round)"), ["two"])
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "all"]).output == "0 rows differ\n")
    #expect(try stage.rows("SELECT value FROM ferry_mirror.wanted") == [])
    try await end(company)
  }

  @Test(
    "the mirrors of a group share ten connections to the database, and two for the log",
    arguments: [("triggers", 10), ("log", 12)] as [(String, Int64)])
  func connections(capture: String, most: Int64) async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, account text, title text);
      INSERT INTO tasks SELECT i, i, 'old' FROM generate_series(1, 15) i
      """)
    let stage = company.stage
    _ = try await adopt(company, by: capture)
    let run = try stage.run("all")
    try stage.sql("UPDATE tasks SET title = 'new'")
    try await stage.quiet()
    // Processes of connections closed a moment ago may still be there.
    let watcher = try PostgresConnection(url: stage.database)
    try await eventually("at most \(most) connections", from: run) {
      let used = try watcher.query(
        .once(
          """
          SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
            AND backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()
          """)
      ).first?.int8(0)
      return used.map { $0 <= most } ?? false
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    try await end(company)
  }

  @Test("a value that no space can be named after is reported, and stops no other one")
  func unusable() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      Self.tasks + "; INSERT INTO tasks VALUES (7, 'a/b', 'x'), (8, NULL, 'y'), (9, '', 'z')")
    let stage = company.stage
    let adopted = try await adopt(company, "--space-name", "account-{}", exits: 1)
    let reason = "a/b has no mirror yet: no space can have the name “account-a/b”"
    #expect(adopted.output.contains(reason), "\(adopted.output)")
    #expect(try names(company) == ["all-1", "all-2"])
    #expect(try await stage.mirror(["status", "all"]).output.contains(reason))
    let verified = try await stage.mirror(["verify", "all"]).output
    for shown in ["a/b", "NULL", ""] {
      #expect(
        verified.contains("tasks: 1 row does not travel: no mirror has account \(shown)\n"),
        "\(verified)")
    }
    // The same command forgets a value without any row left.
    try stage.sql("UPDATE tasks SET account = '2' WHERE id = 7")
    #expect(try await !adopt(company).output.contains("a/b"))
    let run = try stage.run("all")
    try await expect(try await device(company, "account-2"), ["t1", "t3", "t5", "x"])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    // The group ends with all mirrors and triggers; the rows stay.
    try await stage.mirror(["remove", "all"])
    #expect(try names(company) == [])
    #expect(
      try stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
    #expect(try stage.rows("SELECT count(*)::text FROM tasks") == [["9"]])
    #expect(try await stage.mirror(["list"]).output.hasPrefix("there is no mirror"))
  }

  @Test("wrong patterns and options are refused, and change nothing")
  func refused() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    for (options, code, reason) in [
      (["--space-name", "account"], 1, "does not contain {} once"),
      (["--space-name", "{}/x"], 1, "cannot become a space's name"),
      (["--space-name", "a-{}", "--space", "b"], 2, "does not fit the other options"),
      (["--space-name", "a-{}", "--space-column", "account=1"], 2, "does not fit"),
      (["--space-name", "a-{}", "--space-column", "owner"], 1, "has no column owner"),
      (["--space", "b"], 2, "names no column and a value"),
    ] as [([String], Int32, String)] {
      let failed = try await company.stage.mirror(
        [
          "adopt", "all", "--server", company.server.url, "--database", company.stage.database,
          "--table", "tasks",
        ] + (options.contains("--space-column") ? [] : ["--space-column", "account"]) + options,
        exits: code)
      #expect(failed.error.contains(reason), "\(options): \(failed.error)")
    }
    #expect(
      try company.stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
    #expect(try await company.stage.mirror(["list"]).output.hasPrefix("there is no mirror"))
  }

  @Test("a mirror with the name of a group is refused, and the group stays as it is")
  func sameName() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    _ = try await adopt(company)
    for command in [["add", "all"], ["adopt", "all", "--table", "tasks"]] {
      let refused = try await company.stage.mirror(
        command + [
          "--server", "http://127.0.0.1:1", "--space", "other", "--database",
          company.stage.database,
        ], exits: 1)
      #expect(refused.error.contains("there is a group all"))
    }
    #expect(
      try await company.stage.mirror(["status", "all"]).output.contains("all-1   account-1"))
  }

  @Test("a mirror of a group that lost its entry hides no other one")
  func broken() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    _ = try await adopt(company)
    try company.stage.sql("DELETE FROM ferry_mirror.mirrors WHERE name = 'all-1'")
    let status = try await company.stage.mirror(["status", "all"], exits: 1).output
    #expect(status.contains("all-2   account-2") && status.contains("all-1: "))
    let json = try await company.stage.mirror(["status", "all", "--json"], exits: 1).output
    #expect(json.contains("\"mirror\":\"all-1\",\"error\":"))
    let verified = try await company.stage.mirror(["verify", "all"], exits: 1).output
    #expect(verified.contains("all-1: ") && verified.contains("0 rows differ"))
  }
}
