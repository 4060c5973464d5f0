import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Tables changed by a company while a mirror records their writes. No write of the company fails.
@Suite("Changed definitions of mirrored tables", .hangLimit)
struct MirrorDefinitionTests {
  typealias Company = MirrorAdoptionTests.Company

  private static let tasks =
    "SELECT CAST(id AS text), title, CAST(n AS text) FROM tasks ORDER BY tasks.id"

  private static func adopted() async throws -> Company {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, title varchar(9), n int);
      INSERT INTO tasks VALUES (1, 'one', 1), (2, 'two', 2)
      """)
    try await company.adopt("--table", "tasks")
    try await company.join()
    return company
  }

  /// Compares all rows, and checks the running mirror.
  ///
  /// - Parameter isFollowed: whether the mirror goes on by itself.
  private static func resume(_ company: Company, isFollowed: Bool = false) async throws {
    let stage = company.stage
    try await stage.mirror(["verify", "crm"], exits: isFollowed ? 0 : 4)
    if !isFollowed { try await stage.mirror(["verify", "crm", "--repair", "space"]) }
    try await stage.mirror(["status", "crm"])
    let run = try stage.run()
    try stage.sql("INSERT INTO tasks(id, title, n) VALUES (50, 'after', 0)")
    try await company.expectEqual(tasks)
    #expect(try await company.device.rows("SELECT title FROM tasks WHERE id = 50") == [["after"]])
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
  }

  @Test("a renamed key fails no write; the mirror stops, says so, and undoes nothing")
  func renamed() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let run = try stage.run()
    try stage.sql("UPDATE tasks SET n = 3 WHERE id = 1")
    try await stage.quiet()
    try stage.sql(
      """
      ALTER TABLE tasks RENAME id TO number;
      UPDATE tasks SET title = 'eins', n = 4 WHERE number = 1;
      INSERT INTO tasks VALUES (3, 'drei', 3); DELETE FROM tasks WHERE number = 2
      """)
    #expect(try await run.exitStatus() == .exited(4))
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("stopped    table tasks: "), "\(status)")
    #expect(status.contains("ferryd mirror verify crm --repair space"), "\(status)")
    // A server with the mirror reports this, and no write fails meanwhile.
    let server = try await Server.start(
      .embedded, ["--mirror", "crm", "--mirrors", stage.mirrors.url.path])
    try await eventually("the metrics name it") {
      try await Wire.send(.get, "\(server.url)/metrics").text
        .contains("ferry_mirror_stopped{mirror=\"crm\"} 1\n")
    }
    try await server.kill()
    try await company.device.write("UPDATE tasks SET title = 'device' WHERE id = 1")
    try await company.device.exchange()
    try await stage.mirror(["run", "crm"], exits: 4)
    #expect(
      try stage.rows("SELECT number::text, title FROM tasks ORDER BY number") == [
        ["1", "eins"], ["3", "drei"],
      ])
    try stage.sql("TRUNCATE tasks; INSERT INTO tasks VALUES (1, 'eins', 4), (3, 'drei', 3)")
    try stage.sql("ALTER TABLE tasks RENAME number TO id")
    try await Self.resume(company, isFollowed: true)
  }

  @Test("a required column of the company alone stops no device's change of an existing row")
  func required() async throws {
    let company = try await Self.adopted()
    let (stage, device) = (company.stage, company.device)
    try stage.sql(
      """
      ALTER TABLE tasks ADD COLUMN need text; UPDATE tasks SET need = 'x' || id;
      ALTER TABLE tasks ALTER need SET NOT NULL
      """)
    let run = try stage.run()
    try await device.write(
      "UPDATE tasks SET title = 'eins' WHERE id = 1; INSERT INTO tasks VALUES (3, 'three', 3)")
    try await device.exchangeAll()
    _ = try await run.line { $0.contains("returned: tasks 3: null value in column") }
    try await stage.eventuallyRows(
      "SELECT id::text, title, need FROM tasks ORDER BY id",
      [["1", "eins", "x1"], ["2", "two", "x2"]])
    try await company.expectEqual(Self.tasks, count: 2)
    try await stage.mirror(["status", "crm"])
    try stage.sql("ALTER TABLE tasks ALTER need SET DEFAULT 'new'")
    try await device.write("INSERT INTO tasks VALUES (3, 'three', 3)")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT need FROM tasks WHERE id = 3", [["new"]])
    try await company.expectEqual(Self.tasks, count: 3)
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
  }

  @Test("disabled triggers stop a running mirror, although nothing travels")
  func disabled() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let run = try stage.run()
    try stage.sql("UPDATE tasks SET n = 3 WHERE id = 1")
    try await stage.quiet()
    try stage.sql("ALTER TABLE tasks DISABLE TRIGGER ALL; UPDATE tasks SET n = 5 WHERE id = 2")
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("table tasks: triggers of the mirror are gone"), "\(status)")
    #expect(try await run.exitStatus() == .exited(4))
    try stage.sql("ALTER TABLE tasks ENABLE TRIGGER ALL")
    try await Self.resume(company)
    #expect(try stage.rows("SELECT n::text FROM tasks ORDER BY id") == [["3"], ["5"], ["0"]])
  }

  @Test("a table that is made anew without triggers stops the mirror")
  func replaced() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let run = try stage.run()
    try stage.sql(
      """
      ALTER TABLE tasks RENAME TO old; CREATE TABLE tasks(LIKE old INCLUDING ALL);
      INSERT INTO tasks SELECT * FROM old WHERE id = 1; DROP TABLE old
      """)
    try await company.device.write("UPDATE tasks SET title = 'device' WHERE id = 2")
    try await company.device.exchange()
    #expect(try await run.exitStatus() == .exited(4))
    #expect(try stage.rows("SELECT id::text FROM tasks") == [["1"]])
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("table tasks: triggers of the mirror are gone"), "\(status)")
    try await Self.resume(company)
  }

  @Test("a renamed column of a group's spaces fails no write, and the group's status says so")
  func group() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, account int NOT NULL, title text);
      INSERT INTO tasks VALUES (1, 7, 'one')
      """)
    let stage = company.stage
    try await stage.mirror([
      "adopt", "all", "--server", company.server.url, "--database", stage.database, "--table",
      "tasks", "--space-column", "account", "--space-name", "account-{}",
    ])
    try stage.sql(
      """
      ALTER TABLE tasks RENAME account TO customer; UPDATE tasks SET title = 'eins';
      INSERT INTO tasks VALUES (2, 8, 'two')
      """)
    let status = try await stage.mirror(["status", "all"], exits: 4).output
    #expect(status.contains("new values are not noted: table tasks: "), "\(status)")
    #expect(status.contains("all-7: stopped: table tasks: "), "\(status)")
    try stage.sql("ALTER TABLE tasks RENAME customer TO account")
    try await stage.mirror(["verify", "all", "--repair", "space"])
    try await stage.mirror([
      "adopt", "all", "--server", company.server.url, "--database", stage.database, "--table",
      "tasks", "--space-column", "account", "--space-name", "account-{}",
    ])
    let named = try await stage.mirror(["status", "all"]).output
    #expect(named.contains("account-8"), "\(named)")
  }
}
