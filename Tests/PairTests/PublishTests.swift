import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Definitions of tables in the space's schema.
@Suite("Published tables", .hangLimit)
struct PublishTests {
  private static let schema = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE, name TEXT NOT NULL DEFAULT 'it''s');
    CREATE TABLE "to do"(key TEXT PRIMARY KEY NOT NULL, list TEXT REFERENCES lists(id) ON DELETE CASCADE,
      code TEXT REFERENCES lists(code) ON UPDATE CASCADE, "we""ight" REAL DEFAULT 1.5, n INTEGER, photo BLOB,
      rank NUMERIC, UNIQUE(list, n));
    CREATE INDEX by_weight ON "to do"("we""ight", n);
    CREATE TABLE audits(id TEXT PRIMARY KEY, n INT CHECK (n > 0), at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
      day TEXT DEFAULT (date('now')), code TEXT DEFAULT (hex(randomblob(4))));
    CREATE INDEX few ON audits(n) WHERE n > 5;
    """

  private let facts = """
    SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_schema AS t,
      pragma_table_info(t.name) AS c WHERE t.name IN ('lists', 'to do') ORDER BY 1, c.cid
    """
  private let references = """
    SELECT "table", "from", coalesce("to", 'id'), on_update, on_delete FROM pragma_foreign_key_list('to do') ORDER BY 1, 2
    """
  private let indexes = """
    SELECT i.origin, i."unique", c.name FROM pragma_index_list('to do') AS i,
      pragma_index_info(i.name) AS c ORDER BY i.origin, c.seqno
    """

  @Test("a new device makes a table whose key has several columns")
  func severalColumns() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url,
      schema: """
        CREATE TABLE seats(hall INTEGER NOT NULL, place INTEGER NOT NULL, guest TEXT,
          PRIMARY KEY(hall, place))
        """, tracking: ["seats"])
    try await one.write("INSERT INTO seats VALUES (1, 2, 'Ada')")
    try await one.ferry("schema", "publish")
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    #expect(try await two.ferry("track", "--create", "--all").output.hasPrefix("tracked: seats"))
    #expect(try await two.rows("SELECT * FROM seats") == [[1, 2, "Ada"]])
  }

  @Test(
    "columns of created tables have the order that they have on the device which published them")
  func order() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url,
      schema: """
        CREATE TABLE people(name TEXT, id TEXT PRIMARY KEY, twice AS (age * 2), age INTEGER);
        CREATE TABLE tracks(note TEXT, track INTEGER NOT NULL, list INTEGER NOT NULL,
          PRIMARY KEY(list, track))
        """, tracking: ["people", "tracks"])
    let insert = "INSERT INTO people VALUES ('Ada', 'a', 36); INSERT INTO tracks VALUES ('n', 1, 2)"
    try await one.write(insert)
    try await one.ferry("schema", "publish")
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    try await two.ferry("track", "--create", "--all")
    try await two.write("INSERT INTO people VALUES ('Bob', 'b', 37)")
    #expect(
      try await two.rows("SELECT * FROM people ORDER BY id") == [
        ["Ada", "a", 36], ["Bob", "b", 37],
      ])
    #expect(try await two.rows("SELECT * FROM tracks") == [["n", 1, 2]])
  }

  @Test("a new device makes the tables that another one published, with all their rules")
  func published() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url, schema: Self.schema, tracking: ["lists", "to do", "audits"])
    try await one.write(
      """
      INSERT INTO lists VALUES ('l', 'L', 'home');
      INSERT INTO "to do" VALUES ('a', 'l', 'L', 2.5, 1, x'00ff', '7')
      """)
    let shown = try await one.ferry("schema", "publish")
    #expect(
      shown.output == """
        version 1 is in force
        audits: published
          left out: column code: its default is computed
          left out: index few: it has a condition or an expression
          left out: CHECK clauses
        lists: published
        to do: published

        """)
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    let early = try await two.ferry("track", "--create", "--all")
    #expect(early.output.contains("run `ferry sync` first"))
    try await two.exchange()
    let made = try await two.ferry("track", "--create", "--all")
    #expect(made.output == "tracked: audits, lists, to do\n")
    #expect(try await two.rows(facts) == one.rows(facts))
    try await two.write("INSERT INTO audits(id) VALUES ('x')")
    let times = "SELECT count(*) FROM audits WHERE datetime(at) = at AND date(day) = day"
    #expect(try await two.rows(times) == [[1]])
    #expect(try await two.rows(references) == one.rows(references))
    #expect(try await two.rows(indexes) == one.rows(indexes))
    for table in ["lists", "to do"] {
      let rows = "SELECT * FROM \"\(table)\""
      #expect(try await two.rows(rows) == one.rows(rows))
    }
    try await two.write("UPDATE lists SET code = 'M'")
    try await two.exchange()
    try await one.exchange()
    #expect(try await one.value("SELECT code FROM \"to do\"") == "M")
    try await one.write("DELETE FROM lists")
    for device in [one, two] { try await device.exchange() }
    #expect(try await two.count("\"to do\"") == 0)
    for device in [one, two] { #expect(try await device.open().verify().isEqual) }
  }

  @Test("a definition has the names of the space, and keeps the rules of the schema")
  func renamed() async throws {
    let pair = try await Pair.make()
    let replica = try await pair.one.open()
    try await replica.applySchema(
      SpaceSchema(tables: ["notes": TableRules(columns: ["n": ColumnRules(policy: .max)])]))
    try await replica.write { database in
      try database.renameColumn("body", of: "notes", to: "text")
      try database.renameTable("notes", to: "memos")
    }
    let report = try await replica.publishTables(["memos"])
    #expect(report.tables == ["notes"])
    #expect(report.schema.rules(for: "notes").policy(of: "n") == .max)
    let declared = report.schema.rules(for: "notes").definition
    #expect(
      declared
        == DeclaredTable(
          key: "id", columns: [DeclaredColumn("body", .text), DeclaredColumn("n", .integer)]))
    await #expect(throws: ReplicaError.self) { try await replica.publishTables(["parts"]) }
  }

  @Test("rows that refer to later rows, and in circles, are applied when the tables are created")
  func laterParents() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url, schema: Self.circles, tracking: [])
    try await one.ferry("track", "--all")
    try await one.write(
      """
      INSERT INTO teams VALUES ('x', NULL), ('y', NULL);
      INSERT INTO people VALUES (3, NULL, 'x', 0), (2, 3, 'y', 0), (1, 2, 'x', 0);
      UPDATE teams SET lead = 2 WHERE id = 'x'
      """)
    for step in (1...20).reversed() {
      let next: Value = step == 20 ? .null : .text("s\(step + 1)")
      try await one.write("INSERT INTO steps VALUES (?, ?, 0)", [.text("s\(step)"), next])
    }
    // The pull lists each record at the newest write: children come first.
    for person in 1...3 { try await one.write("UPDATE people SET n = 1 WHERE id = \(person)") }
    for step in 1...20 { try await one.write("UPDATE steps SET n = 1 WHERE id = 's\(step)'") }
    try await one.ferry("schema", "publish")
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    let made = try await two.ferry("track", "--create", "--all")
    #expect(made.error.isEmpty, "\(made.error)")
    #expect(try await two.status().toApply == 0)
    #expect(try await two.count("steps") == 20)
    let bosses = "SELECT a.team, b.team FROM people a JOIN people b ON b.id = a.boss ORDER BY 1"
    #expect(try await two.rows(bosses) == one.rows(bosses))
    // Foreign keys are checked again at once.
    await #expect(throws: ReplicaError.self) {
      try await two.write("INSERT INTO steps VALUES ('bad', 'none', 0)")
    }
    #expect(try await two.open().verify().isEqual)
  }

  private static let circles = """
    CREATE TABLE people(id INTEGER PRIMARY KEY, boss INTEGER REFERENCES people(id),
      team TEXT REFERENCES teams(id), n INTEGER);
    CREATE TABLE teams(id TEXT PRIMARY KEY, lead INTEGER REFERENCES people(id));
    CREATE TABLE steps(id TEXT PRIMARY KEY, next TEXT REFERENCES steps(id), n INTEGER);
    """

  private static let options = """
    CREATE TABLE kinds(id TEXT PRIMARY KEY NOT NULL, v ANY, n INTEGER, b BLOB) STRICT;
    CREATE TABLE pairs(a TEXT NOT NULL, b ANY NOT NULL, n INT CHECK (n > 0), PRIMARY KEY(a, b))
      STRICT, WITHOUT ROWID;
    CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, "check" TEXT /* CHECK COLLATE */);
    CREATE TABLE eggs(id TEXT PRIMARY KEY NOT NULL,
      hen TEXT NOT NULL REFERENCES hens(id) DEFERRABLE INITIALLY DEFERRED,
      nest TEXT REFERENCES hens(id) NOT DEFERRABLE);
    CREATE TABLE hens(id TEXT PRIMARY KEY NOT NULL, egg TEXT NOT NULL, name TEXT COLLATE NOCASE,
      code TEXT UNIQUE ON CONFLICT REPLACE,
      FOREIGN KEY (egg) REFERENCES eggs(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
    CREATE INDEX hens_by_name ON hens(name DESC);
    CREATE UNIQUE INDEX hens_by_any ON hens(name COLLATE NOCASE);
    CREATE TRIGGER laid AFTER INSERT ON hens BEGIN SELECT 1; END;
    """

  @Test("a new device keeps the options of tables and all values, and omitted parts are named")
  func options() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url, schema: Self.options, tracking: [])
    try await one.ferry("track", "--all")
    try await one.write(
      """
      INSERT INTO kinds VALUES ('a', '007', 1, x'00'), ('b', '9007199254740993.5', 2, NULL),
        ('c', 7.0, 3, NULL), ('d', 7, 4, NULL);
      INSERT INTO pairs VALUES ('x', '07', 1), ('x', 7, 2);
      INSERT INTO counted("check") VALUES ('one');
      INSERT INTO hens VALUES ('h', 'e', 'Ada', 'c');
      INSERT INTO eggs VALUES ('e', 'h', NULL)
      """)
    let shown = try await one.ferry("schema", "publish")
    #expect(
      shown.output == """
        version 1 is in force
        counted: published
        eggs: published
        hens: published
          left out: index hens_by_name: its order or collation
          left out: index hens_by_any: its order or collation
          left out: column name: its collation NOCASE
          left out: ON CONFLICT clauses
          left out: trigger laid
        kinds: published
        pairs: published
          left out: CHECK clauses

        """)
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    try await two.ferry("track", "--create", "--all")
    let flags = """
      SELECT name, strict, wr FROM pragma_table_list WHERE name IN ('kinds', 'pairs', 'eggs') ORDER BY 1
      """
    #expect(try await two.rows(flags) == one.rows(flags))
    let values = "SELECT id, v, typeof(v), n, b FROM kinds ORDER BY id"
    #expect(try await two.rows(values) == one.rows(values))
    let parts = "SELECT a, b, typeof(b), n FROM pairs ORDER BY n"
    #expect(try await two.rows(parts) == one.rows(parts))
    #expect(try await two.value("SELECT v FROM kinds WHERE id = 'a'") == "007")
    // Only the author's device compares names without case.
    try await two.write("INSERT INTO hens VALUES ('n', 'e', 'ADA', NULL)")
    try await two.write("DELETE FROM hens WHERE id = 'n'")
    await #expect(throws: ReplicaError.self) {
      try await two.write("INSERT INTO kinds VALUES ('bad', 1, 'no number', NULL)")
    }
    // A circle in one transaction.
    try await two.write(
      "INSERT INTO eggs VALUES ('f', 'i', 'h'); INSERT INTO hens VALUES ('i', 'f', 'Bo', 'd')")
    await #expect(throws: ReplicaError.self) {
      try await two.write(
        "INSERT INTO eggs VALUES ('g', 'h', 'none'); DELETE FROM eggs WHERE id = 'g'")
    }
    try await two.write("INSERT INTO counted(id) VALUES (50); DELETE FROM counted WHERE id = 50")
    try await two.write("INSERT INTO counted(\"check\") VALUES ('two')")
    #expect(try await two.value("SELECT max(id) FROM counted") == 51)
    for device in [two, one] { try await device.exchange() }
    for device in [one, two] { #expect(try await device.open().verify().isEqual) }
    #expect(try await one.value("SELECT hen FROM eggs WHERE id = 'f'") == "i")
  }

  @Test("a row without its parent waits after the tables are created, and the command reports it")
  func missingParent() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url, schema: "CREATE TABLE steps(id TEXT PRIMARY KEY, next TEXT)", tracking: ["steps"])
    try await one.write("INSERT INTO steps VALUES ('a', 'none'), ('b', 'a'), ('c', NULL)")
    let key = DeclaredTable(
      key: "id", columns: [DeclaredColumn("next", .text)],
      references: [DeclaredReference(["next"], to: "steps")])
    try await one.open().applySchema(SpaceSchema(tables: ["steps": TableRules(definition: key)]))
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    let made = try await two.ferry("track", "--create", "--all", exits: 4)
    #expect(made.error.contains("2 records could not be applied here"))
    #expect(try await two.rows("SELECT id FROM steps") == [["c"]])
    try await one.write("INSERT INTO steps VALUES ('none', NULL)")
    for device in [one, two] { try await device.exchange() }
    #expect(try await two.count("steps") == 4)
  }

  @Test("a table that is here already is not sent, and stops no other one")
  func fault() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url, schema: Self.schema, tracking: ["lists", "to do", "audits"])
    try await one.write("INSERT INTO audits(id, n) VALUES ('a', 7)")
    try await one.open().publishTables()
    try await one.exchange()
    let two = try Device()
    try await two.write(
      "CREATE TABLE lists(id TEXT PRIMARY KEY, secret); INSERT INTO lists VALUES ('mine', 1)")
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    let made = try await two.ferry("track", "--create", "--all", exits: 4)
    #expect(made.output == "tracked: audits, to do\n")
    #expect(made.error.contains("lists is here already and not tracked"))
    #expect(try await two.value("SELECT n FROM audits") == 7)
    #expect(try await two.status().pending == 0)
    let usage = try await two.ferry("track", "--all", "audits", exits: 2)
    #expect(usage.error.contains("ferry track --create --all"))
  }
}
