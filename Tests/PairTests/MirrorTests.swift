import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Tables of PostgreSQL, synced with a space by a mirror, with real servers and processes.
@Suite("Mirrors", .hangLimit)
struct MirrorTests {
  static let schema = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL DEFAULT 'new');
    CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT, done INTEGER NOT NULL DEFAULT 0,
      weight REAL, photo BLOB, due TEXT,
      list TEXT REFERENCES lists(id) ON DELETE CASCADE);
    CREATE TABLE seats(hall INTEGER NOT NULL, place INTEGER NOT NULL, guest TEXT,
      PRIMARY KEY(hall, place)) WITHOUT ROWID;
    """

  /// A server, a device with published tables, and a database for a mirror.
  struct Stage {
    let server: Server
    let device: Device
    let database: String
    let mirrors: TemporaryDirectory

    static func make(_ more: String..., in cluster: PostgresCluster? = nil) async throws -> Stage {
      let server = try await Server.start()
      let device = try await Device.joined(
        server.url, schema: MirrorTests.schema, tracking: ["lists", "tasks", "seats"])
      try await device.ferry("schema", "publish")
      try await device.exchange()
      let stage = Stage(
        server: server, device: device, database: try await Server.database(in: cluster),
        mirrors: try TemporaryDirectory())
      try await stage.mirror(
        [
          "add", "crm", "--server", server.url, "--space", Device.space, "--database",
          stage.database, "--schema", "app",
        ] + more)
      return stage
    }

    /// Runs a command of mirrors. A slot waits for all transactions of the server, also for those of
    /// other tests: the command is tried again when they may have ended.
    @discardableResult
    func mirror(
      _ arguments: [String], exits code: Int32 = 0,
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ChildProcess.Finished {
      let command = ["mirror"] + arguments + ["--mirrors", mirrors.url.path]
      var finished: ChildProcess.Finished
      var tries = 0
      repeat {
        tries += 1
        finished = try await ChildProcess.run(
          try Executables.ferryd(), command, directory: mirrors.url, input: "")
      } while tries < 20 && finished.status != .exited(code)
        && finished.error.contains("a transaction on the server lasts too long")
      #expect(
        finished.status == .exited(code), "\(arguments): \(finished.error)\(finished.output)",
        sourceLocation: sourceLocation)
      return finished
    }

    func run(_ name: String = "crm") throws -> ChildProcess {
      try ChildProcess(
        try Executables.ferryd(), ["mirror", "run", name, "--mirrors", mirrors.url.path],
        directory: mirrors.url)
    }

    /// A busy machine may take longer than the default limit of a connection.
    private var patient: String {
      database + (database.contains("?") ? "&" : "?") + "connect_timeout=600"
    }

    func sql(_ text: String) throws { try PostgresConnection(url: patient).execute(text) }

    /// Returns the rows of a query of texts.
    func rows(_ query: String) throws -> [[String?]] {
      let found = try PostgresConnection(url: patient).query(.once(query))
      return try found.map { row in
        try (0..<found.columnCount).map { try row.ifPresent($0, as: String.self) }
      }
    }

    /// Waits until the query returns the rows. Tries a failed query again: the mirror may not have
    /// made the table yet.
    func eventuallyRows(_ query: String, _ rows: [[String?]]) async throws {
      do {
        try await eventually("\(rows) from \(query)") { (try? self.rows(query)) == rows }
      } catch {
        throw TestSupportError("\(error); the last answer: \(Result { try self.rows(query) })")
      }
    }

    /// Returns what the space and the tables have in common as texts.
    func expectEqual(_ queries: String...) async throws {
      try await device.exchange()
      for query in queries {
        let here = try await device.rows(query).map { $0.map(\.shown) }
        let there = try rows(query.replacingOccurrences(of: "FROM ", with: "FROM app."))
        #expect(here == there, "\(query)")
      }
    }

    /// Waits until everything has arrived in the space.
    func quiet() async throws {
      try await eventuallyRows("SELECT count(*)::text FROM ferry_mirror.captured", [["0"]])
    }
  }

  private static let tasks = "SELECT id, title, CAST(done AS text), list FROM tasks ORDER BY id"

  @Test("rows travel both ways, with their types, in whole transactions")
  func bothWays() async throws {
    let stage = try await Stage.make("--type", "tasks.done=boolean", "--type", "tasks.due=date")
    let run = try stage.run()
    try await stage.device.write(
      """
      INSERT INTO lists VALUES ('l', 'home');
      INSERT INTO tasks VALUES ('a', 'it''s "one"', 1, 2.5, x'00ff', '2026-11-25', 'l');
      INSERT INTO seats VALUES (1, -7, 'Ada')
      """)
    try await stage.device.exchange()
    try await stage.eventuallyRows(
      """
      SELECT t.id, title, done::text, weight::text, encode(photo, 'hex'), to_char(due, 'DD.MM.YYYY'),
        name FROM app.tasks t JOIN app.lists l ON l.id = list
      """, [["a", "it's \"one\"", "true", "2.5", "00ff", "25.11.2026", "home"]])

    try stage.sql(
      """
      BEGIN; SET LOCAL DateStyle = 'German';
      INSERT INTO app.tasks(id, title, list, weight, photo, due)
        VALUES ('b', E'ü\\n\\\\', 'm', 1e300, '\\x0102', '01.02.2027');
      INSERT INTO app.lists(id) VALUES ('m');
      UPDATE app.tasks SET done = NOT done, title = NULL WHERE id = 'a';
      UPDATE app.seats SET place = 8, guest = guest || '!';
      COMMIT
      """)
    try await stage.quiet()
    try await stage.device.exchange()
    #expect(
      try await stage.device.rows("SELECT * FROM tasks ORDER BY id") == [
        ["a", .null, 0, 2.5, .blob([0, 255]), "2026-11-25", "l"],
        ["b", "ü\n\\", 0, 1e300, .blob([1, 2]), "2027-02-01", "m"],
      ])
    #expect(
      try await stage.device.rows("SELECT * FROM lists ORDER BY id") == [
        ["l", "home"], ["m", "new"],
      ])
    #expect(try await stage.device.rows("SELECT * FROM seats") == [[1, 8, "Ada!"]])
    // A cascade in PostgreSQL, and a row without an explicit key.
    try stage.sql("DELETE FROM app.lists WHERE id = 'm'; INSERT INTO app.tasks(title) VALUES ('c')")
    try await stage.quiet()
    try await stage.device.exchange()
    #expect(
      try await stage.device.rows("SELECT title FROM tasks ORDER BY title") == [[.null], ["c"]])
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
  }

  @Test("a write that the space's rules reject is corrected in the table")
  func rejected() async throws {
    let stage = try await Stage.make()
    try await stage.device.write("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM app.tasks", [["a"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    // While the mirror is down, the space deletes the record and the program updates it.
    try await stage.device.write("DELETE FROM tasks")
    try await stage.device.exchange()
    try stage.sql("UPDATE app.tasks SET title = 'two'; INSERT INTO app.tasks(id) VALUES ('b')")
    let again = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM app.tasks", [["b"]])
    try await stage.quiet()
    try await stage.expectEqual(Self.tasks)
    again.send(SIGKILL)
    _ = try await again.exitStatus()
  }

  @Test("values that PostgreSQL cannot hold are deferred with their reason, and all others go on")
  func deferred() async throws {
    let stage = try await Stage.make("--type", "tasks.due=date")
    let run = try stage.run()
    try await stage.device.write(
      """
      INSERT INTO tasks(id, title) VALUES ('a', 'x' || char(0)), ('b', 'two');
      INSERT INTO tasks(id, due) VALUES ('c', 'tomorrow'), ('d', '2026-01-01'), ('e', '2026-13-01')
      """)
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.tasks ORDER BY id", [["b"], ["d"]])
    let status = try await stage.mirror(["status", "crm"])
    #expect(status.output.contains("deferred   3 rows"))
    #expect(
      status.output.contains("tasks a: column title: PostgreSQL cannot hold U+0000 in a text"))
    #expect(status.output.contains("tasks c: column due: “tomorrow” does not begin as a date"))
    #expect(status.output.contains("tasks e: date/time field value out of range"))
    try await stage.device.write(
      "UPDATE tasks SET title = 'one', due = NULL WHERE id IN ('a', 'c', 'e')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT count(*)::text FROM app.tasks", [["5"]])
    #expect(try stage.rows("SELECT tab FROM ferry_mirror.deferred") == [])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }

  @Test("rows that bypassed the triggers are found, and repaired on either side")
  func verified() async throws {
    let stage = try await Stage.make()
    try await stage.device.write(
      "INSERT INTO tasks(id, title) VALUES ('a', 'one'), ('b', 'two'), ('c', 'three')")
    try await stage.device.exchange()
    let clean = try await stage.mirror(["verify", "crm"])
    #expect(clean.output == "0 rows differ\n")
    let bypass = """
      SET session_replication_role = replica; UPDATE app.tasks SET title = 'other' WHERE id = 'a';
      DELETE FROM app.tasks WHERE id = 'b'; INSERT INTO app.tasks(id) VALUES ('x')
      """
    try stage.sql(bypass)
    let found = try await stage.mirror(["verify", "crm"], exits: 1)
    #expect(
      found.output.split(separator: "\n").sorted() == [
        "3 rows differ", "tasks a: differs", "tasks b: only in the space",
        "tasks x: only in the table",
      ])
    try await stage.mirror(["verify", "crm", "--repair", "tables"])
    try await stage.expectEqual(Self.tasks)
    #expect(try stage.rows("SELECT id FROM app.tasks ORDER BY id") == [["a"], ["b"], ["c"]])
    try stage.sql(bypass)
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try await stage.expectEqual(Self.tasks)
    #expect(
      try stage.rows("SELECT title FROM app.tasks ORDER BY id") == [["other"], ["three"], [nil]])
  }

  @Test("a mirror that is killed again and again loses and repeats nothing")
  func killed() async throws {
    let stage = try await Stage.make()
    for round in 0..<6 {
      let run = try stage.run()
      try stage.sql(
        """
        INSERT INTO app.tasks(id, title) SELECT 'p\(round)-' || n, 'p' FROM generate_series(1, 300) n;
        UPDATE app.tasks SET title = title || '+' WHERE id LIKE 'd%'
        """)
      try await stage.device.write(
        """
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
        INSERT INTO tasks(id, title) SELECT 'd\(round)-' || n, 'd' FROM n
        """)
      try await stage.device.exchange()
      // At another place each time: as soon as it has read writes, or brought rows.
      if round % 2 == 0 {
        _ = try await run.line { $0.contains("applied") }
      } else {
        try await eventually("it has taken writes", from: run) {
          try stage.rows("SELECT 1::text FROM ferry_mirror.captured LIMIT 1").isEmpty
        }
      }
      run.send(SIGKILL)
      _ = try await run.exitStatus()
    }
    let run = try stage.run()
    try await stage.quiet()
    try await eventually("the tables are equal", from: run) {
      try await stage.device.exchange()
      let here = try await stage.device.rows(Self.tasks).map { $0.map(\.shown) }
      let there = try stage.rows(Self.tasks.replacingOccurrences(of: "FROM ", with: "FROM app."))
      return here == there && there.count == 3_600
    }
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }

  @Test("a server runs mirrors, which wait for a database that is not there yet")
  func insideServer() async throws {
    let cluster = try PostgresCluster()
    let stage = try await Stage.make(in: cluster)
    try cluster.stop(.immediate)
    let server = try ChildProcess(
      try Executables.ferryd(),
      [
        "serve", "--listen", "127.0.0.1:0", "--data", stage.mirrors.file("data").path, "--mirror",
        "crm", "--mirrors", stage.mirrors.url.path,
      ])
    _ = try await server.line { $0.contains("a mirror stopped") }
    try cluster.start()
    try await stage.device.write("INSERT INTO tasks(id) VALUES ('a')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.tasks", [["a"]])
    // PostgreSQL dies while the mirror runs.
    try cluster.restart(.immediate)
    try stage.sql("INSERT INTO app.tasks(id) VALUES ('b')")
    try await stage.quiet()
    try await stage.expectEqual(Self.tasks)
    server.send(SIGTERM)
    #expect(try await server.exitStatus() == .exited(0))
  }

  @Test("a mirror follows a schema that gets a table and a column")
  func grows() async throws {
    let stage = try await Stage.make()
    try await stage.device.write("INSERT INTO tasks(id) VALUES ('old')")
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM app.tasks", [["old"]])
    try await stage.device.write(
      "ALTER TABLE tasks ADD COLUMN color TEXT; CREATE TABLE tags(id TEXT PRIMARY KEY NOT NULL)")
    try await stage.device.ferry("track", "tags")
    try await stage.device.ferry("schema", "publish")
    try await stage.device.write(
      """
      INSERT INTO tasks(id, color) VALUES ('a', 'red'); UPDATE tasks SET color = 'green' WHERE id = 'old';
      INSERT INTO tags VALUES ('t')
      """)
    try await stage.device.exchange()
    try await eventually("the new column and the new table", from: run) {
      (try? stage.rows("SELECT color, t.id FROM app.tasks, app.tags t ORDER BY color")) == [
        ["green", "t"], ["red", "t"],
      ]
    }
    try stage.sql("UPDATE app.tasks SET color = 'blue'")
    try await stage.quiet()
    try await stage.device.exchange()
    #expect(try await stage.device.rows("SELECT color FROM tasks") == [["blue"], ["blue"]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
  }

  @Test("a mirror refuses tables with rows, unknown tables and types that do not fit")
  func refused() async throws {
    let stage = try await Stage.make()
    try stage.sql("CREATE TABLE public.tasks(id text PRIMARY KEY); INSERT INTO tasks VALUES ('a')")
    let common = [
      "--server", stage.server.url, "--space", Device.space, "--database", stage.database,
    ]
    let filled = try await stage.mirror(["add", "two"] + common, exits: 1)
    #expect(filled.error.contains("table public.tasks has rows"))
    let unknown = try await stage.mirror(["add", "two", "--table", "nil"] + common, exits: 1)
    #expect(unknown.error.contains("does not define table nil"))
    let unfit = try await stage.mirror(
      ["add", "two", "--type", "tasks.title=boolean"] + common, exits: 1)
    #expect(unfit.error.contains("is declared text, which cannot become boolean"))
    let taken = try await stage.mirror(["add", "crm"] + common, exits: 1)
    #expect(taken.error.contains("there is a mirror crm"))
    // Nothing of a refused mirror is left.
    #expect(try await stage.mirror(["list", "--json"]).output.contains("\"two\"") == false)
    try await stage.mirror(["remove", "crm"])
    try stage.sql("INSERT INTO app.tasks(id) VALUES ('free')")
    #expect(try stage.rows("SELECT tab FROM ferry_mirror.captured") == [])
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
    case .blob(let bytes): bytes.map { String($0, radix: 16) }.joined()
    }
  }
}
