import Ferry
import FerryTestSupport
import Testing

/// Users' triggers that write to tables that sync, on devices that pull each other's changes.
@Suite("Users' triggers on several devices", .hangLimit)
struct TriggerTests {
  /// A schema with triggers, a write, and the query of its result.
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let tables: [String]
    let schema: String
    let rows: String
    let write: String
    let result: String
    let expected: Value
    var testDescription: String { name }
  }

  private static let places = """
    CREATE TABLE place(id TEXT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE folder(id TEXT PRIMARY KEY);
    """
  private static let counting = """
    CREATE TRIGGER more AFTER INSERT ON bm BEGIN UPDATE place SET n = n + 1 WHERE id = NEW.place; END;
    CREATE TRIGGER less AFTER DELETE ON bm BEGIN UPDATE place SET n = n - 1 WHERE id = OLD.place; END
    """
  private static let tables = ["place", "folder", "bm"]
  private static let rows = """
    INSERT INTO place(id) VALUES ('p'); INSERT INTO folder VALUES ('f'), ('g');
    INSERT INTO bm VALUES ('1', 'f', 'p'), ('2', 'f', 'p'), ('3', 'g', 'p')
    """
  private static let count = "SELECT n FROM place"

  private static func marks(_ action: String) -> String {
    places + "CREATE TABLE bm(id TEXT PRIMARY KEY, folder TEXT\(action), place TEXT);"
  }

  static let cases: [Case] = [
    Case(
      name: "a count, one row", tables: tables, schema: marks("") + counting, rows: rows,
      write: "DELETE FROM bm WHERE id = '1'", result: count, expected: 2),
    Case(
      name: "a count, rows that go with a parent", tables: tables,
      schema: marks(" REFERENCES folder(id) ON DELETE CASCADE") + counting, rows: rows,
      write: "DELETE FROM folder WHERE id = 'f'", result: count, expected: 1),
    Case(
      name: "a count, rows and their parent", tables: tables,
      schema: marks(" REFERENCES folder(id) ON DELETE CASCADE") + counting, rows: rows,
      write: "DELETE FROM bm; DELETE FROM folder", result: count, expected: 0),
    Case(
      name: "a count, integer keys", tables: tables,
      schema: """
        CREATE TABLE place(id INTEGER PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE folder(id INTEGER PRIMARY KEY);
        CREATE TABLE bm(id INTEGER PRIMARY KEY,
          folder INTEGER REFERENCES folder(id) ON DELETE CASCADE,
          place INTEGER REFERENCES place(id));
        """ + counting,
      rows: """
        INSERT INTO place(id) VALUES (1); INSERT INTO folder VALUES (1), (2);
        INSERT INTO bm VALUES (1, 1, 1), (2, 1, 1), (3, 2, 1)
        """, write: "DELETE FROM folder WHERE id = 1", result: count, expected: 1),
    Case(
      name: "a count, rows that go in two steps", tables: tables + ["sub"],
      schema: places + """
        CREATE TABLE sub(id TEXT PRIMARY KEY, f TEXT REFERENCES folder(id) ON DELETE CASCADE);
        CREATE TABLE bm(id TEXT PRIMARY KEY, sub TEXT REFERENCES sub(id) ON DELETE CASCADE,
          place TEXT);
        """ + counting,
      rows: """
        INSERT INTO place(id) VALUES ('p'); INSERT INTO folder VALUES ('f');
        INSERT INTO sub VALUES ('s', 'f'); INSERT INTO bm VALUES ('1', 's', 'p'), ('2', 's', 'p')
        """, write: "DELETE FROM folder", result: count, expected: 0),
    Case(
      name: "a count of moved rows, ON DELETE SET NULL", tables: tables,
      schema: marks(" REFERENCES folder(id) ON DELETE SET NULL") + """
        CREATE TRIGGER moved AFTER UPDATE OF folder ON bm BEGIN
          UPDATE place SET n = n + 100 WHERE id = NEW.place;
        END
        """, rows: rows, write: "DELETE FROM folder WHERE id = 'f'", result: count, expected: 200),
    Case(
      name: "a log of deletes", tables: tables + ["log"],
      schema: marks(" REFERENCES folder(id) ON DELETE CASCADE") + """
        CREATE TABLE log(id TEXT PRIMARY KEY, line);
        CREATE TRIGGER logged AFTER DELETE ON bm BEGIN
          INSERT INTO log VALUES (hex(randomblob(8)), OLD.id);
        END
        """, rows: rows, write: "DELETE FROM folder WHERE id = 'f'",
      result: "SELECT count(*) FROM log", expected: 2),
    Case(
      name: "a log before deletes", tables: tables + ["log"],
      schema: marks("") + """
        CREATE TABLE log(id TEXT PRIMARY KEY, line);
        CREATE TRIGGER logged BEFORE DELETE ON bm BEGIN
          INSERT INTO log VALUES (hex(randomblob(8)), OLD.id);
        END
        """, rows: rows, write: "DELETE FROM bm WHERE id = '1'",
      result: "SELECT count(*) FROM log", expected: 1),
    Case(
      name: "a row that replaces a deleted one", tables: tables,
      schema: marks("") + """
        CREATE TRIGGER again AFTER DELETE ON bm WHEN OLD.place IS NOT NULL BEGIN
          INSERT INTO bm VALUES (hex(randomblob(8)), OLD.folder, NULL);
        END
        """, rows: rows, write: "DELETE FROM bm WHERE id = '1'",
      result: "SELECT count(*) FROM bm WHERE place IS NULL", expected: 1),
  ]

  @Test(
    "one delete has the effects of its author's triggers once, on all devices", arguments: cases)
  func once(_ test: Case) async throws {
    let pair = try await Pair.make(schema: test.schema, tracking: test.tables)
    let three = try await Device.joined(
      pair.server.url, schema: test.schema, tracking: test.tables)
    let devices = [pair.one, pair.two, three]
    try await pair.one.write(test.rows)
    for device in devices { _ = try await device.open().sync() }
    try await pair.one.write(test.write)
    _ = try await pair.one.open().sync()
    let head = try await pair.server.head()
    for device in devices + devices { _ = try await device.open().sync() }
    for device in devices {
      #expect(try await device.value(test.result) == test.expected)
      #expect(try await device.status().deferred == 0)
    }
    #expect(try await pair.server.head() == head)
  }

  @Test("a row that only this device has goes with its effects, and they are recorded")
  func ownRow() async throws {
    let pair = try await Pair.make(
      schema: Self.marks(" REFERENCES folder(id) ON DELETE CASCADE") + Self.counting,
      tracking: Self.tables)
    let devices = [pair.one, pair.two]
    try await pair.one.write(Self.rows)
    for device in devices { _ = try await device.open().sync() }
    try await pair.one.write("DELETE FROM folder WHERE id = 'g'")
    try await pair.two.write(
      "INSERT INTO place(id) VALUES ('q'); INSERT INTO bm VALUES ('4', 'g', 'q')")
    for device in devices + devices + devices { _ = try await device.open().sync() }
    for device in devices {
      #expect(
        try await device.rows("SELECT id, n FROM place ORDER BY id") == [["p", 2], ["q", 0]])
      #expect(try await device.count("bm") == 2)
      #expect(try await device.open().verify().isEqual)
    }
  }

  @Test("a row that goes with a row of a table that does not sync stops no delete")
  func untrackedParent() async throws {
    let schema = """
      CREATE TABLE a(id TEXT PRIMARY KEY);
      CREATE TABLE local(id TEXT PRIMARY KEY);
      CREATE TABLE c(id TEXT PRIMARY KEY, local TEXT REFERENCES local(id) ON DELETE CASCADE);
      CREATE TRIGGER gone AFTER DELETE ON a BEGIN DELETE FROM local WHERE id = OLD.id; END
      """
    let pair = try await Pair.make(schema: schema, tracking: ["a", "c"])
    let devices = [pair.one, pair.two]
    for device in devices { try await device.write("INSERT INTO local VALUES ('x')") }
    try await pair.one.write("INSERT INTO a VALUES ('x')")
    for device in devices { _ = try await device.open().sync() }
    try await pair.two.write("INSERT INTO c VALUES ('1', 'x')")
    try await pair.one.write("DELETE FROM a")
    for device in devices + devices { _ = try await device.open().sync() }
    for device in devices {
      #expect(try await device.count("a") == 0)
      #expect(try await device.count("c") == 0)
    }
    #expect(try await pair.two.status().deferred == 0)
  }
}
