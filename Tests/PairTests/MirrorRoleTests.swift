import Ferry
import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// The role of a mirror, and roles of programs beside it. The SQL of Documentation/mirrors.md runs here.
@Suite("Roles of mirrors", .hangLimit)
struct MirrorRoleTests {
  typealias Stage = MirrorTests.Stage

  /// Roles with the page's rights in the database of a stage.
  struct Roles {
    let mirror: String
    let backend: String
    let stage: Stage

    /// - Parameter blocks: the places of the page's blocks of SQL to run.
    init(_ stage: Stage, blocks: [Int]) throws {
      let suffix = UUID().uuidString.prefix(8).lowercased()
      (mirror, backend, self.stage) = ("mirror_\(suffix)", "backend_\(suffix)", stage)
      let database = try stage.rows("SELECT current_database()::text")[0][0] ?? ""
      try stage.sql("CREATE ROLE \(backend) LOGIN PASSWORD 'secret'")
      let page = try DocumentedCode("Documentation/mirrors.md").text
      let section = try #require(page.components(separatedBy: "## The role\n").last)
      let all = section.components(separatedBy: "```sql\n").dropFirst().compactMap {
        $0.components(separatedBy: "```").first
      }
      for block in blocks {
        try stage.sql(
          all[block].replacing("crm_mirror", with: mirror).replacing("backend", with: backend)
            .replacing("company", with: database))
      }
    }

    /// The address of the database for a role.
    func url(_ role: String) throws -> String {
      var parts = try #require(URLComponents(string: stage.database))
      (parts.user, parts.password) = (role, "secret")
      return try #require(parts.string)
    }

    func connection(_ role: String) throws -> PostgresConnection {
      try PostgresConnection(url: try url(role))
    }

    /// Tests may share a server that outlives them.
    func drop() {
      try? stage.sql(
        "DROP OWNED BY \(mirror), \(backend) CASCADE; DROP ROLE \(mirror); DROP ROLE \(backend)")
    }
  }

  /// A server and a device with tables, and a database without a mirror.
  private static func stage() async throws -> Stage {
    let server = try await Server.start()
    let device = try await Device.joined(
      server.url, schema: MirrorTests.schema, tracking: ["lists", "tasks", "seats"])
    try await device.ferry("schema", "publish")
    try await device.exchange()
    return Stage(
      server: server, device: device, database: try await Server.database(),
      mirrors: try TemporaryDirectory())
  }

  private static func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test(
    "the page's rights suffice to add, run and remove a mirror, and programs need the tables alone")
  func add() async throws {
    let stage = try await Self.stage()
    let roles = try Roles(stage, blocks: [0, 1])
    defer { roles.drop() }
    let added = try await stage.mirror([
      "add", "crm", "--server", stage.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--schema", "app",
    ])
    #expect(!added.error.contains("warning"))
    let run = try stage.run()
    try await stage.device.write("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT title FROM app.tasks", [["one"]])
    let program = try roles.connection(roles.backend)
    try program.execute("UPDATE app.tasks SET title = 'two'")
    try await stage.quiet()
    try await stage.device.exchange()
    #expect(try await stage.device.rows("SELECT title FROM tasks") == [["two"]])
    #expect(throws: PostgresError.self) { try program.execute("DELETE FROM ferry_mirror.captured") }
    let status = try await stage.mirror(["status", "crm"])
    #expect(status.output.contains("role       \(roles.mirror)\n"))
    #expect(!status.output.contains("warning"))
    let mirror = try roles.connection(roles.mirror)
    #expect(throws: PostgresError.self) { try mirror.execute("COPY (SELECT 1) TO PROGRAM 'true'") }
    try await Self.stop(run)
    #expect(!run.error.contains("superuser"))
    try await stage.mirror(["remove", "crm"])
    #expect(try stage.rows("SELECT 'x' FROM pg_trigger WHERE tgname LIKE 'ferry%'") == [])
  }

  @Test("the page's rights suffice to adopt a company's tables, and to remove the triggers again")
  func adopt() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE lists(id text PRIMARY KEY, name text);
      CREATE TABLE tasks(id bigint PRIMARY KEY, title text, list text REFERENCES lists);
      INSERT INTO lists VALUES ('l', 'home'); INSERT INTO tasks VALUES (1, 'one', 'l')
      """)
    let stage = company.stage
    let roles = try Roles(stage, blocks: [0, 2])
    defer { roles.drop() }
    let adopted = try await stage.mirror([
      "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--table", "tasks", "--table", "lists",
    ])
    #expect(!adopted.error.contains("warning"))
    let run = try stage.run()
    try await company.join()
    try await stage.device.write("UPDATE tasks SET title = 'two'")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT title FROM tasks", [["two"]])
    try stage.sql("INSERT INTO tasks VALUES (2, 'three', 'l')")
    try await stage.quiet()
    try await Self.stop(run)
    try await stage.mirror(["remove", "crm"])
    #expect(try stage.rows("SELECT 'x' FROM pg_trigger WHERE tgname LIKE 'ferry%'") == [])
    #expect(try stage.rows("SELECT title FROM tasks ORDER BY id") == [["two"], ["three"]])
  }

  @Test("a column that the role may not change is read-only for devices, and the others go on")
  func columns() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE staff(id text PRIMARY KEY, name text, salary int NOT NULL DEFAULT 10);
      INSERT INTO staff VALUES ('a', 'Ada', 50)
      """)
    let (stage, device) = (company.stage, company.device)
    let roles = try Roles(stage, blocks: [0])
    defer { roles.drop() }
    try stage.sql(
      """
      GRANT USAGE ON SCHEMA public TO \(roles.mirror); GRANT SELECT, DELETE, TRIGGER ON staff TO \(roles.mirror);
      GRANT INSERT (id, name), UPDATE (name) ON staff TO \(roles.mirror)
      """)
    let adopted = try await stage.mirror([
      "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--table", "staff",
    ])
    for right in ["UPDATE", "INSERT"] {
      let line =
        "left out: writes of devices (salary) of table staff: the user of the database lacks \(right) on it"
      #expect(adopted.output.contains(line), "\(adopted.output)")
    }
    try await company.join()
    let run = try stage.run()
    try await device.write("UPDATE staff SET name = 'Eve', salary = 99")
    try await device.write("INSERT INTO staff VALUES ('b', 'Bob', 77)")
    let query = "SELECT id, name, CAST(salary AS text) FROM staff ORDER BY id"
    let rows: [[String?]] = [["a", "Eve", "50"], ["b", "Bob", "10"]]
    try await eventually("the rows are as the role may write them", from: run) {
      try await device.exchangeAll()
      let here = try await device.rows(query).map { $0.map(text(of:)) }
      return try here == rows && stage.rows(query) == rows
    }
    let entries = try await device.open().quarantine.entries()
    #expect(
      Set(entries.map(\.detail)) == ["permission denied for column salary of table staff"])
    try stage.sql("UPDATE staff SET salary = 60 WHERE id = 'a'")
    try await company.expectEqual(query, count: 2)
    try await stage.mirror(["status", "crm"])
    try await Self.stop(run)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }

  @Test("row-level security that concerns the role is refused before anything changes")
  func rowSecurity() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      "CREATE TABLE tasks(id bigint PRIMARY KEY); CREATE TABLE lists(id bigint PRIMARY KEY)")
    let stage = company.stage
    let roles = try Roles(stage, blocks: [0, 2])
    defer { roles.drop() }
    try stage.sql(
      """
      ALTER TABLE tasks OWNER TO \(roles.mirror); ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;
      ALTER TABLE tasks FORCE ROW LEVEL SECURITY
      """)
    let adopt = [
      "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--table", "tasks",
    ]
    let refused = try await stage.mirror(adopt, exits: 1)
    #expect(
      refused.error.contains(
        "row-level security of table public.tasks hides rows from role \(roles.mirror)"))
    #expect(refused.error.contains("run ALTER ROLE \(roles.mirror) BYPASSRLS"))
    #expect(try stage.rows("SELECT to_regclass('ferry_mirror.mirrors')::text") == [[nil]])
    #expect(try await company.device.open().schema().tables == [:])
    try stage.sql("ALTER ROLE \(roles.mirror) BYPASSRLS")
    try await stage.mirror(adopt)
  }

  @Test("a withdrawn right and row-level security end with exit code 4, and no row is lost")
  func rights() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE lists(id text PRIMARY KEY, name text);
      CREATE TABLE tasks(id bigint PRIMARY KEY, title text);
      INSERT INTO tasks VALUES (1, 'one'), (2, 'two')
      """)
    let (stage, tasks) = (company.stage, "SELECT title FROM tasks ORDER BY tasks.id")
    let roles = try Roles(stage, blocks: [0, 2])
    defer { roles.drop() }
    try await stage.mirror([
      "adopt", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--table", "tasks", "--table", "lists",
    ])
    try await company.join()
    let run = try stage.run()
    try stage.sql("REVOKE SELECT ON tasks FROM \(roles.mirror)")
    try await company.device.write("UPDATE tasks SET title = 'eins' WHERE id = 1")
    try await company.device.exchange()
    try await stage.eventuallyRows(
      "SELECT (fault <> '')::text FROM ferry_mirror.mirrors", [["true"]])
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("fault      "), "\(status)")
    _ = try await run.line { $0.contains("stopped: ") && $0.contains("permission denied") }
    try stage.sql("GRANT SELECT ON tasks TO \(roles.mirror)")
    try await stage.eventuallyRows(tasks, [["eins"], ["two"]])
    try await stage.eventuallyRows("SELECT fault FROM ferry_mirror.mirrors", [[""]])
    try await stage.mirror(["status", "crm"])
    // The mirror would see no row, and take all of them for deleted.
    try stage.sql(
      "ALTER TABLE tasks ENABLE ROW LEVEL SECURITY; INSERT INTO tasks VALUES (3, 'three')")
    #expect(try await run.exitStatus() == .exited(4))
    let stopped = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(stopped.contains("table tasks: row-level security hides rows"), "\(stopped)")
    try await stage.mirror(["verify", "crm", "--repair", "space"], exits: 4)
    try stage.sql("ALTER ROLE \(roles.mirror) BYPASSRLS")
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try await company.expectEqual(tasks, count: 3)
  }

  @Test("a role that may run programs on the server is reported by command, log and status")
  func warnings() async throws {
    let stage = try await Self.stage()
    let roles = try Roles(stage, blocks: [0, 1])
    defer { roles.drop() }
    try stage.sql("GRANT pg_execute_server_program TO \(roles.mirror)")
    let added = try await stage.mirror([
      "add", "crm", "--server", stage.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--schema", "app",
    ])
    let reason = "role \(roles.mirror) has rights beyond its database: pg_execute_server_program"
    #expect(added.error.contains("warning: \(reason)"))
    let status = try await stage.mirror(["status", "crm"])
    #expect(status.output.contains("warning    \(reason)"))
    let json = try await stage.mirror(["status", "crm", "--json"])
    #expect(json.output.contains("\"warning\":\"\(reason)\""))
    let run = try stage.run()
    _ = try await run.line { $0.contains(reason) }
    try await Self.stop(run)
    // To be a member of a superuser's role is enough.
    try stage.sql("CREATE ROLE \(roles.mirror)_top SUPERUSER")
    try stage.sql("GRANT \(roles.mirror)_top TO \(roles.mirror)")
    defer { try? stage.sql("DROP ROLE \(roles.mirror)_top") }
    #expect(try roles.connection(roles.mirror).role().isSuperuser)
    #expect(try await stage.mirror(["status", "crm"]).output.contains("is a superuser"))
    #expect(try roles.connection(roles.backend).role() == PostgresRole(name: roles.backend))
  }

  @Test("a program of another role that sets the mirror's settings hides no write")
  func settings() async throws {
    let stage = try await Self.stage()
    let roles = try Roles(stage, blocks: [0, 1])
    defer { roles.drop() }
    try await stage.mirror([
      "add", "crm", "--server", stage.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--schema", "app",
    ])
    let number = try stage.rows("SELECT number::text FROM ferry_mirror.mirrors")[0][0] ?? ""
    try roles.connection(roles.backend).execute(
      """
      SELECT set_config('ferry.mirror', '\(number)', false);
      SELECT set_config('ferry.table', 'app.tasks'::regclass::oid::text, false);
      INSERT INTO app.tasks(id, title) VALUES ('a', 'hidden');
      UPDATE app.tasks SET title = 'seen'
      """)
    #expect(
      try stage.rows("SELECT kind::text FROM ferry_mirror.captured ORDER BY id") == [["I"], ["U"]])
    let run = try stage.run()
    try await stage.quiet()
    try await Self.stop(run)
    try await stage.device.exchange()
    #expect(try await stage.device.rows("SELECT title FROM tasks") == [["seen"]])
  }
}

private func text(of value: Value) -> String? {
  switch value {
  case .text(let text): text
  default: nil
  }
}
