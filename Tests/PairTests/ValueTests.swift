import Ferry
import FerryTestSupport
import Testing

/// The values of rows and their references, from one device to another.
@Suite(.hangLimit)
struct ValueTests {
  @Test("values of every kind arrive unchanged", arguments: StoreKind.allCases)
  func exactValues(_ kind: StoreKind) async throws {
    let values: [Value] = [
      .null, .integer(.min), .integer(.max), .integer(9_007_199_254_740_993), .integer(-1),
      .real(-0.0), .real(0.1), .real(.leastNonzeroMagnitude), .real(.greatestFiniteMagnitude),
      .real(.infinity),
      .text(""), .text("a\u{0}b"), .text("\u{0}"), .text("👩‍👩‍👧‍👦 🇫🇮 é e\u{301}"),
      .text("\"\\/\u{1}\u{7F}\u{2028}"),
      .text("9007199254740993"), .blob([]), .blob(Array(0...255)), .blob([0]),
    ]
    let schema = "CREATE TABLE things(id TEXT PRIMARY KEY, value)"
    let pair = try await Pair.make(kind, schema: schema, tracking: ["things"])
    try await pair.one.open().write { database in
      for (index, value) in values.enumerated() {
        try database.execute(
          "INSERT INTO things VALUES (?, ?)", [.text("v\(index + 100)"), value])
      }
    }
    try await pair.one.exchange()
    try await pair.two.exchange()
    let arrived = try await pair.two.rows("SELECT value FROM things ORDER BY id")
    #expect(arrived.map { $0[0] } == values)
    try await expectSettled(
      [pair.one, pair.two], pair.server, operations: Int64(values.count), tables: ["things"])
  }

  @Test(
    "rows within the limits arrive, however well they compress", arguments: StoreKind.allCases)
  func compressible(_ kind: StoreKind) async throws {
    let schema = "CREATE TABLE logs(id TEXT PRIMARY KEY, one, two, three)"
    let pair = try await Pair.make(kind, schema: schema, tracking: ["logs"])
    // The first message of a device is not coded: it does not know yet what the server reads.
    try await pair.one.exchange()
    let line = "2026-11-28T13:47:44Z INFO request served in 12 ms\n"
    let text = String(repeating: line, count: 1_000_000 / line.utf8.count)
    try await pair.one.open().write { database in
      try database.execute("INSERT INTO logs VALUES ('zeros', zeroblob(800000), NULL, NULL)")
      try database.execute(
        "INSERT INTO logs VALUES ('lines', ?1, ?1, ?1)", [.text(text)])
    }
    #expect(try await pair.one.exchange().quarantined == 0)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 2, tables: ["logs"])
  }

  @Test(
    "values of tables and columns that differ in case alone meet", arguments: StoreKind.allCases)
  func spellings(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let one = try await Device.joined(
      server.url, schema: "CREATE TABLE Items(id TEXT PRIMARY KEY, v, n)", tracking: ["Items"])
    let two = try await Device.joined(
      server.url, schema: "CREATE TABLE items(id TEXT PRIMARY KEY, V, N)", tracking: ["items"])
    try await one.write("INSERT INTO Items VALUES ('one', 1, 1)")
    try await two.write("INSERT INTO items VALUES ('two', 2, 2)")
    for device in [one, two, one] { try await device.exchange() }
    try await one.ferry("sql", "ALTER TABLE Items RENAME COLUMN n TO N")
    try await one.write("UPDATE Items SET v = 3, N = 3 WHERE id = 'two'")
    try await two.write("UPDATE items SET V = 4, N = 4 WHERE id = 'one'")
    for device in [one, two, one] { try await device.exchange() }
    for device in [one, two] {
      #expect(
        try await device.rows("SELECT * FROM items ORDER BY id") == [
          ["one", 4, 4], ["two", 3, 3],
        ])
      #expect(try await device.ferry("verify").output.contains("equal"))
    }
  }

  @Test("a sync fails if the space knows two spellings of a column, and names them")
  func clashingSpellings() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url, schema: "CREATE TABLE t(id TEXT PRIMARY KEY, v)", tracking: ["t"])
    let two = try await Device.joined(
      server.url, schema: "CREATE TABLE t(id TEXT PRIMARY KEY, V)", tracking: ["t"])
    for device in [one, two] { try await device.exchange() }
    try await one.write("INSERT INTO t VALUES ('one', 1)")
    try await two.write("INSERT INTO t VALUES ('two', 2)")
    for device in [one, two] { try await device.open().send() }
    for (device, waiting) in [(one, "V"), (two, "v")] {
      let finished = try await device.ferry("sync", exits: 4)
      #expect(finished.error.contains("column \(waiting) of t"))
      #expect(!finished.error.contains("ADD COLUMN"))
      #expect(try await device.ferry("to-apply").output.contains(waiting))
    }
    // The device with v changes to V as documented: it has all values, and sends the local ones.
    _ = try await one.ferry(
      "sql",
      """
      CREATE TABLE former AS SELECT id, v FROM t;
      ALTER TABLE t DROP COLUMN v;
      ALTER TABLE t ADD COLUMN V;
      UPDATE t SET V = (SELECT v FROM former WHERE former.id = t.id) WHERE V IS NULL;
      DROP TABLE former
      """)
    #expect(try await one.ferry("sync").output.contains("pushed"))
    let rows = try await one.ferry("sql", "SELECT id, V FROM t ORDER BY id", "--json").output
    #expect(rows == "{\"id\":\"one\",\"V\":1}\n{\"id\":\"two\",\"V\":2}\n")
    _ = try await two.ferry("sync", exits: 4)
    #expect(try await two.value("SELECT V FROM t WHERE id = 'one'") == 1)
  }

  @Test("a record identifier of any text is the same record everywhere")
  func exactKeys() async throws {
    let pair = try await Pair.make()
    let keys = ["é", "e\u{301}", "🚢", "a b/c?d=e&f#%20", "\"'\\", "A", "a", "\u{1}"]
    try await pair.one.open().write { database in
      for key in keys {
        try database.execute("INSERT INTO notes(id, n) VALUES (?, 1)", [.text(key)])
      }
    }
    try await expectSettled([pair.one, pair.two], pair.server, operations: Int64(keys.count))
    try await pair.two.open().write { _ = try $0.execute("UPDATE notes SET n = 2") }
    try await expectSettled([pair.one, pair.two], pair.server, operations: Int64(keys.count * 2))
    #expect(try await pair.one.value("SELECT count(*) FROM notes WHERE n = 2") == 8)
  }

  @Test("a column set to NULL is NULL elsewhere, and an unwritten column is unchanged")
  func nullAgainstMissing() async throws {
    let schema = "CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT DEFAULT 'none', b TEXT)"
    let pair = try await Pair.make(schema: schema, tracking: ["t"])
    try await pair.one.write("INSERT INTO t VALUES ('null', NULL, 'x')")
    try await pair.one.write("INSERT INTO t(id, b) VALUES ('missing', 'y')")
    try await expectSettled([pair.one, pair.two], pair.server, operations: 2, tables: ["t"])
    #expect(
      try await pair.two.rows("SELECT * FROM t ORDER BY id")
        == [["missing", "none", "y"], ["null", nil, "x"]])
    try await pair.one.write("UPDATE t SET a = NULL WHERE id = 'missing'")
    try await pair.two.write("UPDATE t SET b = 'z' WHERE id = 'missing'")
    try await expectSettled([pair.one, pair.two], pair.server, operations: 4, tables: ["t"])
    #expect(
      try await pair.two.rows("SELECT * FROM t WHERE id = 'missing'") == [["missing", nil, "z"]])
  }

  @Test("a record deleted and inserted again contains no value of its former life")
  func reinsert() async throws {
    let pair = try await Pair.make()
    let both = [pair.one, pair.two]
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'old', 1), ('b', 'old', 1)")
    try await expectSettled(both, pair.server, operations: 2)
    // In one transaction, unsent.
    try await pair.one.write(
      "DELETE FROM notes WHERE id = 'a'; INSERT INTO notes(id, n) VALUES ('a', 2)")
    // With a sync between.
    try await pair.one.write("DELETE FROM notes WHERE id = 'b'")
    try await expectSettled(both, pair.server, operations: 5)
    #expect(try await pair.two.rows() == [["a", nil, 2]])
    try await pair.two.write("INSERT INTO notes(id, body) VALUES ('b', 'new')")
    try await expectSettled(both, pair.server, operations: 6)
    #expect(try await pair.one.rows() == [["a", nil, 2], ["b", "new", nil]])
    // REPLACE is a delete and an insert.
    try await pair.one.write("INSERT OR REPLACE INTO notes(id, n) VALUES ('b', 3)")
    for device in both { try await device.exchange() }
    for device in both { try await device.exchange() }
    #expect(try await pair.two.rows("SELECT * FROM notes WHERE id = 'b'") == [["b", nil, 3]])
    try await expectEqual(both)
  }

  @Test(
    "children that were written before their parents all arrive", arguments: StoreKind.allCases)
  func foreignKeys(_ kind: StoreKind) async throws {
    let schema = """
      CREATE TABLE parents(id TEXT PRIMARY KEY, name TEXT);
      CREATE TABLE children(id TEXT PRIMARY KEY, parent TEXT NOT NULL
        REFERENCES parents(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
      CREATE TABLE toys(id TEXT PRIMARY KEY, child TEXT NOT NULL
        REFERENCES children(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)
      """
    let tables = ["parents", "children", "toys"]
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url, schema: schema, tracking: tables)
    let two = try await Device.joined(
      server.url, schema: schema.replacing(" DEFERRABLE INITIALLY DEFERRED", with: ""),
      tracking: tables)
    try await one.write(
      """
      INSERT INTO toys VALUES ('t1', 'c1'), ('t3', 'c3');
      INSERT INTO children VALUES ('c1', 'p1'), ('c2', 'p1'), ('c3', 'p2');
      INSERT INTO parents VALUES ('p1', 'x'), ('p2', 'y')
      """)
    try await expectSettled([one, two], server, operations: 7, tables: tables)
    #expect(try await two.count("children") == 3)
    // A parent's delete deletes the children and their toys as well, on every device.
    try await one.write("DELETE FROM parents WHERE id = 'p1'")
    try await two.write("INSERT INTO children VALUES ('c4', 'p2')")
    for device in [one, two, one] { try await device.exchange() }
    try await expectEqual([one, two], tables: tables)
    #expect(try await two.rows("SELECT id FROM children ORDER BY id") == [["c3"], ["c4"]])
    #expect(try await two.rows("SELECT id FROM toys") == [["t3"]])
    #expect(try await two.rows("PRAGMA foreign_key_check").isEmpty)
  }
}
