import Ferry
import FerryTestSupport
import Testing

/// Transactions that move rows from a parent and delete it, on a real server.
@Suite("Rows that move from a deleted parent", .hangLimit)
struct KeyChangeTests {
  private static let tables = ["lists", "items", "parts"]

  /// Two lists, two items of the first one, and a part of each.
  private func pair(_ action: String) async throws -> Pair {
    let pair = try await Pair.make(
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT DEFAULT 'other' REFERENCES lists(id)
          \(action), title TEXT);
        CREATE TABLE parts(id TEXT PRIMARY KEY, item TEXT REFERENCES items(id) ON DELETE CASCADE)
        """, tracking: Self.tables)
    try await pair.one.write(
      """
      INSERT INTO lists VALUES ('old', 'o'), ('other', 'x');
      INSERT INTO items VALUES ('1', 'old', 'a'), ('2', 'old', 'b');
      INSERT INTO parts VALUES ('p1', '1'), ('p2', '2')
      """)
    for device in [pair.one, pair.two] { try await device.exchange() }
    return pair
  }

  private static let actions = [
    "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE SET DEFAULT", "ON DELETE NO ACTION",
  ]
  private static let statements = [
    "UPDATE lists SET id = 'new' WHERE id = 'old'; UPDATE items SET list = 'new'",
    "UPDATE items SET list = 'new'; UPDATE lists SET id = 'new' WHERE id = 'old'",
    """
    INSERT INTO lists VALUES ('new', 'o'); UPDATE items SET list = 'new';
    DELETE FROM lists WHERE id = 'old'; UPDATE items SET title = title || '!'
    """,
  ]

  @Test(
    "the moved rows arrive, and no device records a delete", arguments: actions, statements)
  func arrive(action: String, statements: String) async throws {
    let pair = try await pair(action)
    try await pair.one.write("PRAGMA defer_foreign_keys = ON; " + statements)
    try await expectMoved(pair)
  }

  @Test("rows that SQLite moves with their parent arrive, also if they are edited later")
  func follow() async throws {
    let pair = try await pair("ON DELETE CASCADE ON UPDATE CASCADE")
    try await pair.one.write("UPDATE lists SET id = 'new' WHERE id = 'old'")
    try await pair.one.write("UPDATE items SET title = title || '!'")
    try await expectMoved(pair)
  }

  private func expectMoved(_ pair: Pair) async throws {
    _ = try await pair.one.exchange()
    #expect(try await pair.two.exchange().pushed == 0)
    for device in [pair.one, pair.two, pair.one] {
      #expect(try await device.exchange().pushed == 0)
    }
    try await expectEqual([pair.one, pair.two], tables: Self.tables)
    #expect(
      try await pair.two.rows("SELECT id, list FROM items ORDER BY id") == [
        ["1", "new"], ["2", "new"],
      ])
    #expect(try await pair.two.count("parts") == 2)
    #expect(try await pair.two.open().conflicts().isEmpty)
    #expect(try await pair.two.open().verify().isEqual)
  }

  @Test("a key change of several packets and pages loses no row")
  func large() async throws {
    let pair = try await pair("ON DELETE CASCADE")
    let count = 12_000
    try await pair.one.write(
      """
      WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(count))
      INSERT INTO items SELECT printf('%06d', i), 'old', hex(randomblob(60)) FROM k
      """)
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await pair.one.write(
      """
      PRAGMA defer_foreign_keys = ON; UPDATE lists SET id = 'new' WHERE id = 'old';
      UPDATE items SET list = 'new', title = hex(randomblob(60))
      """)
    _ = try await pair.one.exchange()
    #expect(try await pair.two.exchange().pushed == 0)
    #expect(try await pair.two.count("items WHERE list = 'new'") == Int64(count) + 2)
    try await expectEqual([pair.one, pair.two], tables: Self.tables)
  }

  @Test("pending writes to the moved rows and to the old parent follow the rules")
  func pending() async throws {
    let pair = try await pair("ON DELETE CASCADE")
    try await pair.one.write("PRAGMA defer_foreign_keys = ON; " + Self.statements[0])
    try await pair.two.write(
      "UPDATE items SET title = 'mine' WHERE id = '1'; INSERT INTO items VALUES ('3', 'old', 'c')")
    for device in [pair.one, pair.two, pair.one, pair.two] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(
        try await device.rows("SELECT id, list, title FROM items ORDER BY id")
          == [["1", "new", "mine"], ["2", "new", "b"]])
      #expect(try await device.count("parts") == 2)
    }
    // The new child of the old parent goes by the parent's rule, and the values stay readable.
    let kept = try await pair.two.open().conflicts()
    #expect(kept.contains { $0.conflict.column == "title" && $0.conflict.lost == "c" })
  }
}
