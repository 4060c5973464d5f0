import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Rows and transactions that could stop a mirror, or lose rows.
@Suite("Mirrors that go on", .hangLimit)
struct MirrorStallTests {
  typealias Company = MirrorAdoptionTests.Company

  private static func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a row that leaves a parent in its own table survives the parent's delete in the same step")
  func reparented() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id text PRIMARY KEY, parent text REFERENCES tasks ON DELETE CASCADE, own text);
      INSERT INTO tasks VALUES ('p1', NULL, 'one'), ('p2', NULL, 'two'), ('c', 'p1', 'mine')
      """)
    try await company.adopt("--table", "tasks", "--columns", "tasks=parent")
    try await company.join()
    try await company.device.write(
      "UPDATE tasks SET parent = 'p2' WHERE id = 'c'; DELETE FROM tasks WHERE id = 'p1'")
    try await company.device.exchange()
    let run = try company.stage.run()
    try await company.stage.eventuallyRows(
      "SELECT id, parent, own FROM tasks ORDER BY id", [["c", "p2", "mine"], ["p2", nil, "two"]])
    try await company.expectEqual("SELECT id, parent FROM tasks ORDER BY id", count: 2)
    try await Self.stop(run)
  }

  @Test(
    "a record whose key PostgreSQL writes in another form is deleted in the space, and stops no other"
  )
  func otherForm() async throws {
    let company = try await Company.make(
      "CREATE TABLE tasks(id uuid PRIMARY KEY, title text); INSERT INTO tasks VALUES (gen_random_uuid(), 'one')"
    )
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "tasks")
    try await company.join()
    let run = try stage.run()
    let key = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
    try await device.write("INSERT INTO tasks VALUES ('\(key)', 'upper')")
    for round in 0..<2 {
      try await device.write(
        "UPDATE tasks SET title = 'round \(round)' WHERE title NOT LIKE 'upp%'")
      try await device.exchangeAll()
      try await stage.eventuallyRows("SELECT title FROM tasks", [["round \(round)"]])
    }
    try await eventually("the record is gone", from: run) {
      try await device.exchangeAll()
      return try await device.rows("SELECT title FROM tasks") == [["round 1"]]
    }
    #expect(try stage.rows("SELECT key::text FROM ferry_mirror.deferred") == [])
    try await Self.stop(run)
  }

  @Test(
    "a program's delete of a parent with more children than a device's transaction takes arrives")
  func manyChildren() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE lists(id int PRIMARY KEY);
      CREATE TABLE tasks(id int PRIMARY KEY, list int REFERENCES lists ON DELETE CASCADE);
      INSERT INTO lists VALUES (1), (2);
      INSERT INTO tasks SELECT n, 1 FROM generate_series(1, 40500) n; INSERT INTO tasks VALUES (0, 2)
      """)
    try await company.adopt("--table", "tasks", "--table", "lists")
    try company.stage.sql(
      """
      DELETE FROM lists WHERE id = 1; INSERT INTO lists VALUES (3); UPDATE tasks SET list = 3;
      DELETE FROM lists WHERE id = 2
      """)
    let run = try company.stage.run()
    try await company.stage.quiet()
    try await company.join()
    #expect(try await company.device.rows("SELECT id, list FROM tasks") == [[0, 3]])
    #expect(try await company.device.rows("SELECT id FROM lists") == [[3]])
    try await Self.stop(run)
  }

  @Test("parents that get other keys in a transaction of many parts arrive with their children")
  func manyKeys() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE docs(id text PRIMARY KEY, body text);
      CREATE TABLE notes(id int PRIMARY KEY, doc text REFERENCES docs ON UPDATE CASCADE ON DELETE CASCADE);
      INSERT INTO docs SELECT 'd' || n, repeat('x', 12000) FROM generate_series(1, 1000) n;
      INSERT INTO notes SELECT n, 'd' || n FROM generate_series(1, 1000) n
      """)
    try await company.adopt("--table", "docs", "--table", "notes")
    try company.stage.sql("UPDATE docs SET id = 'x' || id; INSERT INTO notes VALUES (2000, 'xd1')")
    let run = try company.stage.run()
    try await company.stage.quiet()
    try await company.join()
    try await company.expectEqual("SELECT id FROM docs ORDER BY docs.id", count: 1_000)
    try await company.expectEqual(
      "SELECT CAST(id AS text), doc FROM notes ORDER BY notes.id", count: 1_001)
    try await Self.stop(run)
  }

  @Test("a row whose trigger raises an error of its own class stops no other row")
  func ownClass() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, title text);
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '
        BEGIN
          IF NEW.title = ''bad'' THEN RAISE EXCEPTION ''never'' USING ERRCODE = ''AP001''; END IF;
          RETURN NEW;
        END';
      CREATE TRIGGER refuse BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION refuse();
      INSERT INTO tasks VALUES (1, 'one')
      """)
    try await company.adopt("--table", "tasks")
    try await company.join()
    try await company.device.write("INSERT INTO tasks VALUES (2, 'bad'), (3, 'good')")
    try await company.device.exchangeAll()
    let run = try company.stage.run()
    try await company.stage.eventuallyRows(
      "SELECT id::text FROM tasks ORDER BY id", [["1"], ["3"]])
    _ = try await run.line { $0.contains("returned: tasks 2: never") }
    try await company.expectEqual("SELECT CAST(id AS text) FROM tasks ORDER BY tasks.id", count: 2)
    try await Self.stop(run)
  }

  @Test("a long chain of rows in the wrong order arrives beside a row that cannot be brought")
  func chain() async throws {
    let company = try await Company.make(
      "CREATE TABLE tasks(id int PRIMARY KEY, next int REFERENCES tasks, due date); INSERT INTO tasks VALUES (0)"
    )
    try await company.adopt("--table", "tasks")
    try await company.join()
    // Each row refers to the one after it, which comes later in a step.
    try await company.device.write(
      """
      PRAGMA defer_foreign_keys = ON;
      INSERT INTO tasks WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
        SELECT i, iif(i < 4000, i + 1, NULL), NULL FROM n;
      INSERT INTO tasks VALUES (5000, NULL, '2026-13-01')
      """)
    try await company.device.exchangeAll()
    let run = try company.stage.run()
    try await company.stage.eventuallyRows("SELECT count(*)::text FROM tasks", [["4001"]])
    try await eventually("the row is gone", from: run) {
      try await company.device.exchangeAll()
      return try await company.device.rows("SELECT count(*) FROM tasks") == [[4_001]]
    }
    try await Self.stop(run)
  }

  @Test("a key of several texts that a device cannot hold fails in the program")
  func escapedKey() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(
      server.url,
      schema: """
        CREATE TABLE seats(hall TEXT NOT NULL, place TEXT NOT NULL, guest TEXT, PRIMARY KEY(hall, place));
        """, tracking: ["seats"])
    try await device.ferry("schema", "publish")
    try await device.exchange()
    let stage = MirrorTests.Stage(
      server: server, device: device, database: try await Server.database(),
      mirrors: try TemporaryDirectory())
    try await stage.mirror(
      [
        "add", "crm", "--server", server.url, "--space", Device.space, "--database",
        stage.database, "--schema", "app",
      ])
    try stage.sql("INSERT INTO app.seats VALUES (repeat('\"', 200), 'b', 'Ada')")
    let error = #expect(throws: PostgresError.self) {
      try stage.sql("INSERT INTO app.seats VALUES (repeat('\"', 300), 'b', 'Bob')")
    }
    #expect(error?.message == "devices cannot hold the value of the key")
    let run = try stage.run()
    try await stage.quiet()
    try await Self.stop(run)
    try await device.exchange()
    #expect(try await device.rows("SELECT guest, length(hall) FROM seats") == [["Ada", 200]])
    #expect(try stage.rows("SELECT guest FROM app.seats") == [["Ada"]])
  }

  @Test("a record whose key PostgreSQL cannot hold is deleted in the space, and stops no other")
  func unstorableKey() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE pairs(a text, b bigint, title text, PRIMARY KEY(a, b));
      INSERT INTO pairs VALUES ('x', 1, 'one')
      """)
    try await company.adopt("--table", "pairs")
    try await company.join()
    let run = try company.stage.run()
    try await company.device.write(
      "INSERT INTO pairs VALUES ('x' || char(0), 2, 'bad'), ('y', 3, 'good')")
    try await company.device.exchangeAll()
    try await company.stage.eventuallyRows(
      "SELECT title FROM pairs ORDER BY b", [["one"], ["good"]])
    try await eventually("the record is gone", from: run) {
      try await company.device.exchangeAll()
      return try await company.device.rows("SELECT b FROM pairs ORDER BY b") == [[1], [3]]
    }
    #expect(try company.stage.rows("SELECT key::text FROM ferry_mirror.deferred") == [])
    try await Self.stop(run)
  }

  @Test(
    "a program that writes rows all the time does not hold up the rows of devices",
    arguments: [
      "INSERT INTO app.lists(id) VALUES (DEFAULT)",
      "UPDATE app.lists SET name = clock_timestamp()::text",
    ])
  func steadyWrites(_ write: String) async throws {
    let stage = try await MirrorTests.Stage.make()
    try stage.sql("INSERT INTO app.lists(id) VALUES (DEFAULT)")
    let run = try stage.run()
    let database = stage.database
    let writer = Thread {
      try? PostgresConnection(url: database).execute(
        """
        DO 'BEGIN
          WHILE to_regclass(''public.stop'') IS NULL LOOP
            \(write); COMMIT;
            PERFORM pg_sleep(0.005);
          END LOOP;
        END'
        """)
    }
    writer.start()
    defer { try? stage.sql("CREATE TABLE IF NOT EXISTS public.stop()") }
    for round in 0..<3 {
      try await stage.device.write("INSERT INTO tasks(id) VALUES ('n\(round)')")
      try await stage.device.exchange()
      try await stage.eventuallyRows(
        "SELECT id FROM app.tasks WHERE id = 'n\(round)'", [["n\(round)"]])
    }
    try stage.sql("CREATE TABLE public.stop()")
    try await stage.eventuallyRows(
      "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %' AND datname = current_database()",
      [["0"]])
    try await stage.quiet()
    try await Self.stop(run)
    try await stage.expectEqual(
      "SELECT id FROM tasks ORDER BY id", "SELECT id, name FROM lists ORDER BY id")
  }

  @Test("a row that a table cannot hold is tried again after a program's write")
  func freed() async throws {
    let stage = try await MirrorTests.Stage.make()
    let run = try stage.run()
    let ids = "SELECT id FROM app.tasks ORDER BY id"
    try stage.sql(
      "CREATE UNIQUE INDEX ON app.tasks(lower(title)); INSERT INTO app.tasks VALUES ('a', 'one')")
    try await stage.device.write("INSERT INTO tasks(id, title) VALUES ('b', 'ONE')")
    try await stage.device.exchange()
    let deferred = "SELECT key::text FROM ferry_mirror.deferred"
    try await stage.eventuallyRows(deferred, [["{b}"]])
    try stage.sql("UPDATE app.tasks SET title = 'two' WHERE id = 'a'")
    try await stage.eventuallyRows(ids, [["a"], ["b"]])
    try await stage.eventuallyRows(deferred, [])
    try await eventually("the tables to have all changes", from: run) {
      let status = try await stage.mirror(["status", "crm", "--json"]).output
      let line = try JSONLine.all(status).first
      return line?.text("applied") != nil && line?.text("applied") == line?.text("head")
    }
    try await Self.stop(run)
  }
}
