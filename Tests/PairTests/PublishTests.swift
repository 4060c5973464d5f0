import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Definitions of tables that travel in the space's schema.
@Suite("Published tables", .hangLimit)
struct PublishTests {
  private static let schema = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE, name TEXT NOT NULL DEFAULT 'it''s');
    CREATE TABLE "to do"(key TEXT PRIMARY KEY NOT NULL, list TEXT REFERENCES lists(id) ON DELETE CASCADE,
      code TEXT REFERENCES lists(code) ON UPDATE CASCADE, "we""ight" REAL DEFAULT 1.5, n INTEGER, photo BLOB,
      rank NUMERIC, UNIQUE(list, n));
    CREATE INDEX by_weight ON "to do"("we""ight", n);
    CREATE TABLE audits(id TEXT PRIMARY KEY, n INT CHECK (n > 0), at TEXT DEFAULT CURRENT_TIMESTAMP);
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
          left out: column at: its default is computed
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
