import Ferry
import FerryTestSupport
import Foundation
import Testing

/// A parent deleted by one device, and a child inserted by another one meanwhile.
@Suite("Foreign keys that clash", .hangLimit)
struct ClashTests {
  /// A foreign key, the rule declared by the schema, and the rows at the end.
  struct Case: Sendable, CustomTestStringConvertible {
    let action: String
    var rule: ClashRule?
    let lists: Int64
    let items: [[Value]]

    var testDescription: String { "\(action), \(rule?.rawValue ?? "no rule")" }
  }

  private static let both: [[Value]] = [["i", "l"]]

  static let cases = [
    Case(action: "CASCADE", lists: 1, items: []),
    Case(action: "SET NULL", lists: 1, items: [["i", nil]]),
    Case(action: "SET DEFAULT", lists: 1, items: [["i", "other"]]),
    Case(action: "RESTRICT", lists: 2, items: both),
    Case(action: "NO ACTION", lists: 2, items: both),
    Case(action: "NO ACTION DEFERRABLE INITIALLY DEFERRED", lists: 2, items: both),
    Case(action: "CASCADE", rule: .parentReturns, lists: 2, items: both),
    Case(action: "SET NULL", rule: .ask, lists: 2, items: both),
    Case(action: "NO ACTION", rule: .childGoes, lists: 1, items: []),
    Case(action: "RESTRICT", rule: .childGoes, lists: 1, items: []),
  ]

  private func pair(_ test: Case) async throws -> Pair {
    let pair = try await Pair.make(
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT, weight INTEGER);
        CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT DEFAULT 'other' REFERENCES lists(id)
          ON DELETE \(test.action), note TEXT);
        INSERT INTO lists VALUES ('other', 'o', 1)
        """, tracking: ["lists", "items"])
    if let rule = test.rule {
      let replica = try await pair.one.open()
      var schema = try await replica.schema()
      schema.tables["items", default: .standard].clashes = [DeclaredClash(["list"], rule)]
      schema.version += 1
      _ = try await replica.applySchema(schema)
    }
    try await pair.one.write("INSERT INTO lists VALUES ('l', 'mine', 7)")
    for device in [pair.one, pair.two, pair.one] { try await device.exchange() }
    return pair
  }

  @Test(
    "the rule of the foreign key decides, whichever device syncs first", arguments: cases,
    [true, false])
  func rules(test: Case, isDeleterFirst: Bool) async throws {
    let pair = try await pair(test)
    try await pair.one.write("DELETE FROM lists WHERE id = 'l'")
    try await pair.two.write("INSERT INTO items VALUES ('i', 'l', 'new')")
    let order = isDeleterFirst ? [pair.one, pair.two] : [pair.two, pair.one]
    for device in order + order + order { _ = try await device.open().sync() }
    for device in [pair.one, pair.two] {
      #expect(try await device.count("lists") == test.lists)
      #expect(try await device.rows("SELECT id, list FROM items") == test.items)
      #expect(try await device.status().deferred == 0)
      #expect(try await device.open().verify().isEqual)
    }
    if test.lists == 2 {
      let list = "SELECT name, weight FROM lists WHERE id = 'l'"
      #expect(try await pair.one.rows(list) == [["mine", 7]])
    }
    let kept = try await pair.one.open().conflicts() + pair.two.open().conflicts()
    #expect(kept.contains { $0.isOpen } == (test.rule == .ask))
    if test.items.isEmpty {
      #expect(kept.contains { $0.conflict.column == "note" && $0.conflict.lost == "new" })
    }
  }

  @Test(
    "the author of a row that goes with its parent has its values, and brings both back",
    arguments: [0, 1, 2])
  func authorIsNotified(first: Int) async throws {
    let test = Case(action: "CASCADE", lists: 1, items: [])
    let pair = try await pair(test)
    let three = try await Device.joined(
      pair.server.url,
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT, weight INTEGER);
        CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT DEFAULT 'other' REFERENCES lists(id)
          ON DELETE CASCADE, note TEXT)
        """, tracking: ["lists", "items"])
    try await three.exchange()
    // All but the deleting device have the row.
    try await pair.one.write("DELETE FROM lists WHERE id = 'l'")
    try await pair.two.write("INSERT INTO items VALUES ('i', 'l', 'new')")
    for device in [pair.two, three] { try await device.exchange() }
    try await pair.one.exchange("push", exits: 4)
    // Each of them may be the first to delete it.
    let devices = [pair.one, pair.two, three]
    for device in devices[first...] + devices[..<first] + devices { try await device.exchange() }
    let author = try await pair.two.open()
    let kept = try await author.conflicts()
    let note = try #require(kept.first { $0.conflict.column == "note" })
    #expect(note.conflict.lost == "new" && note.isLosersOwn)
    try await author.resolve(note.number, .keepLocal)
    for device in [pair.two, pair.one, three] { try await device.exchange() }
    for device in devices {
      #expect(try await device.rows("SELECT id, list, note FROM items") == [["i", "l", "new"]])
      #expect(
        try await device.rows("SELECT name, weight FROM lists WHERE id = 'l'") == [["mine", 7]])
    }
  }

  @Test("the user who is asked about a parent deletes it after all")
  func answered() async throws {
    let pair = try await pair(Case(action: "CASCADE", rule: .ask, lists: 2, items: Self.both))
    try await pair.two.write("INSERT INTO items VALUES ('i', 'l', 'new')")
    try await pair.one.write("DELETE FROM lists WHERE id = 'l'")
    for device in [pair.one, pair.two, pair.one] { _ = try await device.open().sync() }
    let replica = try await pair.two.open()
    let question = try #require(try await replica.conflicts(openOnly: true).first)
    #expect(question.key == RecordKey(table: "lists", record: "l"))
    try await replica.resolve(question.number, .keepRemote)
    for device in [pair.two, pair.one, pair.two] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(try await device.count("lists") == 1)
      #expect(try await device.count("items") == 0)
      #expect(try await device.open().conflicts(openOnly: true).isEmpty)
    }
  }

  @Test("a child in the middle keeps all rows above it, and a third device has them, too")
  func chain() async throws {
    let schema = """
      CREATE TABLE a(id INTEGER PRIMARY KEY, x);
      CREATE TABLE b(id INTEGER PRIMARY KEY, a INTEGER REFERENCES a(id) ON DELETE CASCADE, x);
      CREATE TABLE c(id INTEGER PRIMARY KEY, b INTEGER REFERENCES b(id), x)
      """
    let pair = try await Pair.make(schema: schema, tracking: ["a", "b", "c"])
    let three = try await Device.joined(pair.server.url, schema: schema, tracking: ["a", "b", "c"])
    try await pair.one.write(
      "INSERT INTO a VALUES (1, 'a'); INSERT INTO b VALUES (1, 1, 'b'), (2, 1, 'free')")
    for device in [pair.one, pair.two, three] { try await device.exchange() }
    try await pair.one.write("DELETE FROM a")
    try await pair.two.write("INSERT INTO c SELECT 9, id, 'c' FROM b WHERE x = 'b'")
    let devices = [pair.one, three, pair.two]
    for device in devices + devices + devices { _ = try await device.open().sync() }
    for device in devices {
      #expect(
        try await device.rows(
          "SELECT a.x, b.x, c.x FROM c JOIN b ON b.id = c.b JOIN a ON a.id = b.a")
          == [["a", "b", "c"]])
      #expect(try await device.open().verify().isEqual)
    }
  }

  @Test("a deleted row with many children goes with them in one pull")
  func many() async throws {
    let pair = try await pair(Case(action: "NO ACTION", lists: 1, items: []))
    try await pair.one.write(
      """
      INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        SELECT 'i' || i, 'l', '' FROM n
      """)
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await pair.one.write("DELETE FROM items; DELETE FROM lists WHERE id = 'l'")
    for device in [pair.one, pair.two, pair.one] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(try await device.count("items") == 0)
      #expect(try await device.count("lists") == 1)
    }
  }

  /// Two devices with synced tables, and conflicting statements of both.
  private func meet(
    _ schema: String, _ tables: [String], start: String, first: String, second: String
  ) async throws -> Pair {
    let pair = try await Pair.make(schema: schema, tracking: tables)
    try await pair.one.write(start)
    for device in [pair.one, pair.two] { _ = try await device.open().sync() }
    try await pair.two.write(second)
    _ = try await pair.two.open().sync()
    try await pair.one.write(first)
    for _ in 0..<3 {
      for device in [pair.one, pair.two] { _ = try await device.open().sync() }
    }
    for device in [pair.one, pair.two] { #expect(try await device.open().verify().isEqual) }
    return pair
  }

  @Test("rows that refer to each other are deleted elsewhere without a return")
  func circle() async throws {
    let pair = try await meet(
      """
      CREATE TABLE chats(id TEXT PRIMARY KEY, last TEXT REFERENCES messages(id));
      CREATE TABLE messages(id TEXT PRIMARY KEY, chat TEXT REFERENCES chats(id) ON DELETE CASCADE);
      CREATE TABLE a(id TEXT PRIMARY KEY, b TEXT REFERENCES b(id));
      CREATE TABLE b(id TEXT PRIMARY KEY, a TEXT REFERENCES a(id))
      """, ["chats", "messages", "a", "b"],
      start: """
        INSERT INTO chats VALUES ('c', NULL); INSERT INTO messages VALUES ('m', 'c');
        UPDATE chats SET last = 'm'; INSERT INTO a VALUES ('x', NULL); INSERT INTO b VALUES ('y', 'x');
        UPDATE a SET b = 'y'
        """,
      first: "DELETE FROM chats; UPDATE a SET b = NULL; DELETE FROM b; DELETE FROM a", second: "")
    for device in [pair.one, pair.two] {
      for table in ["chats", "messages", "a", "b"] {
        #expect(try await device.count(table) == 0)
      }
    }
  }

  @Test("a parent that lacks a parent itself stops no sync")
  func grandparent() async throws {
    let pair = try await meet(
      """
      CREATE TABLE regions(id TEXT PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE lists(id TEXT PRIMARY KEY, region TEXT REFERENCES regions(code));
      CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id))
      """, ["regions", "lists", "items"],
      start: "INSERT INTO regions VALUES ('r', 'R'); INSERT INTO lists VALUES ('l', 'R')",
      first: "DELETE FROM lists; DELETE FROM regions", second: "INSERT INTO items VALUES ('i', 'l')"
    )
    for device in [pair.one, pair.two] {
      #expect(try await device.count("items") == 1)
      #expect(try await device.count("regions") == 1)
    }
  }

  @Test("a parent comes back with the newest values, and its counter counts once")
  func values() async throws {
    let pair = try await Pair.make(
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT, votes INTEGER);
        CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id))
        """, tracking: ["lists", "items"])
    let replica = try await pair.one.open()
    var schema = try await replica.schema()
    schema.tables["lists", default: .standard].columns["votes"] = ColumnRules(policy: .counter)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try await pair.one.write("INSERT INTO lists VALUES ('l', 'old', 7)")
    for device in [pair.one, pair.two] { _ = try await device.open().sync() }
    try await pair.two.write("UPDATE lists SET name = 'new'; INSERT INTO items VALUES ('i', 'l')")
    _ = try await pair.two.open().sync()
    try await pair.one.write("DELETE FROM lists")
    // Both devices bring it back before they know of each other.
    _ = try await pair.one.open().pull()
    try await pair.one.write("INSERT INTO items VALUES ('own', 'l')")
    for _ in 0..<3 {
      for device in [pair.one, pair.two] { _ = try await device.open().sync() }
    }
    for device in [pair.one, pair.two] {
      #expect(try await device.rows("SELECT * FROM lists") == [["l", "new", 7]])
      #expect(try await device.count("items") == 2)
      #expect(try await device.open().verify().isEqual)
    }
  }

  @Test("rows of a table that is not tracked bring no parent back")
  func untracked() async throws {
    let pair = try await Pair.make(
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY);
        CREATE TABLE cache(list TEXT REFERENCES lists(id))
        """, tracking: ["lists"])
    try await pair.one.write("INSERT INTO lists VALUES ('l')")
    for device in [pair.one, pair.two] { _ = try await device.open().sync() }
    try await pair.two.write("INSERT INTO cache VALUES ('l')")
    try await pair.one.write("DELETE FROM lists")
    for _ in 0..<2 {
      for device in [pair.one, pair.two] { _ = try await device.open().sync() }
    }
    #expect(try await pair.one.count("lists") == 0)
    #expect(try await pair.two.status().deferred == 1)
    try await pair.two.write("DELETE FROM cache")
    _ = try await pair.two.open().sync()
    #expect(try await pair.two.count("lists") == 0)
  }
}
