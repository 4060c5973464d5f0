import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Tables changed by a company while devices go on with the former ones.
@Suite("Followed definitions of a company's tables", .hangLimit)
struct MirrorFollowingTests {
  typealias Company = MirrorAdoptionTests.Company

  static let captures = ["triggers", "log"]

  private static func adopted(_ capture: String, more: String = "") async throws -> Company {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, title varchar(9), n int\(more));
      INSERT INTO tasks VALUES (1, 'one', 1), (2, 'two', 2)
      """)
    try await company.adopt("--table", "tasks", "--capture", capture)
    try await company.join()
    return company
  }

  /// Returns the company with a new device, made from the space's present definitions.
  private static func withNewDevice(_ company: Company) async throws -> Company {
    let device = try Device()
    try await device.ferry("init", "--server", company.server.url, "--space", Device.space)
    let stage = MirrorTests.Stage(
      server: company.server, device: device, database: company.stage.database,
      mirrors: company.stage.mirrors)
    let other = Company(server: company.server, stage: stage)
    try await other.join()
    return other
  }

  /// Ends a mirror; PostgreSQL would keep the log for it.
  private static func end(_ run: ChildProcess, _ company: Company) async throws {
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
    #expect(try await company.stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await company.stage.mirror(["status", "crm"])
    try await company.stage.mirror(["remove", "crm"])
  }

  @Test(
    "a new column reaches new devices with all values, and old devices erase none",
    arguments: captures)
  func added(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    let run = try stage.run()
    try stage.sql("UPDATE tasks SET n = 3 WHERE id = 1")
    try await stage.quiet()
    try stage.sql(
      """
      ALTER TABLE tasks ADD note text, ADD state text NOT NULL DEFAULT 'open',
        ADD made timestamptz NOT NULL DEFAULT now();
      UPDATE tasks SET note = 'n' || id; UPDATE tasks SET n = n + 1, state = 'done' WHERE id = 2
      """)
    _ = try await run.line { $0.contains("followed") && $0.contains("note, state, made new") }
    try await device.write(
      "UPDATE tasks SET title = 'eins' WHERE id = 1; INSERT INTO tasks VALUES (3, 'three', 3)")
    try await device.exchangeAll()
    try await stage.eventuallyRows(
      "SELECT title, note, state, (made IS NOT NULL)::text FROM tasks ORDER BY id",
      [
        ["eins", "n1", "open", "true"], ["two", "n2", "done", "true"],
        ["three", nil, "open", "true"],
      ])
    let other = try await Self.withNewDevice(company)
    try stage.sql("UPDATE tasks SET note = 'later' WHERE id = 3")
    let query =
      "SELECT CAST(id AS text), title, CAST(n AS text), note, state FROM tasks ORDER BY id"
    try await other.expectEqual(query, count: 3)
    try await other.device.write("UPDATE tasks SET note = 'device' WHERE id = 2")
    try await other.device.exchangeAll()
    try await other.expectEqual(query, count: 3)
    #expect(try stage.rows("SELECT state FROM tasks WHERE id = 2") == [["done"]])
    // The old device gets the values with the column.
    try await device.write("ALTER TABLE tasks ADD COLUMN note TEXT")
    try await company.expectEqual(
      "SELECT CAST(id AS text), title, note FROM tasks ORDER BY id", count: 3)
    try await Self.end(run, company)
  }

  @Test("a dropped column leaves the mirror, and devices that have it go on", arguments: captures)
  func dropped(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    var run = try stage.run()
    try stage.sql("UPDATE tasks SET n = 3 WHERE id = 1")
    try await stage.quiet()
    try stage.sql(
      """
      ALTER TABLE tasks DROP COLUMN title; UPDATE tasks SET n = 9; DELETE FROM tasks WHERE id = 1;
      INSERT INTO tasks VALUES (3, 3)
      """)
    let query = "SELECT CAST(id AS text), CAST(n AS text) FROM tasks ORDER BY id"
    try await company.expectEqual(query, count: 2)
    try await device.write("UPDATE tasks SET title = 'zwei', n = n + 1 WHERE id = 2")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT n::text FROM tasks WHERE id = 2", [["10"]])
    #expect(try await device.rows("SELECT title FROM tasks WHERE id = 2") == [["zwei"]])
    let other = try await Self.withNewDevice(company)
    try await other.expectEqual(query, count: 2)
    #expect(
      try await other.device.rows("SELECT name FROM pragma_table_info('tasks')") == [["id"], ["n"]])
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
    // The same name again is a new column: the values are the company's.
    try stage.sql(
      """
      INSERT INTO tasks VALUES (4, 4); ALTER TABLE tasks ADD title text DEFAULT 'new';
      UPDATE tasks SET title = 'zwo' WHERE id = 2
      """)
    try await device.write("UPDATE tasks SET n = 11 WHERE id = 2")
    try await device.exchangeAll()
    run = try stage.run()
    try await stage.eventuallyRows("SELECT n::text FROM tasks WHERE id = 2", [["11"]])
    try await company.expectEqual(
      "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY id", count: 3)
    try await Self.end(run, company)
  }

  /// Compares all rows with those of a device, which has the first name of the column.
  private static func expectEqual(_ company: Company, _ name: String, count: Int) async throws {
    let query = "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY id"
    try await company.expectEqual(
      query.replacing("title", with: name), here: query, count: count)
  }

  @Test(
    "a renamed column keeps the name of the space, on old devices and on new ones",
    arguments: captures)
  func renamed(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    var run = try stage.run()
    try stage.sql("UPDATE tasks SET n = 3 WHERE id = 1")
    try await stage.quiet()
    try await device.write("UPDATE tasks SET title = 'unsent', n = 7 WHERE id = 1")
    try stage.sql(
      """
      INSERT INTO tasks VALUES (3, 'three', 3); ALTER TABLE tasks RENAME title TO name;
      UPDATE tasks SET name = 'zwei' WHERE id = 2; INSERT INTO tasks VALUES (4, 'four', 4)
      """)
    _ = try await run.line { $0.contains("followed") && $0.contains("title is named name") }
    try await Self.expectEqual(company, "name", count: 4)
    try await stage.eventuallyRows(
      "SELECT name FROM tasks ORDER BY id", [["unsent"], ["zwei"], ["three"], ["four"]])
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
    // Another name while the mirror is away, beside a device's edit and a new column of the first
    // name.
    try await device.write("UPDATE tasks SET title = 'device' WHERE id = 3")
    try await device.exchangeAll()
    try stage.sql(
      """
      UPDATE tasks SET name = 'vier' WHERE id = 4; ALTER TABLE tasks RENAME name TO label;
      UPDATE tasks SET label = 'eins' WHERE id = 1
      """)
    let plan = try await stage.mirror(["plan", "crm"]).output
    #expect(plan.contains("is followed: name is named label"), "\(plan)")
    run = try stage.run()
    try await Self.expectEqual(company, "label", count: 4)
    #expect(
      try stage.rows("SELECT label FROM tasks ORDER BY id")
        == [["eins"], ["zwei"], ["device"], ["vier"]])
    try stage.sql("ALTER TABLE tasks ADD title text DEFAULT 'other'")
    let other = try await Self.withNewDevice(company)
    try await Self.expectEqual(other, "label", count: 4)
    #expect(
      try await other.device.rows("SELECT name FROM pragma_table_info('tasks')")
        == [["id"], ["title"], ["n"]])
    try await other.device.write("INSERT INTO tasks VALUES (5, 'new', 5)")
    try await other.device.exchangeAll()
    try await Self.expectEqual(company, "label", count: 5)
    try stage.sql("ALTER TABLE tasks DROP title; ALTER TABLE tasks RENAME label TO title")
    try stage.sql("UPDATE tasks SET title = title || '!'")
    try await Self.expectEqual(company, "title", count: 5)
    try await Self.end(run, company)
  }

  /// Gives columns other names, runs `writes`, and gives them the former names again.
  private static func renameForAWhile(
    _ company: Company, _ names: [(String, String)], _ writes: String
  ) throws {
    for (former, new) in names {
      try company.stage.sql("ALTER TABLE tasks RENAME \(former) TO \(new)")
    }
    try company.stage.sql(writes)
    for (former, new) in names.reversed() {
      try company.stage.sql("ALTER TABLE tasks RENAME \(new) TO \(former)")
    }
  }

  @Test(
    "a column that has its name again loses no write of meanwhile, and no person has to help",
    arguments: captures)
  func renamedBack(_ capture: String) async throws {
    let company = try await Self.adopted(capture, more: ", sum int NOT NULL DEFAULT 100")
    let (stage, device) = (company.stage, company.device)
    let replica = try await device.open()
    var schema = try await replica.schema()
    schema.tables["tasks"]?.columns["sum"] = ColumnRules(policy: .counter)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try await stage.mirror(["verify", "crm"])
    try Self.renameForAWhile(
      company, [("title", "name")],
      """
      UPDATE tasks SET name = 'eins', sum = sum + 1 WHERE id = 1;
      UPDATE tasks SET n = 9 WHERE id = 2;
      INSERT INTO tasks VALUES (3, 'three', 3), (4, 'four', 4)
      """)
    try stage.sql(
      """
      UPDATE tasks SET n = 5 WHERE id = 1; DELETE FROM tasks WHERE id = 4;
      UPDATE tasks SET sum = sum - 40 WHERE id < 3
      """)
    try await device.write("UPDATE tasks SET title = 'zwei', sum = sum + 5 WHERE id = 2")
    try await device.exchangeAll()
    var run = try stage.run()
    let query = "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY id"
    try await company.expectEqual(query, count: 3)
    try await stage.eventuallyRows("SELECT title FROM tasks WHERE id = 2", [["zwei"]])
    // Captured amounts count once, also beside those that were not.
    try await company.expectEqual("SELECT CAST(sum AS text) FROM tasks ORDER BY id", count: 3)
    try await stage.eventuallyRows(
      "SELECT sum::text FROM tasks ORDER BY id", [["61"], ["65"], ["100"]])
    // The running mirror meets any state in between.
    for count in 1...8 {
      try Self.renameForAWhile(
        company, [("title", "name")],
        "UPDATE tasks SET name = left(name, 4) || '\(count)', n = n + 1 WHERE id < 3")
      try stage.sql("UPDATE tasks SET n = n + 1 WHERE id = 3")
    }
    try await company.expectEqual(query, count: 3)
    #expect(try stage.rows("SELECT title FROM tasks WHERE id = 1") == [["eins8"]])
    // Triggers do not see another column of the same name.
    if capture == "triggers" { return try await Self.end(run, company) }
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
    try Self.renameForAWhile(
      company, [("title", "x"), ("n", "title"), ("x", "n")],
      "UPDATE tasks SET n = 'drei', title = 33 WHERE id = 3; INSERT INTO tasks VALUES (5, 'five', 5)"
    )
    run = try stage.run()
    try await company.expectEqual(query, count: 4)
    #expect(try await device.rows("SELECT title, n FROM tasks WHERE id = 3") == [["drei", 33]])
    try await Self.end(run, company)
  }

  @Test(
    "a table with another name stops the mirror, and the former name ends the stop without a loss",
    arguments: captures)
  func renamedTable(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    var run = try stage.run()
    try stage.sql("UPDATE tasks SET n = 3 WHERE id = 1")
    try await stage.quiet()
    try stage.sql(
      """
      ALTER TABLE tasks RENAME TO jobs; UPDATE jobs SET title = 'eins' WHERE id = 1;
      INSERT INTO jobs VALUES (3, 'three', 3); DELETE FROM jobs WHERE id = 2
      """)
    #expect(try await run.exitStatus() == .exited(4))
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("stopped    table tasks: "), "\(status)")
    #expect(status.contains("former names and types, and start the mirror again"), "\(status)")
    try await device.write("UPDATE tasks SET n = 7 WHERE id = 1")
    try await device.exchangeAll()
    try await stage.mirror(["run", "crm"], exits: 4)
    try stage.sql(
      """
      UPDATE jobs SET title = 'drei' WHERE id = 3; ALTER TABLE jobs RENAME TO tasks;
      INSERT INTO tasks VALUES (4, 'four', 4)
      """)
    run = try stage.run()
    try await company.expectEqual(
      "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY id", count: 3)
    #expect(
      try stage.rows("SELECT id::text, title FROM tasks ORDER BY id")
        == [["1", "eins"], ["3", "drei"], ["4", "four"]])
    try await Self.end(run, company)
  }

  @Test(
    "other types with the same values on devices are followed, also with other values",
    arguments: captures)
  func types(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let stage = company.stage
    let open = try PostgresConnection(url: stage.database)
    try open.execute("UPDATE tasks SET n = n + 1, title = title || '!'")
    let run = try stage.run()
    try await stage.quiet()
    try stage.sql(
      "ALTER TABLE tasks ALTER n TYPE bigint USING n * 10, ALTER title TYPE text")
    try open.execute(
      "UPDATE tasks SET n = 5000000000, title = 'much longer than nine' WHERE id = 1")
    try open.execute("INSERT INTO tasks VALUES (3, 'three', 3)")
    let query = "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY id"
    try await company.expectEqual(query, count: 3)
    #expect(try stage.rows("SELECT n::text FROM tasks WHERE id = 2") == [["30"]])
    try open.execute("UPDATE tasks SET n = 6000000000 WHERE id = 1")
    try await company.expectEqual(query, count: 3)
    try await Self.end(run, company)
  }

  @Test(
    "a type that is another one on devices stops the mirror until it is as before",
    arguments: captures)
  func unlike(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let stage = company.stage
    try stage.sql("ALTER TABLE tasks ALTER n TYPE text; UPDATE tasks SET n = n || ' pieces'")
    try await stage.mirror(["run", "crm"], exits: 4)
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(
      status.contains("column n is integer on devices, and its new type would be text"),
      "\(status)")
    #expect(
      try await company.device.rows("SELECT n FROM tasks ORDER BY id") == [[1], [2]])
    try stage.sql("ALTER TABLE tasks ALTER n TYPE int USING split_part(n, ' ', 1)::int + 1")
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    let run = try stage.run()
    try await company.expectEqual(
      "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY id", count: 2)
    try await Self.end(run, company)
  }

  @Test(
    "kills between a change and the mirror's end of it change nothing in the result",
    arguments: captures)
  func kills(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    for count in 1...6 {
      let run = try stage.run()
      try stage.sql(
        """
        ALTER TABLE tasks ADD c\(count) int DEFAULT \(count);
        UPDATE tasks SET c\(count) = n, n = n + 1 WHERE id = 1
        """)
      if count % 2 == 0 {
        let names = ["title", "name"]
        let (former, new) = (names[(count / 2 + 1) % 2], names[count / 2 % 2])
        try stage.sql(
          """
          ALTER TABLE tasks DROP c\(count - 1); ALTER TABLE tasks RENAME \(former) TO \(new);
          UPDATE tasks SET n = n + 1, \(new) = \(new) || '\(count)' WHERE id = 1
          """)
      }
      try await device.write("UPDATE tasks SET title = 'd\(count)' WHERE id = 2")
      try await device.exchangeAll()
      // Each time a bit further.
      for _ in 0..<count { try await device.exchangeAll() }
      run.send(SIGKILL)
      _ = try await run.exitStatus()
    }
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT name FROM tasks ORDER BY id", [["one246"], ["d6"]])
    let other = try await Self.withNewDevice(company)
    try await Self.expectEqual(other, "name", count: 2)
    try await other.expectEqual(
      """
      SELECT CAST(id AS text), CAST(n AS text), CAST(c2 AS text), CAST(c4 AS text),
        CAST(c6 AS text) FROM tasks ORDER BY id
      """, count: 2)
    try await Self.end(run, company)
  }
}
