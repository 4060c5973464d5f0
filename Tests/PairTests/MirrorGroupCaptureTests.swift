import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// One set of triggers that captures programs' writes for all mirrors of a group.
@Suite("The capture of a group", .hangLimit)
struct MirrorGroupCaptureTests {
  private typealias Company = MirrorAdoptionTests.Company

  /// A trigger of the company changes a written row once more.
  private static let tasks = """
    CREATE TABLE tasks(id int PRIMARY KEY, account text, title text, n int NOT NULL DEFAULT 0,
      hidden boolean NOT NULL DEFAULT false);
    CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      UPDATE tasks SET n = n + 1 WHERE id = NEW.id AND title = 'twice' AND n = 0; RETURN NULL; END $$;
    CREATE TRIGGER again AFTER INSERT OR UPDATE ON tasks FOR EACH ROW
      WHEN (NEW.title = 'twice' AND NEW.n = 0) EXECUTE FUNCTION again();
    INSERT INTO tasks SELECT i, i % 3 + 1, 't' || i FROM generate_series(1, 90) i
    """

  private static func adopted(_ more: String...) async throws -> Company {
    let company = try await Company.make(tasks)
    try await adopt(company, more)
    return company
  }

  private static func adopt(_ company: Company, _ more: [String] = []) async throws {
    try await company.stage.mirror(
      [
        "adopt", "all", "--server", company.server.url, "--database", company.stage.database,
        "--table", "tasks", "--space-column", "account", "--space-name", "account-{}",
      ] + more)
  }

  /// Carries all writes, and compares each space with its rows.
  private static func expectEqual(
    _ company: Company, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let verified = try await company.stage.mirror(
      ["verify", "all"], sourceLocation: sourceLocation)
    // Rows without a space are listed before it.
    #expect(verified.output.hasSuffix("0 rows differ\n"), sourceLocation: sourceLocation)
  }

  @Test(
    "statements of few and many rows reach the spaces of the rows",
    arguments: [
      [], ["--where", "tasks=NOT hidden"], ["--capture", "log"],
      ["--where", "tasks=NOT hidden", "--capture", "log"],
    ])
  func statements(more: [String]) async throws {
    let company = try await Company.make(Self.tasks)
    let stage = company.stage
    try await Self.adopt(company, more)
    for statement in [
      "INSERT INTO tasks VALUES (101, '1', 'a'), (102, '2', 'b'), (103, '3', 'c'), (104, NULL, 'd')",
      "INSERT INTO tasks SELECT i, i % 3 + 1, 'many' FROM generate_series(201, 300) i",
      "UPDATE tasks SET title = 'changed' WHERE id < 5", "UPDATE tasks SET title = title || '!'",
      // Other spaces, and other keys.
      "UPDATE tasks SET account = '2' WHERE id IN (1, 2, 3)",
      "UPDATE tasks SET account = CASE account WHEN '1' THEN '3' ELSE '1' END WHERE id > 210",
      "UPDATE tasks SET id = id + 1000 WHERE id IN (4, 5)",
      "UPDATE tasks SET id = id + 2000 WHERE id BETWEEN 10 AND 60",
      "UPDATE tasks SET id = id + 3000, account = '1' WHERE id IN (6, 7)",
      "UPDATE tasks SET id = id + 4000, account = '2' WHERE id BETWEEN 201 AND 290",
      // A row in a row's former place.
      "UPDATE tasks SET id = 8, account = '1' WHERE id = 9; INSERT INTO tasks VALUES (9, '3', 'new')",
      // A trigger changes the rows.
      "UPDATE tasks SET title = 'twice', account = '3' WHERE id IN (61, 62)",
      "UPDATE tasks SET title = 'twice' WHERE id > 2000",
      "INSERT INTO tasks VALUES (401, '1', 'twice')",
      "UPDATE tasks SET hidden = true WHERE id IN (63, 64)",
      "UPDATE tasks SET hidden = NOT hidden WHERE id BETWEEN 63 AND 110 OR id > 4250",
      "UPDATE tasks SET hidden = false, account = '1'",
      "DELETE FROM tasks WHERE id IN (65, 66)", "DELETE FROM tasks WHERE id > 4240",
      "INSERT INTO tasks VALUES (67, '2', 'x') ON CONFLICT (id) DO UPDATE SET account = '2'",
      "UPDATE tasks SET account = NULL WHERE id = 68", "TRUNCATE tasks",
    ] {
      if statement.hasPrefix("UPDATE tasks SET id = 8,") {
        try stage.sql("DELETE FROM tasks WHERE id = 8")
      }
      try stage.sql(statement)
      let captured = try stage.rows(
        "SELECT count(*)::text FROM ferry_mirror.captured c WHERE tab <> 'tasks'")
      #expect(captured == [["0"]])
      if statement.contains("> 4240") || statement.contains("id > 2000") {
        try await Self.expectEqual(company)
      }
      if statement == "TRUNCATE tasks" { continue }
      #expect(
        try stage.rows("SELECT 'x' FROM ferry_mirror.stops") == [], "\(statement)")
    }
    try await Self.expectEqual(company)
    try await stage.mirror(["remove", "all"])
  }

  @Test(
    "a table has the same triggers for any number of spaces, and a removed one leaves the others")
  func triggers() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    let triggers = "SELECT count(*)::text FROM pg_trigger WHERE tgname LIKE 'ferry%'"
    #expect(try stage.rows(triggers) == [["7"]])
    try await stage.mirror(["remove", "all-2"])
    #expect(try stage.rows(triggers) == [["7"]])
    try stage.sql("UPDATE tasks SET title = 'later'")
    #expect(
      try stage.rows(
        "SELECT DISTINCT m.name FROM ferry_mirror.captured c "
          + "JOIN ferry_mirror.mirrors m ON m.number = c.mirror ORDER BY 1") == [
          ["all-1"], ["all-3"],
        ])
    // The value gets its mirror again.
    try await Self.adopt(company)
    try await Self.expectEqual(company)
    try await stage.mirror(["remove", "all"])
    #expect(try stage.rows(triggers) == [["0"]])
    #expect(
      try stage.rows(
        """
        SELECT proname::text FROM pg_proc
        WHERE pronamespace = 'ferry_mirror'::regnamespace AND proname ~ '^(capture|want)'
        UNION ALL SELECT function FROM ferry_mirror.group_functions
        """) == [])
  }

  @Test(
    "a transaction that began before a new space's mirror is captured for it",
    arguments: ["triggers", "log"])
  func oldSnapshot(capture: String) async throws {
    let company = try await Self.adopted("--capture", capture)
    let stage = company.stage
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tasks")
    try stage.sql("INSERT INTO tasks VALUES (501, 'new', 'first')")
    try await Self.adopt(company, ["--capture", capture])
    #expect(
      try stage.rows("SELECT name FROM ferry_mirror.mirrors WHERE name = 'all-new'") != [])
    try program.execute(
      """
      INSERT INTO tasks VALUES (400, 'new', 'earlier');
      INSERT INTO tasks SELECT i, 'new', 'many' FROM generate_series(301, 390) i; COMMIT
      """)
    try await Self.expectEqual(company)
    try await stage.mirror(["remove", "all"])
  }
}
