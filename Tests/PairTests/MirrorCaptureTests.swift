import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// The contract of both ways to capture programs' writes: triggers, and PostgreSQL's log.
@Suite("The contract of captures", .hangLimit)
struct MirrorCaptureTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let tables = """
    CREATE TABLE lists(id text PRIMARY KEY, name text);
    CREATE TABLE tasks(id text PRIMARY KEY, title text, done bigint, note text,
      list text REFERENCES lists ON DELETE CASCADE ON UPDATE CASCADE);
    ALTER TABLE tasks ALTER note SET STORAGE EXTERNAL;
    CREATE TABLE seats(hall int, place int, guest text, PRIMARY KEY(hall, place));
    INSERT INTO lists SELECT 'l' || i, 'list' FROM generate_series(1, 5) i;
    INSERT INTO tasks SELECT 't' || i, 'task', 0, repeat('long', 2000), 'l' || i % 5 + 1
      FROM generate_series(1, 40) i;
    INSERT INTO seats SELECT 1, i, 'guest' FROM generate_series(1, 8) i
    """
  private static let queries = [
    "SELECT id, name FROM lists ORDER BY id",
    """
    SELECT id, title, CAST(done AS text), CAST(length(note) AS text), substr(note, 1, 9), list
    FROM tasks ORDER BY id
    """,
    "SELECT CAST(hall AS text), CAST(place AS text), guest FROM seats ORDER BY 1, 2",
  ]

  /// A company whose tables are adopted, with a device that has them.
  private static func adopted(
    _ capture: String, in cluster: PostgresCluster? = nil
  ) async throws -> Company {
    let company = try await Company.make(tables, in: cluster)
    try await company.adopt(
      "--table", "lists", "--table", "tasks", "--table", "seats", "--capture", capture)
    try await company.join()
    return company
  }

  /// Waits until the device has the rows of the tables.
  private static func same(_ company: Company, after step: String) async throws {
    try await eventually("the device has the rows after \(step)") {
      try await company.device.exchangeAll()
      for query in queries {
        let here = try await company.device.rows(query)
        let there = try company.stage.rows(query).map { $0.map { $0.map(Value.text) ?? .null } }
        if here != there { return false }
      }
      return true
    }
  }

  private static func end(_ run: ChildProcess, _ company: Company) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await company.stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    // PostgreSQL would keep the log for it.
    try await company.stage.mirror(["remove", "crm"])
  }

  /// Scripts of programs, and the feature that each one uses.
  private static let scripts = [
    (
      "inserts, updates and deletes",
      """
      INSERT INTO tasks VALUES ('new', NULL, 7, 'it''s "one" \\ two', 'l1'), ('more', '', NULL, NULL, NULL);
      UPDATE tasks SET title = 'changed', list = NULL WHERE id = 't1';
      DELETE FROM tasks WHERE id = 't2'; DELETE FROM seats WHERE place = 3
      """
    ),
    (
      "values outside of the row",
      """
      UPDATE tasks SET done = done + 1; UPDATE tasks SET note = repeat('other', 3000) WHERE id = 't4';
      UPDATE tasks SET note = NULL WHERE id = 't5'; UPDATE tasks SET id = 'moved' WHERE id = 't6'
      """
    ),
    (
      "changed keys",
      """
      UPDATE seats SET place = place + 100; UPDATE seats SET hall = 2, guest = NULL WHERE place > 105;
      UPDATE lists SET id = 'first' WHERE id = 'l1';
      BEGIN; UPDATE lists SET id = 'swap' WHERE id = 'l2'; UPDATE lists SET id = 'l2' WHERE id = 'l3';
      UPDATE lists SET id = 'l3' WHERE id = 'swap'; COMMIT
      """
    ),
    (
      "COPY and upserts",
      """
      COPY lists(id) FROM PROGRAM 'seq -f copy%g 1 40';
      INSERT INTO lists SELECT 'copy' || i, 'upsert' FROM generate_series(30, 50) i
        ON CONFLICT (id) DO UPDATE SET name = excluded.name || '!';
      INSERT INTO lists VALUES ('copy1', 'nothing') ON CONFLICT DO NOTHING
      """
    ),
    (
      "MERGE",
      """
      DO $$ BEGIN IF current_setting('server_version_num')::int >= 150000 THEN EXECUTE $merge$
      MERGE INTO seats s USING (SELECT 1 AS hall, i AS place FROM generate_series(101, 112) i) n
        ON s.hall = n.hall AND s.place = n.place
        WHEN MATCHED AND n.place = 101 THEN DELETE
        WHEN MATCHED THEN UPDATE SET guest = 'merged'
        WHEN NOT MATCHED THEN INSERT VALUES (n.hall, n.place, 'inserted') $merge$; END IF; END $$
      """
    ),
    ("cascades", "DELETE FROM lists WHERE id IN ('first', 'l4')"),
    (
      "a transaction over several tables",
      """
      BEGIN; INSERT INTO lists VALUES ('whole', 'a'); INSERT INTO tasks(id, list) VALUES ('w1', 'whole');
      UPDATE lists SET name = 'b' WHERE id = 'whole'; DELETE FROM tasks WHERE id = 'w1';
      INSERT INTO tasks(id, title, list) VALUES ('w1', 'again', 'whole'), ('w2', 'two', 'whole');
      INSERT INTO seats VALUES (9, 9, 'whole'); COMMIT
      """
    ),
    (
      "a transaction that rolls back",
      """
      BEGIN; DELETE FROM tasks; TRUNCATE lists CASCADE; INSERT INTO seats VALUES (7, 7, 'lost'); ROLLBACK;
      INSERT INTO seats VALUES (8, 8, 'after')
      """
    ),
    (
      "savepoints",
      """
      BEGIN; INSERT INTO seats VALUES (3, 1, 'one'); SAVEPOINT a; UPDATE seats SET guest = 'lost';
      SAVEPOINT b; INSERT INTO seats VALUES (3, 2, 'lost'); RELEASE b; DELETE FROM lists;
      ROLLBACK TO a; INSERT INTO seats VALUES (3, 3, 'three'); SAVEPOINT c;
      UPDATE seats SET guest = guest || '!' WHERE hall = 3; RELEASE c; COMMIT;
      DO $$ BEGIN
        BEGIN INSERT INTO seats VALUES (3, 4, 'lost'), (3, 3, 'twice');
        EXCEPTION WHEN unique_violation THEN INSERT INTO seats VALUES (3, 5, 'caught'); END;
      END $$
      """
    ),
    (
      "TRUNCATE",
      """
      TRUNCATE seats; INSERT INTO seats VALUES (1, 1, 'only');
      BEGIN; UPDATE tasks SET title = 'lost'; TRUNCATE tasks; INSERT INTO tasks(id) VALUES ('one'); COMMIT
      """
    ),
    ("TRUNCATE with references", "TRUNCATE lists CASCADE"),
  ]

  @Test("all statements of programs reach the devices", arguments: ["triggers", "log"])
  func statements(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let run = try company.stage.run()
    for (feature, script) in Self.scripts {
      try company.stage.sql(script)
      try await Self.same(company, after: feature)
    }
    try await Self.end(run, company)
  }

  @Test("transactions that overlap are captured whole", arguments: ["triggers", "log"])
  func overlapping(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let run = try company.stage.run()
    let (one, two) = (
      try PostgresConnection(url: company.stage.database),
      try PostgresConnection(url: company.stage.database)
    )
    try one.execute("BEGIN; UPDATE tasks SET title = 'one', done = 1 WHERE id < 't2'")
    try two.execute("BEGIN; UPDATE tasks SET title = 'two', done = 2 WHERE id >= 't2'")
    try two.execute("UPDATE lists SET name = 'two'; COMMIT")
    try await Self.same(company, after: "the second transaction")
    try two.execute("UPDATE lists SET name = 'last'")
    try one.execute("UPDATE seats SET guest = 'one'; COMMIT")
    try await Self.same(company, after: "the first transaction")
    try await Self.end(run, company)
  }

  @Test("no write is lost or repeated by kills and pauses", arguments: ["triggers", "log"])
  func pauses(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let stage = company.stage
    let program = try PostgresConnection(url: stage.database)
    for (round, signal) in [SIGKILL, SIGTERM, SIGKILL].enumerated() {
      let run = try stage.run()
      try stage.sql("UPDATE tasks SET done = done + 1, title = 'round \(round)'")
      try program.execute("BEGIN; INSERT INTO seats VALUES (5, \(round), 'open')")
      run.send(signal)
      _ = try await run.exitStatus()
      try stage.sql("INSERT INTO tasks VALUES ('round \(round)', 'away', 0, NULL, NULL)")
      try program.execute("UPDATE lists SET name = name || '\(round)'; COMMIT")
    }
    let run = try stage.run()
    try await Self.same(company, after: "three rounds")
    try await Self.end(run, company)
  }

  @Test(
    "effects of a device's write reach the space, and the write itself does not return",
    arguments: ["triggers", "log"])
  func effects(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    try stage.sql(
      """
      CREATE FUNCTION effect() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE tasks SET done = done + 1 WHERE id = 't1' AND NEW.title = 'go';
        UPDATE lists SET name = 'effect' WHERE id = 'l1' AND NEW.title = 'go';
        RETURN NULL; END $$;
      CREATE TRIGGER effect AFTER UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION effect();
      CREATE FUNCTION before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE seats SET guest = 'before' WHERE place = 1 AND NEW.guest = 'go';
        NEW.guest := upper(NEW.guest); RETURN NEW; END $$;
      CREATE TRIGGER before BEFORE INSERT OR UPDATE ON seats FOR EACH ROW EXECUTE FUNCTION before()
      """)
    let run = try stage.run()
    try await device.write("UPDATE tasks SET title = 'go' WHERE id = 't2'")
    try await device.exchange()
    try await stage.eventuallyRows("SELECT name FROM lists WHERE id = 'l1'", [["effect"]])
    try await Self.same(company, after: "a device's write with effects")
    #expect(try await device.rows("SELECT done FROM tasks WHERE id = 't1'") == [[1]])
    // A trigger before the rows changes other rows of the table, and the rows themselves.
    try await device.write(
      "UPDATE seats SET guest = 'go' WHERE place = 2; INSERT INTO seats VALUES (1, 9, 'new')")
    try await device.exchange()
    try await stage.eventuallyRows(
      "SELECT guest FROM seats WHERE place IN (1, 2, 9) ORDER BY place",
      [["BEFORE"], ["GO"], ["NEW"]])
    try await Self.same(company, after: "a device's write behind a trigger")
    try await device.write("DELETE FROM lists WHERE id = 'l5'")
    try await device.exchange()
    try await stage.eventuallyRows("SELECT id FROM lists WHERE id = 'l5'", [])
    try await Self.same(company, after: "a device's delete")
    try await Self.end(run, company)
  }

  @Test(
    "prepared and large transactions are captured when they commit, without their aborted parts",
    arguments: ["triggers", "log"])
  func preparedAndLarge(_ capture: String) async throws {
    let cluster = try PostgresCluster()
    try PostgresConnection(url: try cluster.createDatabase()).execute(
      "ALTER SYSTEM SET max_prepared_transactions = 4")
    // Transactions over this limit are large.
    try PostgresConnection(url: try cluster.createDatabase()).execute(
      "ALTER SYSTEM SET logical_decoding_work_mem = '64kB'")
    try cluster.restart()
    let company = try await Self.adopted(capture, in: cluster)
    let stage = company.stage
    var run = try stage.run()
    let program = try PostgresConnection(url: stage.database)
    try program.execute(
      """
      BEGIN; UPDATE tasks SET title = 'prepared'; INSERT INTO lists VALUES ('p', 'prepared');
      PREPARE TRANSACTION 'one';
      BEGIN; INSERT INTO lists VALUES ('lost', 'prepared'); PREPARE TRANSACTION 'two'
      """)
    try stage.sql("INSERT INTO lists VALUES ('between', 'b')")
    try await Self.same(company, after: "a transaction beside prepared ones")
    try program.execute("ROLLBACK PREPARED 'two'")
    try program.execute("COMMIT PREPARED 'one'")
    try await Self.same(company, after: "a prepared transaction")
    let large = """
      INSERT INTO tasks SELECT 'large' || i, 'large', 0, repeat('text', 100), 'p'
        FROM generate_series(1, 1000) i; SAVEPOINT a;
      UPDATE tasks SET title = 'lost' WHERE title = 'large';
      INSERT INTO tasks SELECT 'lost' || i, repeat('lost', 100) FROM generate_series(1, 1000) i;
      SAVEPOINT b; DELETE FROM tasks WHERE id LIKE 'lost%'; RELEASE b; ROLLBACK TO a;
      UPDATE tasks SET done = 5 WHERE title = 'large';
      """
    try program.execute("BEGIN; \(large)")
    try stage.sql("INSERT INTO seats VALUES (6, 6, 'between')")
    try await Self.same(company, after: "a transaction beside a large one")
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    try program.execute("DELETE FROM tasks WHERE id LIKE 'large%9'")
    run = try stage.run()
    try stage.sql("INSERT INTO seats VALUES (6, 7, 'between')")
    try await Self.same(company, after: "a kill during a large transaction")
    try program.execute("COMMIT")
    try await Self.same(company, after: "a large transaction")
    #expect(try stage.rows("SELECT count(*)::text FROM tasks WHERE done = 5") == [["900"]])
    try program.execute("BEGIN; DELETE FROM tasks WHERE id LIKE 'large%'; \(large) ROLLBACK")
    try program.execute(
      """
      BEGIN; DELETE FROM tasks WHERE id LIKE 'large%'; \(large) PREPARE TRANSACTION 'large'
      """)
    try stage.sql("INSERT INTO seats VALUES (6, 8, 'between')")
    try await Self.same(company, after: "a large transaction that rolled back")
    try program.execute("COMMIT PREPARED 'large'")
    try await Self.same(company, after: "a large prepared transaction")
    #expect(try stage.rows("SELECT count(*)::text FROM tasks WHERE done = 5") == [["1000"]])
    try await Self.end(run, company)
  }
}
