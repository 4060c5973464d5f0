import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Tables of a company that become tables of a space, with real servers, databases and processes.
@Suite("Adopted tables", .hangLimit)
struct MirrorAdoptionTests {
  /// A server, a company's database, and a folder for mirrors.
  struct Company {
    let server: Server
    let stage: MirrorTests.Stage
    var device: Device { stage.device }

    static func make(_ sql: String, in cluster: PostgresCluster? = nil) async throws -> Company {
      let server = try await Server.start()
      let device = try Device()
      try await device.ferry("init", "--server", server.url, "--space", Device.space)
      let stage = MirrorTests.Stage(
        server: server, device: device, database: try await Server.database(in: cluster),
        mirrors: try TemporaryDirectory())
      try stage.sql(sql)
      return Company(server: server, stage: stage)
    }

    /// The options of an adoption; triggers capture unless `more` names another way.
    func arguments(_ more: [String], space: String = Device.space) -> [String] {
      let capture = more.contains("--capture") ? [] : ["--capture", "triggers"]
      return [
        "adopt", "crm", "--server", server.url, "--space", space, "--database", stage.database,
      ] + more + capture
    }

    /// Starts an adoption that cannot pass a row locked by `connection`.
    func start(_ table: String) throws -> ChildProcess {
      try ChildProcess(
        try Executables.ferryd(),
        ["mirror"] + arguments(["--table", table, "--mirrors", stage.mirrors.url.path]),
        directory: stage.mirrors.url)
    }

    @discardableResult
    func adopt(
      _ more: String..., space: String = Device.space, exits code: Int32 = 0,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ChildProcess.Finished {
      try await stage.mirror(
        arguments(more, space: space), exits: code, sourceLocation: sourceLocation)
    }

    /// Makes the device have the tables of the space.
    func join() async throws {
      try await device.exchange()
      try await device.ferry("track", "--create", "--all")
      try await device.exchange()
    }

    /// Compares all rows of a table with those of the device. The query is for both; an empty list of
    /// rows is no success.
    func expectEqual(
      _ query: String, here: String? = nil, count: Int? = nil,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
      try await stage.quiet()
      try await eventually("\(query) equals") {
        try await device.exchangeAll()
        return try await device.rows(here ?? query).map { $0.map(\.text) }
          == (try stage.rows(query))
      }
      let rows = try stage.rows(query)
      #expect(!rows.isEmpty && rows.count == count ?? rows.count, sourceLocation: sourceLocation)
    }
  }

  private static let typed = """
    CREATE TABLE lists(id uuid PRIMARY KEY, name varchar(40) NOT NULL);
    CREATE TABLE tasks(id int PRIMARY KEY, title text NOT NULL, done boolean NOT NULL DEFAULT false,
      price numeric(10,2), exact numeric, weight real, photo bytea, doc jsonb, raw json,
      at timestamptz, since timestamp, due date, tags text[],
      list uuid REFERENCES lists ON DELETE CASCADE);
    CREATE TABLE seats(hall text, place smallint, guest char(8), PRIMARY KEY(hall, place));
    INSERT INTO lists VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'home');
    INSERT INTO tasks VALUES (7, 'it''s "one"', true, 12.50, 123456789012345678901.5, 0.1, '\\x00ff',
      '{"a":1}', '{"b" : 2}', '2026-11-25 18:00:00.000001+00', '2026-11-25 18:00', '2026-11-25',
      '{x,y}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
    INSERT INTO tasks(id, title) VALUES (8, 'two');
    INSERT INTO seats VALUES ('big', 3, 'Ada'), ('big', 4, NULL);
    """

  @Test("rows arrive with their types, and a device's edit changes its columns alone")
  func types() async throws {
    let company = try await Company.make(Self.typed)
    let stage = company.stage
    let made = try await company.adopt("--table", "tasks", "--table", "lists", "--table", "seats")
    #expect(!made.output.contains("left out"))
    #expect(made.output.contains("unsent     0 rows"))
    #expect(made.output.contains("adopted    tasks: 2 rows"))
    try await company.join()
    #expect(
      try await company.device.rows("SELECT * FROM tasks ORDER BY id") == [
        [
          7, "it's \"one\"", 1, 12.5, "123456789012345678901.5", 0.1, .blob([0, 255]),
          "{\"a\": 1}", "{\"b\" : 2}", "2026-11-25T18:00:00.000001Z",
          "2026-11-25T18:00:00.000000", "2026-11-25", "[\"x\",\"y\"]",
          "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
        [
          8, "two", 0, .null, .null, .null, .null, .null, .null, .null, .null, .null, .null, .null,
        ],
      ])
    #expect(
      try await company.device.rows("SELECT * FROM seats ORDER BY place") == [
        ["big", 3, "Ada"], ["big", 4, .null],
      ])
    let before = try stage.rows("SELECT md5(t::text), tags::text FROM tasks t WHERE id = 8")
    let run = try stage.run()
    try await company.device.write(
      """
      UPDATE tasks SET title = 'one' WHERE id = 7; UPDATE seats SET guest = 'Bob' WHERE place = 4;
      INSERT INTO tasks(id, title, list) VALUES (9, 'nine', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
      INSERT INTO lists VALUES ('b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'work')
      """)
    try await company.device.exchange()
    try await stage.eventuallyRows("SELECT count(*)::text FROM tasks", [["3"]])
    #expect(
      try stage.rows(
        """
        SELECT title, done::text, price::text, exact::text, weight::text, encode(photo, 'hex'),
          doc::text, raw::text, at::text, since::text, due::text, tags::text FROM tasks WHERE id = 7
        """) == [
          [
            "one", "true", "12.50", "123456789012345678901.5", "0.1", "00ff", "{\"a\": 1}",
            "{\"b\" : 2}", "2026-11-25 18:00:00.000001+00", "2026-11-25 18:00:00", "2026-11-25",
            "{x,y}",
          ]
        ])
    #expect(try stage.rows("SELECT md5(t::text), tags::text FROM tasks t WHERE id = 8") == before)
    #expect(try stage.rows("SELECT guest::text FROM seats WHERE place = 4") == [["Bob"]])
    #expect(try stage.rows("SELECT done::text FROM tasks WHERE id = 9") == [["false"]])
    // The company's cascade reaches the devices, and a device's delete the company.
    try stage.sql("DELETE FROM lists WHERE name = 'home'")
    try await stage.quiet()
    try await company.device.exchange()
    #expect(try await company.device.rows("SELECT id FROM tasks") == [[8]])
    try await company.device.write("DELETE FROM tasks")
    try await company.device.exchange()
    try await stage.eventuallyRows("SELECT count(*)::text FROM tasks", [["0"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    // The tables are as they were, without the mirror's triggers.
    try await stage.mirror(["remove", "crm"])
    #expect(try stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
    #expect(try stage.rows("SELECT name::text FROM lists") == [["work"]])
  }

  @Test("a program's new row is listed if a device has deleted the row to which it refers")
  func goesWithParent() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE lists(id int PRIMARY KEY);
      CREATE TABLE tasks(id int PRIMARY KEY, list int NOT NULL REFERENCES lists ON DELETE CASCADE,
        title text);
      INSERT INTO lists VALUES (1)
      """)
    let stage = company.stage
    try await company.adopt("--table", "lists", "--table", "tasks")
    try await company.join()
    try await company.device.write("DELETE FROM lists")
    try await company.device.exchange()
    try stage.sql("INSERT INTO tasks VALUES (9, 1, 'new')")
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try stage.rows("SELECT id::text FROM tasks") == [])
    let mirror = try await Replica.open(stage.mirrors.file("crm/replica.db").path)
    let kept = try await mirror.conflicts()
    #expect(kept.contains { $0.conflict.column == "title" && $0.conflict.lost == "new" })
  }

  @Test("a row that devices cannot hold stays in the table and is named, whatever happens")
  func unsent() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE nodes(id int PRIMARY KEY, size float8, body text, code text UNIQUE,
        parent int REFERENCES nodes);
      INSERT INTO nodes VALUES (1, 'NaN', 'a', 'a', NULL), (2, 1, repeat('x', 2000000), 'b', NULL),
        (3, 1, 'c', 'c', 1), (4, 1, 'd', 'd', 5), (5, 1, 'e', 'e', NULL)
      """)
    let stage = company.stage
    try await company.adopt("--table", "nodes")
    let named = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(named.contains("unsent     3 rows"))
    #expect(named.contains("nodes 1: devices cannot hold the value of column size"))
    #expect(named.contains("nodes 2: devices cannot hold the value of column body"))
    #expect(named.contains("nodes 3: it refers to a row of table nodes missing in the space"))
    let json = try await stage.mirror(["status", "crm", "--json"], exits: 4).output
    #expect(json.contains("\"unsentCount\":\"3\""))
    try await company.join()
    #expect(try await company.device.rows("SELECT id FROM nodes ORDER BY id") == [[4], [5]])

    var run = try stage.run()
    // No write of the company fails, and none of these rows is lost.
    try stage.sql("UPDATE nodes SET code = code || '!' WHERE id <= 3")
    try stage.sql("INSERT INTO nodes VALUES (6, 1, 'f', 'f', 3), (7, 'NaN', '', 'g', 4)")
    try stage.sql("UPDATE nodes SET size = 'NaN', body = 'E' WHERE id = 5")
    try await stage.quiet()
    try await company.device.write("UPDATE nodes SET body = 'D' WHERE id IN (4, 5)")
    try await company.device.exchange()
    try await stage.eventuallyRows("SELECT body FROM nodes WHERE id = 4", [["D"]])
    #expect(try stage.rows("SELECT count(*)::text FROM nodes") == [["7"]])
    #expect(try stage.rows("SELECT size::text, body FROM nodes WHERE id = 5") == [["NaN", "E"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    let verified = try await stage.mirror(["verify", "crm"], exits: 4).output
    #expect(!verified.contains("nodes 5") && verified.hasSuffix("\n0 rows differ\n"))
    // The mirror's file is lost: the company's rows are not.
    let folder = stage.mirrors.url.appending(path: "crm").path
    for file in try FileManager.default.contentsOfDirectory(atPath: folder)
    where file.hasPrefix("replica.db") {
      try FileManager.default.removeItem(atPath: folder + "/" + file)
    }
    run = try stage.run()
    // A row travels as soon as it is fit, and so do the rows waiting for it.
    try stage.sql("UPDATE nodes SET size = 0 WHERE id = 1; UPDATE nodes SET size = 2 WHERE id = 5")
    try await stage.quiet()
    try await eventually("the rows travel") {
      try await company.device.exchange()
      return try await company.device.rows("SELECT id FROM nodes ORDER BY id") == [
        [1], [3], [4], [5], [6],
      ]
    }
    let fit = try await company.device.rows("SELECT size, body FROM nodes WHERE id = 5")
    #expect(fit == [[2.0, "E"]])
    try await stage.eventuallyRows("SELECT count(*)::text FROM nodes", [["7"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }

  @Test("a row that the space's rules refuse stays in the table and is named")
  func refusedBySpace() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE notes(id int PRIMARY KEY, body text);
      INSERT INTO notes SELECT i, 'n' || i FROM generate_series(1, 50) i
      """)
    let stage = company.stage
    try await company.adopt("--table", "notes")
    try await company.join()
    let replica = try await company.device.open()
    var schema = try await replica.schema()
    schema.tables["notes"]?.unique = [["body"]]
    schema.version += 1
    _ = try await replica.applySchema(schema)
    let run = try stage.run()
    // Updates of other transactions are not rejected with it.
    run.send(SIGSTOP)
    try stage.sql("BEGIN; INSERT INTO notes VALUES (51, 'n2'), (52, 'good'); COMMIT")
    try stage.sql("UPDATE notes SET body = 'edited' WHERE id = 1")
    run.send(SIGCONT)
    try await stage.eventuallyRows("SELECT key[1] FROM ferry_mirror.unsent", [["51"]])
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("notes 51: "), "\(status)")
    try await company.expectEqual(
      "SELECT CAST(id AS text), body FROM notes WHERE id <> 51 ORDER BY notes.id", count: 51)
    #expect(
      try stage.rows("SELECT body FROM notes WHERE id IN (1, 51) ORDER BY id") == [
        ["edited"], ["n2"],
      ])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }

  /// Returns the last characters of the devices' keys.
  private static func ends(_ company: Company) async throws -> [String] {
    try await company.device.rows("SELECT id FROM tasks ORDER BY id").map {
      $0[0].text.map { String($0.suffix(1)) } ?? ""
    }
  }

  @Test("with --columns and --where a part of the table travels")
  func part() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id uuid PRIMARY KEY, title text, secret text, archived boolean NOT NULL DEFAULT false,
        names text);
      INSERT INTO tasks SELECT ('00000000-0000-0000-0000-0000000000' || lpad(i::text, 2, '0'))::uuid, 't' || i,
        's' || i, i > 6 FROM generate_series(1, 9) i
      """)
    let stage = company.stage
    try await company.adopt(
      "--table", "tasks", "--columns", "tasks=title,archived", "--where",
      "tasks=NOT tasks.archived AND names IS NULL -- all that are open")
    try await company.join()
    #expect(try await Self.ends(company) == ["1", "2", "3", "4", "5", "6"])
    let run = try stage.run()
    // One row stops, one begins, one is changed out of sight, and a new one is not for devices.
    try stage.sql(
      """
      UPDATE tasks SET archived = true WHERE title = 't1'; UPDATE tasks SET archived = false WHERE title = 't7';
      UPDATE tasks SET secret = 'x' WHERE title = 't2'; UPDATE tasks SET title = 't8!' WHERE title = 't8';
      INSERT INTO tasks VALUES (gen_random_uuid(), 'new', 's', true);
      DELETE FROM tasks WHERE title IN ('t3', 't9')
      """)
    try await stage.quiet()
    try await eventually("the devices have the part", from: run) {
      try await company.device.exchange()
      return try await Self.ends(company) == ["2", "4", "5", "6", "7"]
    }
    // A device archives a task: the row stays in the table, and the devices lose it.
    try await company.device.write(
      "UPDATE tasks SET archived = 1, title = 'done' WHERE title = 't4'")
    try await company.device.write("DELETE FROM tasks WHERE title = 't5'")
    try await company.device.exchange()
    try await stage.eventuallyRows(
      "SELECT title, secret FROM tasks WHERE archived ORDER BY title",
      [["done", "s4"], ["new", "s"], ["t1", "s1"], ["t8!", "s8"]])
    try await eventually("the devices lose it", from: run) {
      try await company.device.exchange()
      return try await Self.ends(company) == ["2", "6", "7"]
    }
    try await stage.quiet()
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(
      try stage.rows("SELECT title, secret FROM tasks ORDER BY title") == [
        ["done", "s4"], ["new", "s"], ["t1", "s1"], ["t2", "x"], ["t6", "s6"], ["t7", "s7"],
        ["t8!", "s8"],
      ])
  }

  @Test("wrong input changes nothing in the database, in the space and in the folder")
  func wrong() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, title text); INSERT INTO tasks VALUES (1, 'a');
      CREATE VIEW seen AS SELECT * FROM tasks; CREATE TABLE bare(n int);
      CREATE TABLE parts(id int PRIMARY KEY) PARTITION BY RANGE (id);
      CREATE TABLE part PARTITION OF parts FOR VALUES FROM (1) TO (9)
      """)
    let stage = company.stage
    for (table, reason) in [
      ("nil", "the database has no table public.nil"), ("seen", "it is a view"),
      ("bare", "it has no primary key"), ("part", "it is a partition"),
    ] {
      let failed = try await company.adopt("--table", "tasks", "--table", table, exits: 1)
      #expect(failed.error.contains(reason))
    }
    let column = try await company.adopt(
      "--table", "tasks", "--columns", "tasks=nil", exits: 1)
    #expect(column.error.contains("table tasks has no column nil"))
    let condition = try await company.adopt(
      "--table", "tasks", "--where", "tasks=nil > 1", exits: 1)
    #expect(condition.error.contains("column \"nil\" does not exist"))
    let other = try await company.adopt(
      "--table", "tasks", "--where", "lists=true", exits: 2)
    #expect(other.error.contains("table lists is not adopted"))
    #expect(try await company.device.open().schema().tables == [:])
    // The space defines the table in another way.
    let device = try await Device.joined(
      company.server.url, space: "other",
      schema: "CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT)", tracking: ["tasks"])
    try await device.ferry("schema", "publish")
    let differs = try await company.adopt("--table", "tasks", space: "other", exits: 1)
    #expect(differs.error.contains("the space defines table tasks in another way"))
    // A writer cannot publish.
    let admin = try await company.server.token("admin")
    let writer = try await company.server.token("writer")
    let refused = try await company.adopt("--table", "tasks", "--token", writer, exits: 1)
    #expect(refused.error.contains("the space of mirror crm cannot be used"))
    #expect(
      try stage.rows(
        "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal UNION ALL "
          + "SELECT nspname::text FROM pg_namespace WHERE nspname = 'ferry_mirror'") == [])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: stage.mirrors.url.path)
        .filter { $0 == "crm" } == [])
    try await company.adopt("--table", "tasks", "--token", admin)
    #expect(try stage.rows("SELECT title FROM tasks") == [["a"]])
    let taken = try await company.adopt(
      "--table", "tasks", "--columns", "tasks=title", "--where", "tasks=true", exits: 1)
    #expect(taken.error.contains("there is a mirror crm"))
  }
}

extension Value {
  /// The value as text, as PostgreSQL shows it.
  fileprivate var text: String? {
    switch self {
    case .null: nil
    case .text(let text): text
    case .integer(let number): String(number)
    case .real(let number): "\(number)"
    case .blob: "blob"
    }
  }
}
