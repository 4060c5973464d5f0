import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Rights of a mirror's role that the company withdraws and grants, and tables that the role may only
/// read.
@Suite("Rights of a mirror's role", .hangLimit)
struct MirrorRightsTests {
  private typealias Company = MirrorAdoptionTests.Company
  private typealias Roles = MirrorRoleTests.Roles

  private static let staff = """
    CREATE TABLE staff(id text PRIMARY KEY, name text, salary int NOT NULL DEFAULT 10);
    INSERT INTO staff VALUES ('a', 'Ada', 50), ('b', 'Bob', 60), ('c', 'Cy', 70)
    """
  private static let rows = "SELECT id, name, CAST(salary AS text) FROM staff ORDER BY staff.id"
  private static let all = "SELECT, INSERT, UPDATE, DELETE, TRIGGER"

  /// Adopts tables as a role with rights on them.
  private func adopt(
    _ company: Company, _ roles: Roles, _ tables: String..., rights: String = Self.all,
    more: [String] = ["--space", Device.space]
  ) async throws -> ChildProcess.Finished {
    let (stage, names) = (company.stage, tables.joined(separator: ", "))
    try stage.sql(
      """
      GRANT USAGE ON SCHEMA public TO \(roles.mirror); GRANT \(rights) ON \(names) TO \(roles.mirror)
      """)
    return try await stage.mirror(
      ["adopt", "crm", "--server", company.server.url, "--database", try roles.url(roles.mirror)]
        + tables.flatMap { ["--table", $0] } + more)
  }

  private func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  private func details(_ device: Device) async throws -> [String] {
    try await device.open().quarantine.entries().map(\.detail)
  }

  @Test("a right withdrawn and granted again while the mirror runs counts from the next write on")
  func running() async throws {
    let company = try await Company.make(Self.staff)
    let (stage, device) = (company.stage, company.device)
    let roles = try Roles(stage, blocks: [0])
    defer { roles.drop() }
    let adopted = try await adopt(company, roles, "staff")
    #expect(!adopted.output.contains("left out"), "\(adopted.output)")
    try await company.join()
    let run = try stage.run()
    try await device.write("UPDATE staff SET salary = 51 WHERE id = 'a'")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT salary::text FROM staff WHERE id = 'a'", [["51"]])
    try stage.sql(
      "REVOKE UPDATE ON staff FROM \(roles.mirror); GRANT UPDATE (name) ON staff TO \(roles.mirror)"
    )
    try await device.write("UPDATE staff SET name = 'Eve', salary = 99 WHERE id = 'a'")
    try await device.exchangeAll()
    _ = try await run.line { $0.contains("followed: table staff: UPDATE (salary) withdrawn") }
    try await stage.eventuallyRows("SELECT name FROM staff WHERE id = 'a'", [["Eve"]])
    try await company.expectEqual(Self.rows, count: 3)
    #expect(try stage.rows("SELECT salary::text FROM staff WHERE id = 'a'") == [["51"]])
    #expect(
      Set(try await details(device)) == ["permission denied for column salary of table staff"])
    try stage.sql("GRANT UPDATE ON staff TO \(roles.mirror)")
    try await device.write("UPDATE staff SET salary = 52 WHERE id = 'a'")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT salary::text FROM staff WHERE id = 'a'", [["52"]])
    // Without a right to write, each write goes back, and the company's writes go on.
    try stage.sql(
      """
      REVOKE INSERT, UPDATE, DELETE ON staff FROM \(roles.mirror);
      GRANT UPDATE (id) ON staff TO \(roles.mirror)
      """)
    try await device.write(
      """
      UPDATE staff SET salary = 1 WHERE id = 'a'; INSERT INTO staff VALUES ('d', 'Di', 80);
      DELETE FROM staff WHERE id = 'b'
      """)
    try await device.exchangeAll()
    _ = try await run.line { $0.contains("INSERT, DELETE, UPDATE (name, salary) withdrawn") }
    try stage.sql("UPDATE staff SET salary = 71 WHERE id = 'c'")
    try await company.expectEqual(Self.rows, count: 3)
    #expect(try stage.rows("SELECT sum(salary)::text FROM staff") == [["183"]])
    #expect(Set(try await details(device)).contains("permission denied for table staff"))
    try await stage.mirror(["status", "crm"])
    #expect(try await stage.mirror(["plan", "crm"]).output.contains("the space has it"))
    // A role that can lock no row cannot go on, until it may again.
    try stage.sql("REVOKE UPDATE (id) ON staff FROM \(roles.mirror)")
    try await device.write("UPDATE staff SET salary = 2 WHERE id = 'c'")
    try await device.exchangeAll()
    _ = try await run.line {
      $0.contains("stopped") && $0.contains("permission denied for table staff")
    }
    try stage.sql("GRANT UPDATE (id) ON staff TO \(roles.mirror)")
    try await company.expectEqual(Self.rows, count: 3)
    #expect(try stage.rows("SELECT salary::text FROM staff WHERE id = 'c'") == [["71"]])
    try await stop(run)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }

  @Test("rights withdrawn while the mirror is down are planned, and followed at the next start")
  func down() async throws {
    let company = try await Company.make(Self.staff)
    let (stage, device) = (company.stage, company.device)
    let roles = try Roles(stage, blocks: [0])
    defer { roles.drop() }
    _ = try await adopt(company, roles, "staff")
    try await company.join()
    try stage.sql("REVOKE INSERT, DELETE ON staff FROM \(roles.mirror)")
    let plan = try await stage.mirror(["plan", "crm"]).output
    for line in [
      "definition staff: is followed: INSERT, DELETE withdrawn",
      "left out   staff: writes of devices: the user of the database lacks INSERT, DELETE on it",
    ] {
      #expect(plan.contains(line), "\(plan)")
    }
    try await device.write(
      """
      UPDATE staff SET salary = 1 WHERE id = 'a'; INSERT INTO staff VALUES ('d', 'Di', 80);
      DELETE FROM staff WHERE id = 'b'
      """)
    try await device.exchangeAll()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT salary::text FROM staff WHERE id = 'a'", [["1"]])
    try await company.expectEqual(Self.rows, count: 3)
    let reasons = try await details(device)
    #expect(Set(reasons) == ["permission denied for table staff"] && reasons.count == 2)
    try await stop(run)
    let followed = try await stage.mirror(["plan", "crm"]).output
    #expect(followed.contains("definition staff: the space has it"), "\(followed)")
    try stage.sql("GRANT INSERT, DELETE ON staff TO \(roles.mirror)")
    // The same adoption again is the same mirror.
    _ = try await adopt(company, roles, "staff")
    try await device.write("DELETE FROM staff WHERE id = 'b'")
    try await device.exchangeAll()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try stage.rows("SELECT id FROM staff ORDER BY id") == [["a"], ["c"]])
  }

  @Test("a table that the role may only read is adopted whole, and read-only for devices")
  func readOnly() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE countries(id int PRIMARY KEY, name text);
      CREATE TABLE orders(id text PRIMARY KEY, country int REFERENCES countries);
      INSERT INTO countries SELECT i, 'country ' || i FROM generate_series(1, 1500) i
      """)
    let (stage, device) = (company.stage, company.device)
    let roles = try Roles(stage, blocks: [0])
    defer { roles.drop() }
    try stage.sql("GRANT \(Self.all) ON orders TO \(roles.mirror)")
    let adopted = try await adopt(
      company, roles, "countries", rights: "SELECT, TRIGGER, UPDATE (id)",
      more: ["--space", Device.space, "--table", "orders"])
    for left in [
      "to table countries: the user of the database lacks INSERT, DELETE on it",
      "(name) of table countries: the user of the database lacks UPDATE on it",
    ] {
      #expect(adopted.output.contains("left out: writes of devices " + left), "\(adopted.output)")
    }
    #expect(adopted.output.contains("adopted    countries: 1,500 rows"), "\(adopted.output)")
    try await company.join()
    try await device.write(
      """
      UPDATE countries SET name = 'mine' WHERE id IN (1, 2); INSERT INTO countries VALUES (2000, 'own');
      DELETE FROM countries WHERE id = 3; INSERT INTO orders VALUES ('good', 2), ('bad', 2000)
      """)
    try await device.exchangeAll()
    try stage.sql("UPDATE countries SET name = 'newest' WHERE id = 1")
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM orders", [["good"]])
    try await company.expectEqual(
      "SELECT CAST(id AS text), name FROM countries WHERE id < 4 OR id > 1500 ORDER BY countries.id",
      count: 3)
    try await company.expectEqual("SELECT id FROM orders ORDER BY orders.id", count: 1)
    #expect(try stage.rows("SELECT name FROM countries WHERE id = 1") == [["newest"]])
    #expect(Set(try await details(device)).contains("permission denied for table countries"))
    try await stage.mirror(["status", "crm"])
    // A new column is followed without the right to lock the table.
    try stage.sql(
      "ALTER TABLE countries ADD COLUMN code text; UPDATE countries SET code = 'x' WHERE id = 2")
    _ = try await run.line { $0.contains("followed: table countries: code new") }
    try await stage.quiet()
    try await stop(run)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await stage.mirror(["remove", "crm"])
    #expect(try stage.rows("SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'ferry%'") == [])
  }

  @Test("the mirrors of a group follow rights, and a shared table may be read-only")
  func group() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE kinds(id int PRIMARY KEY, name text); INSERT INTO kinds VALUES (1, 'short');
      CREATE TABLE tasks(id text PRIMARY KEY, account text, title text);
      INSERT INTO tasks VALUES ('a', '1', 'one'), ('b', '2', 'two')
      """)
    let stage = company.stage
    let roles = try Roles(stage, blocks: [0])
    defer { roles.drop() }
    try stage.sql("GRANT SELECT, TRIGGER, UPDATE (id) ON kinds TO \(roles.mirror)")
    _ = try await adopt(
      company, roles, "tasks",
      more: ["--space-column", "account", "--space-name", "account-{}", "--shared", "kinds"])
    let device = try Device()
    try await device.ferry("init", "--server", company.server.url, "--space", "account-1")
    try await device.exchange()
    try await device.ferry("track", "--create", "--all")
    try await device.exchange()
    let run = try stage.run("crm")
    func expect(_ query: String, _ rows: [[Value]]) async throws {
      try await eventually("\(rows)", from: run) {
        try await device.exchangeAll()
        return try await device.rows(query) == rows
      }
    }
    try await device.write("UPDATE kinds SET name = 'mine'; INSERT INTO kinds VALUES (2, 'own')")
    try await expect("SELECT name FROM kinds", [["short"]])
    let denied = ["column name of table kinds", "table kinds"].map { "permission denied for \($0)" }
    #expect(Set(try await details(device)) == Set(denied))
    try stage.sql(
      "REVOKE UPDATE ON tasks FROM \(roles.mirror); GRANT UPDATE (id) ON tasks TO \(roles.mirror)")
    try await device.write("UPDATE tasks SET title = 'mine'")
    try await expect("SELECT title FROM tasks", [["one"]])
    try stage.sql("GRANT UPDATE ON tasks TO \(roles.mirror)")
    try await device.write("UPDATE tasks SET title = 'again'")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT title FROM tasks ORDER BY id", [["again"], ["two"]])
    try await stop(run)
    try await stage.mirror(["verify", "crm"])
  }
}
