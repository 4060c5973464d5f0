import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Hard writes for a mirror: large, in an unusual order, or with values missing on one side.
@Suite("Mirrors under hard writes", .hangLimit)
struct MirrorFaultTests {
  static let schema = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE);
    CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT, rank INTEGER UNIQUE, size REAL,
      due TEXT, list TEXT REFERENCES lists(id) ON DELETE CASCADE);
    """
  private static let tasks = "SELECT id, title, rank, list FROM tasks ORDER BY id"
  private static let lists = "SELECT id, name FROM lists ORDER BY id"

  static func stage(_ more: String...) async throws -> MirrorTests.Stage {
    let server = try await Server.start()
    let device = try await Device.joined(server.url, schema: schema, tracking: ["lists", "tasks"])
    try await device.ferry("schema", "publish")
    try await device.exchange()
    let stage = MirrorTests.Stage(
      server: server, device: device, database: try await Server.database(),
      mirrors: try TemporaryDirectory())
    try await stage.mirror(
      [
        "add", "crm", "--server", server.url, "--space", Device.space, "--database",
        stage.database, "--schema", "app",
      ] + more)
    return stage
  }

  static func expectEqual(_ stage: MirrorTests.Stage) async throws {
    try await stage.quiet()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await stage.device.exchange()
    let there = try stage.rows("SELECT id, title, rank::text, list FROM app.tasks ORDER BY id")
    #expect(try await stage.device.rows(Self.tasks).map { $0.map(\.shown) } == there)
    let lists = try stage.rows("SELECT id, name FROM app.lists ORDER BY id")
    #expect(try await stage.device.rows(Self.lists).map { $0.map(\.shown) } == lists)
  }

  /// Runs the mirror until all writes of programs are in the space.
  private func carry(_ stage: MirrorTests.Stage, _ sql: String) async throws {
    try stage.sql(sql)
    let run = try stage.run()
    try await stage.quiet()
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a transaction larger than a device's is split, and loses no row without its parent yet")
  func large() async throws {
    let stage = try await Self.stage()
    // 15 MB: a device's transaction has at most 12 MiB.
    try await carry(
      stage,
      """
      INSERT INTO app.tasks(id, title, list)
        SELECT 'a' || n, repeat('title', 2000), 'late' FROM generate_series(1, 1500) n;
      UPDATE app.tasks SET title = 'title 1499!' WHERE id IN ('a1', 'a1499');
      DELETE FROM app.tasks WHERE id = 'a2'; INSERT INTO app.lists(id) VALUES ('late')
      """)
    try await Self.expectEqual(stage)
    #expect(try await stage.device.count("tasks") == 1_499)
    #expect(
      try await stage.device.value("SELECT title FROM tasks WHERE id = 'a1499'") == "title 1499!")
    // Updates are split as well.
    try await carry(
      stage, "UPDATE app.tasks SET title = repeat(id, 5000) WHERE id LIKE 'a1%' AND length(id) = 5")
    try await Self.expectEqual(stage)
    // a1000 to a1500.
    #expect(
      try await stage.device.value("SELECT count(*) FROM tasks WHERE length(title) = 25000")
        == 501)
  }

  @Test("a parent that gets another key keeps its children on all devices")
  func otherKey() async throws {
    let stage = try await Self.stage()
    try await carry(
      stage,
      """
      INSERT INTO app.lists VALUES ('l', 'one'), ('m', 'two');
      INSERT INTO app.tasks(id, list) VALUES ('a', 'l'), ('b', 'l'), ('c', 'm')
      """)
    try await stage.device.exchange()
    try await carry(
      stage,
      """
      BEGIN;
      UPDATE app.lists SET id = 'k' WHERE id = 'l'; UPDATE app.tasks SET list = 'k' WHERE list = 'l';
      UPDATE app.lists SET id = 'l' WHERE id = 'm'; UPDATE app.tasks SET list = 'l' WHERE list = 'm';
      UPDATE app.tasks SET id = 'd' WHERE id = 'a';
      COMMIT
      """)
    try await Self.expectEqual(stage)
    #expect(
      try await stage.device.rows("SELECT id, list FROM tasks ORDER BY id")
        == [["b", "k"], ["c", "l"], ["d", "k"]])
    #expect(
      try await stage.device.rows(Self.lists) == [["k", "one"], ["l", "two"]])
  }

  @Test("rows exchange unique values, from either side, also beside a row that cannot be brought")
  func exchanged() async throws {
    let stage = try await Self.stage("--type", "tasks.due=date")
    try await carry(
      stage, "INSERT INTO app.tasks(id, rank) VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4)")
    // Two exchange, and one takes a value before another gives it away.
    try await carry(
      stage,
      """
      UPDATE app.tasks SET rank = 3 - rank WHERE id IN ('a', 'b');
      BEGIN; UPDATE app.tasks SET rank = 4 WHERE id = 'c'; UPDATE app.tasks SET rank = 5 WHERE id = 'd';
      COMMIT
      """)
    try await Self.expectEqual(stage)
    #expect(
      try stage.rows("SELECT rank::text FROM app.tasks ORDER BY id") == [
        ["2"], ["1"], ["4"], ["5"],
      ])
    try await stage.device.write(
      """
      UPDATE tasks SET rank = NULL WHERE id = 'a'; UPDATE tasks SET rank = 2 WHERE id = 'b';
      UPDATE tasks SET rank = 1 WHERE id = 'a';
      INSERT INTO tasks(id, due) VALUES ('e', '2026-13-01')
      """)
    try await carry(stage, "SELECT 1")
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT rank::text FROM app.tasks ORDER BY id", [["1"], ["2"], ["4"], ["5"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }

  @Test("a write that no device could hold fails in the program that makes it")
  func tooLarge() async throws {
    let stage = try await Self.stage("--type", "tasks.due=date")
    for values in [
      "('a', NULL, 'NaN', NULL)", "('a', repeat('x', 1048577), 1, NULL)", "('', NULL, 1, NULL)",
      "(repeat('k', 513), NULL, 1, NULL)", "('a', NULL, 1, 'infinity')",
      "('a', NULL, 1, '0044-03-15 BC')",
    ] {
      #expect(throws: PostgresError.self) {
        try stage.sql("INSERT INTO app.tasks(id, title, size, due) VALUES \(values)")
      }
    }
    try await carry(
      stage, "INSERT INTO app.tasks(id, title, size) VALUES ('a', repeat('x', 1048576), '-inf')")
    try await Self.expectEqual(stage)
  }

  @Test("a value that an index cannot hold is deferred, and verify does not delete it in the space")
  func unindexable() async throws {
    let stage = try await Self.stage()
    let run = try stage.run()
    let noise = (0..<3_000).map { "\(UInt64($0) &* 0x9E37_79B9_7F4A_7C15)" }.joined()
    try await stage.device.write(
      "INSERT INTO lists VALUES ('a', ?)", [.text(noise)])
    try await stage.device.write("INSERT INTO lists VALUES ('b', 'two')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.lists", [["b"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["status", "crm"]).output.contains("lists a: index row"))
    let found = try await stage.mirror(["verify", "crm", "--repair", "space"])
    #expect(found.output == "0 rows differ\n")
    try await stage.device.exchange()
    #expect(try await stage.device.count("lists") == 2)
  }

  @Test("a row whose trigger fails is deferred, and arrives once the trigger works")
  func brokenTrigger() async throws {
    let stage = try await Self.stage()
    // The tables exist before the program's trigger.
    try await carry(stage, "INSERT INTO app.lists VALUES ('a', 'one')")
    try stage.sql(
      """
      CREATE FUNCTION app.count_lists() RETURNS trigger LANGUAGE plpgsql AS '
        BEGIN
          IF NEW.id = ''b'' THEN UPDATE app.counts SET n = n + 1; END IF;
          RETURN NULL;
        END';
      CREATE TRIGGER count AFTER INSERT ON app.lists FOR EACH ROW EXECUTE FUNCTION app.count_lists()
      """)
    let run = try stage.run()
    try await stage.device.write("INSERT INTO lists VALUES ('b', 'two'), ('c', 'three')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.lists ORDER BY id", [["a"], ["c"]])
    try await stage.eventuallyRows(
      "SELECT tab, reason FROM ferry_mirror.deferred",
      [["lists", "relation \"app.counts\" does not exist"]])
    try stage.sql("CREATE TABLE app.counts(n int); INSERT INTO app.counts VALUES (0)")
    try await stage.device.write("INSERT INTO lists VALUES ('d', 'four')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT n::text FROM app.counts", [["1"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    try await Self.expectEqual(stage)
  }

  @Test("rows of before get the default value of a required column that is added")
  func required() async throws {
    let stage = try await Self.stage()
    try await carry(stage, "INSERT INTO app.tasks(id) VALUES ('a')")
    try await stage.device.exchange()
    try await stage.device.write("ALTER TABLE tasks ADD COLUMN state TEXT NOT NULL DEFAULT 'it''s'")
    try await stage.device.ferry("schema", "publish")
    try await stage.device.write("UPDATE tasks SET title = 'one'")
    try await stage.device.exchange()
    let run = try stage.run()
    try await eventually("the new column has its default value", from: run) {
      (try? stage.rows("SELECT title, state FROM app.tasks")) == [["one", "it's"]]
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    try await Self.expectEqual(stage)
  }

  @Test("a child that moves before its parent is deleted keeps a program's own column")
  func ownColumn() async throws {
    let stage = try await Self.stage()
    try await stage.device.write(
      "INSERT INTO lists VALUES ('l', 'one'), ('m', 'two'); INSERT INTO tasks(id, list) VALUES ('a', 'l')"
    )
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM app.tasks", [["a"]])
    try stage.sql("ALTER TABLE app.tasks ADD COLUMN note text; UPDATE app.tasks SET note = 'mine'")
    try await stage.device.write(
      "UPDATE tasks SET list = 'm'; DELETE FROM lists WHERE id = 'l'")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT list, note FROM app.tasks", [["m", "mine"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }

  @Test(
    "a row that PostgreSQL cannot hold stays in the space, if its former row goes with a parent")
  func deferredChild() async throws {
    let stage = try await Self.stage("--type", "tasks.due=date")
    try await stage.device.write(
      """
      INSERT INTO lists VALUES ('l', 'one'), ('m', 'two');
      INSERT INTO tasks(id, list) VALUES ('a', 'l'), ('b', 'l'), ('c', 'l')
      """)
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT id FROM app.tasks ORDER BY id", [["a"], ["b"], ["c"]])
    try await stage.device.write(
      """
      UPDATE tasks SET list = 'm', due = '2026-13-01' WHERE id = 'a';
      UPDATE tasks SET list = 'm', title = 'x' || char(0) WHERE id = 'b';
      DELETE FROM lists WHERE id = 'l'
      """)
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.lists", [["m"]])
    try await stage.quiet()
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(
      try stage.rows("SELECT tab, key::text FROM ferry_mirror.deferred ORDER BY key") == [
        ["tasks", "{a}"], ["tasks", "{b}"],
      ])
    try await stage.device.exchange()
    #expect(try await stage.device.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["b"]])
  }

  @Test("a transaction that the space rejects takes no other program's transaction along")
  func rejectedApart() async throws {
    let stage = try await Self.stage()
    try await carry(stage, "INSERT INTO app.tasks(id, title, rank) VALUES ('a', 'one', 1)")
    let replica = try await stage.device.open()
    var schema = try await replica.schema()
    schema.tables["tasks"]?.columns["title"] = ColumnRules(type: .text, isRequired: true)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try stage.sql("INSERT INTO app.tasks(id, rank) VALUES ('b', 2)")
    try stage.sql("UPDATE app.tasks SET rank = 3 WHERE id = 'a'")
    try stage.sql("INSERT INTO app.tasks(id, title, rank) VALUES ('c', 'three', 4)")
    try await carry(stage, "SELECT 1")
    #expect(try await stage.mirror(["verify", "crm"], exits: 4).output.contains("1 row unsent"))
    #expect(
      try stage.rows("SELECT id, rank::text FROM app.tasks ORDER BY id") == [
        ["a", "3"], ["b", "2"], ["c", "4"],
      ])
    try await stage.device.exchange()
    #expect(
      try await stage.device.rows("SELECT id, rank FROM tasks ORDER BY id") == [
        ["a", 3], ["c", 4],
      ])
    try await carry(stage, "UPDATE app.tasks SET title = 'two' WHERE id = 'b'")
    // The mirror sends all of an unsent row: it may have ended before.
    try await carry(stage, "SELECT 1")
    try await Self.expectEqual(stage)
  }

  @Test("a child whose parent another transaction wrote later arrives with it")
  func laterParent() async throws {
    let stage = try await Self.stage()
    // The child is written first, and the key is checked at commit.
    let child = try PostgresConnection(url: stage.database)
    try child.execute("BEGIN; INSERT INTO app.tasks(id, list) VALUES ('a', 'l')")
    try stage.sql("INSERT INTO app.lists(id) VALUES ('l')")
    try child.execute("COMMIT")
    try await carry(stage, "SELECT 1")
    try await Self.expectEqual(stage)
    #expect(try stage.rows("SELECT list FROM app.tasks") == [["l"]])
  }

  @Test("a second process that runs a mirror is refused")
  func twice() async throws {
    let stage = try await Self.stage()
    let run = try stage.run()
    _ = try await run.line { $0.contains("a mirror runs") }
    let second = try stage.run()
    _ = try await second.line { $0.contains("another process runs this mirror") }
    #expect(
      try await stage.mirror(["verify", "crm"], exits: 1).error.contains("another process"))
    // It takes over.
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    try await stage.device.write("INSERT INTO tasks(id) VALUES ('a')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.tasks", [["a"]])
    second.send(SIGKILL)
    _ = try await second.exitStatus()
  }

  @Test("tables that are restored while a mirror runs become as the space again")
  func restored() async throws {
    let stage = try await Self.stage()
    let run = try stage.run()
    try stage.sql("CREATE TABLE kept AS SELECT * FROM ferry_mirror.mirrors")
    try await stage.device.write("INSERT INTO tasks(id) VALUES ('a'), ('b')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.tasks ORDER BY id", [["a"], ["b"]])
    // As the database was before.
    try stage.sql(
      """
      BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM app.tasks;
      UPDATE ferry_mirror.mirrors m SET turn = k.turn FROM kept k; COMMIT
      """)
    try await stage.device.write("INSERT INTO tasks(id) VALUES ('c')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.tasks ORDER BY id", [["a"], ["b"], ["c"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }
}

extension Value {
  /// The value as PostgreSQL shows it.
  fileprivate var shown: String? {
    switch self {
    case .null: nil
    case .text(let text): text
    case .integer(let number): String(number)
    case .real(let number): "\(number)"
    case .blob: nil
    }
  }
}
