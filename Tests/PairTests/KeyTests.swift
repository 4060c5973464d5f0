import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Tables whose keys are integers, several columns or blobs.
@Suite("Keys as they are", .hangLimit)
struct KeyTests {
  /// The tables of a shop for music: ten integer keys, and one of two columns.
  static let shop = """
    CREATE TABLE artist(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
    CREATE TABLE genre(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE format(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT NOT NULL,
      artist_id INTEGER NOT NULL REFERENCES artist(id));
    CREATE TABLE track(id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL,
      album_id INTEGER REFERENCES album(id) ON DELETE CASCADE,
      format_id INTEGER NOT NULL REFERENCES format, genre_id INTEGER REFERENCES genre(id),
      seconds INTEGER, price REAL);
    CREATE TABLE playlist(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE playlist_track(playlist_id INTEGER NOT NULL REFERENCES playlist(id) ON DELETE CASCADE,
      track_id INTEGER NOT NULL REFERENCES track(id) ON DELETE CASCADE,
      PRIMARY KEY(playlist_id, track_id));
    CREATE TABLE employee(id INTEGER PRIMARY KEY, name TEXT, boss INTEGER REFERENCES employee(id));
    CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, agent INTEGER REFERENCES employee(id));
    CREATE TABLE invoice(id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer(id),
      day TEXT, total NUMERIC);
    CREATE TABLE invoice_line(id INTEGER PRIMARY KEY,
      invoice_id INTEGER NOT NULL REFERENCES invoice(id) ON DELETE CASCADE,
      track_id INTEGER NOT NULL REFERENCES track(id) ON DELETE CASCADE, price REAL, quantity INTEGER);
    """

  /// 15,000 rows.
  private static let rows = """
    INSERT INTO artist(name) SELECT 'artist ' || value FROM generate_series(1, 275);
    INSERT INTO genre(name) SELECT 'genre ' || value FROM generate_series(1, 25);
    INSERT INTO format(name) SELECT 'format ' || value FROM generate_series(1, 5);
    INSERT INTO album(title, artist_id) SELECT 'album ' || value, 1 + value % 275 FROM generate_series(1, 347);
    INSERT INTO track(name, album_id, format_id, genre_id, seconds, price)
      SELECT 'track ' || value, iif(value % 50, 1 + value % 347, NULL), 1 + value % 5, 1 + value % 25,
        value, value / 8.0 FROM generate_series(1, 3503);
    INSERT INTO playlist(name) SELECT 'playlist ' || value FROM generate_series(1, 18);
    INSERT INTO playlist_track SELECT 1 + value % 18, 1 + value / 3 FROM generate_series(1, 8015);
    INSERT INTO employee(name, boss) SELECT 'employee ' || value, iif(value > 1, 1 + value / 4, NULL)
      FROM generate_series(1, 8);
    INSERT INTO customer(name, agent) SELECT 'customer ' || value, 1 + value % 8 FROM generate_series(1, 59);
    INSERT INTO invoice(customer_id, day, total) SELECT 1 + value % 59, '2026-01-' || (1 + value % 28), value
      FROM generate_series(1, 412);
    INSERT INTO invoice_line(invoice_id, track_id, price, quantity)
      SELECT 1 + value % 412, 1 + value % 3503, 0.99, 1 FROM generate_series(1, 2340);
    """

  /// The content of all tables without this device's own numbers.
  private static let content = [
    """
    SELECT t.name, al.title, ar.name, f.name, g.name, t.seconds, t.price FROM track AS t
      LEFT JOIN album AS al ON al.id = t.album_id LEFT JOIN artist AS ar ON ar.id = al.artist_id
      LEFT JOIN format AS f ON f.id = t.format_id LEFT JOIN genre AS g ON g.id = t.genre_id
      ORDER BY 1, 2, 3, 4, 5
    """,
    """
    SELECT p.name, t.name FROM playlist_track JOIN playlist AS p ON p.id = playlist_id
      JOIN track AS t ON t.id = track_id ORDER BY 1, 2
    """,
    """
    SELECT e.name, b.name FROM employee AS e LEFT JOIN employee AS b ON b.id = e.boss ORDER BY 1, 2
    """,
    """
    SELECT i.day, i.total, c.name, e.name, t.name, l.price, l.quantity FROM invoice_line AS l
      JOIN invoice AS i ON i.id = l.invoice_id JOIN customer AS c ON c.id = i.customer_id
      JOIN employee AS e ON e.id = c.agent JOIN track AS t ON t.id = l.track_id
      ORDER BY 1, 2, 3, 4, 5
    """,
    "SELECT name FROM artist ORDER BY 1", "SELECT title FROM album ORDER BY 1",
  ]

  private static func generated(_ sql: String) -> String {
    sql.replacing(/generate_series\(1, (\d+)\)/) { match in
      "(WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < \(match.1)) "
        + "SELECT value FROM n)"
    }
  }

  private func expectEqual(_ devices: [Device]) async throws {
    for query in Self.content {
      let first = try await devices[0].rows(query)
      for device in devices.dropFirst() { #expect(try await device.rows(query) == first) }
    }
    for device in devices { #expect(try await device.open().verify().isEqual) }
  }

  @Test("an application's database of 15,000 rows is tracked at once, and is equal on a new device")
  func shop() async throws {
    let server = try await Server.start()
    let one = try Device()
    try await one.ferry("init", "--server", server.url, "--space", "demo")
    try await one.write(Self.shop)
    for statement in Self.generated(Self.rows).split(separator: ";\n") {
      try await one.write(String(statement))
    }
    let tracked = try await one.ferry("track", "--all")
    #expect(
      tracked.output.contains(
        "playlist_track: identity value, since its key has 2 columns: the same values"))
    #expect(tracked.output.contains("track: identity mapped, since its key id is an integer"))
    try await one.ferry("schema", "publish")
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    try await two.exchange()
    try await two.ferry("track", "--create", "--all")
    try await expectEqual([one, two])
    #expect(try await two.count("playlist_track") == 8015)

    // Both count on from the same number.
    for (device, name) in [(one, "Ada"), (two, "Bob")] {
      try await device.write(
        """
        INSERT INTO artist(name) VALUES ('\(name)');
        INSERT INTO album(title, artist_id) VALUES ('best of \(name)', last_insert_rowid());
        INSERT INTO track(name, album_id, format_id) VALUES ('hit of \(name)', last_insert_rowid(), 1);
        INSERT INTO playlist_track SELECT id, last_insert_rowid() FROM playlist WHERE name = 'playlist 3';
        UPDATE invoice SET customer_id = (SELECT id FROM customer WHERE name = 'customer 7')
          WHERE total = \(name.utf8.first ?? 0);
        """)
    }
    try await one.write(
      "DELETE FROM album WHERE title = 'album 12'; DELETE FROM playlist WHERE id = 1")
    try await two.write(
      "UPDATE track SET album_id = (SELECT id FROM album WHERE title = 'album 13') WHERE name = 'track 9'"
    )
    for device in [one, two, one] { try await device.exchange() }
    try await expectEqual([one, two])
    let hits = try await one.rows(
      """
      SELECT a.name, t.name FROM track AS t JOIN album ON album.id = album_id
        JOIN artist AS a ON a.id = artist_id WHERE t.name LIKE 'hit of%' ORDER BY 1
      """)
    #expect(hits == [["Ada", "hit of Ada"], ["Bob", "hit of Bob"]])
  }
}

extension KeyTests {
  private static let tables = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE track(id INTEGER PRIMARY KEY, title TEXT,
      album INTEGER REFERENCES album(id) ON DELETE CASCADE);
    CREATE TABLE tag(name TEXT, album INTEGER REFERENCES album(id) ON DELETE CASCADE, weight INTEGER,
      PRIMARY KEY(name, album)) WITHOUT ROWID;
    CREATE TABLE device(id BLOB PRIMARY KEY, name TEXT);
    """

  private static let parts = [
    "SELECT t.title, a.title FROM track AS t LEFT JOIN album AS a ON a.id = t.album ORDER BY 1, 2",
    "SELECT name, title, weight FROM tag JOIN album ON id = album ORDER BY 1, 2",
    "SELECT * FROM device ORDER BY id", "SELECT title FROM album ORDER BY 1",
  ]

  private static func pair() async throws -> Pair {
    try await Pair.make(schema: tables, tracking: ["album", "track", "tag", "device"])
  }

  private func settle(_ devices: [Device], equal parts: [String] = parts) async throws {
    for device in devices + devices + devices { try await device.exchange() }
    for query in parts {
      let first = try await devices[0].rows(query)
      for device in devices.dropFirst() { #expect(try await device.rows(query) == first) }
    }
    for device in devices { #expect(try await device.open().verify().isEqual) }
  }

  @Test(
    "a command names a wrong identity and a table that cannot be tracked, and tracks the others")
  func commands() async throws {
    let device = try Device()
    try await device.write(
      "CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE b(x); CREATE TABLE c(u, v, PRIMARY KEY(u, v))"
    )
    let wrong = try await device.ferry("track", "a", "--identity", "number", exits: 2)
    #expect(wrong.error.contains("'number' is none of them"))
    let unfit = try await device.ferry("track", "c", "--identity", "mapped", exits: 1)
    #expect(unfit.error.contains("one integer column"))
    let all = try await device.ferry("track", "--all", "--json", exits: 4)
    #expect(
      all.output.contains(#"{"table":"a","identity":"mapped","reason":"its key id is an integer"#))
    #expect(all.output.contains(#""faults":[{"table":"b","reason":"it has no primary key"#))
    #expect(try await device.status().tables == ["a", "c"])
    let other = try await device.ferry("track", "a", "--identity", "value", exits: 1)
    #expect(other.error.contains("another identity needs a new table"))
    let same = try await device.ferry("track", "a", "--identity", "mapped")
    #expect(same.output == "tracked: a, c\n")
  }

  @Test("the same key of several columns is the same record on all devices")
  func sameValue() async throws {
    let pair = try await Self.pair()
    try await pair.one.write("INSERT INTO album VALUES (1, 'a')")
    try await settle([pair.one, pair.two])
    // Numbers differ: two has another album 2 meanwhile.
    try await pair.one.write("INSERT INTO tag SELECT 'x', id, 1 FROM album")
    try await pair.two.write("INSERT INTO tag SELECT 'x', id, 2 FROM album")
    for device in [pair.one, pair.two] {
      try await device.write(
        "INSERT INTO device VALUES (x'00112233445566778899aabbccddeeff', 'same')")
    }
    try await settle([pair.one, pair.two])
    #expect(try await pair.one.rows("SELECT name, weight FROM tag") == [["x", 2]])
    #expect(try await pair.one.count("device") == 1)
    try await pair.two.write("UPDATE tag SET name = 'y'; DELETE FROM device")
    try await settle([pair.one, pair.two])
    #expect(try await pair.one.rows("SELECT name, weight FROM tag") == [["y", 2]])
  }

  @Test("a new device keeps the numbers of others, and one that uses a number keeps its own")
  func keptNumbers() async throws {
    let server = try await Server.start(.embedded)
    let schema = """
      CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE lines(id INTEGER PRIMARY KEY, ordered INTEGER NOT NULL REFERENCES orders(id));
      """
    let rows = """
      WITH RECURSIVE n(i) AS (SELECT 10248 UNION ALL SELECT i + 1 FROM n WHERE i < 10347)
      INSERT INTO orders SELECT i, 'order ' || i FROM n;
      INSERT INTO lines SELECT id - 10000, id FROM orders;
      INSERT INTO orders VALUES (5000000000, 'large'), (-1, 'negative')
      """
    var devices: [Device] = []
    for filler in [rows, "", "INSERT INTO orders VALUES (10250, 'mine')"] {
      let device = try await Device.joined(server.url, schema: schema, tracking: [])
      if !filler.isEmpty { try await device.write(filler) }
      try await device.ferry("track", "--all")
      devices.append(device)
    }
    try await settle(devices, equal: [])
    let kept = "SELECT id, name FROM orders WHERE name LIKE 'order %' ORDER BY id"
    let numbers = "SELECT l.id, o.id FROM lines AS l JOIN orders AS o ON o.id = ordered ORDER BY 1"
    #expect(try await devices[1].rows(kept) == devices[0].rows(kept))
    #expect(try await devices[1].rows(numbers) == devices[0].rows(numbers))
    #expect(try await devices[2].value("SELECT name FROM orders WHERE id = 10250") == "mine")
    // One order has another number, and takes none of the others'.
    let free = "SELECT id, name FROM orders WHERE name LIKE 'order %' AND name <> 'order 10250'"
    #expect(try await devices[2].rows(free) == devices[0].rows(free))
    #expect(try await devices[2].count("orders") == 103)
    // The number of a deleted row belongs to the row's record.
    try await devices[1].write(
      "DELETE FROM lines WHERE id = 248; DELETE FROM orders WHERE id = 10248")
    try await settle(devices, equal: [])
    #expect(try await devices[0].count("orders") == 102)
  }

  @Test("devices choose the same numbers for different records, and each reads its own")
  func ownNumbers() async throws {
    let pair = try await Self.pair()
    for (device, name) in [(pair.one, "one"), (pair.two, "two")] {
      try await device.write(
        """
        INSERT INTO album(title) VALUES ('\(name) 1'), ('\(name) 2');
        INSERT INTO track(title, album) VALUES ('t \(name)', 2); INSERT INTO tag VALUES ('\(name)', 1, 1)
        """)
    }
    try await settle([pair.one, pair.two])
    #expect(try await pair.one.count("album") == 4)
    for device in [pair.one, pair.two] {
      #expect(try await device.rows("SELECT id FROM album ORDER BY id") == [[1], [2], [3], [4]])
    }
    let own = try await pair.two.rows("SELECT title FROM album WHERE id <= 2 ORDER BY id")
    #expect(own == [["two 1"], ["two 2"]])
    // A conflict about a reference.
    try await pair.one.write("UPDATE track SET album = 1 WHERE title = 't one'")
    try await pair.two.write(
      "UPDATE track SET album = (SELECT id FROM album WHERE title = 'two 1') WHERE title = 't one'")
    try await settle([pair.one, pair.two])
    // The later write wins: one's value is kept on one.
    let replica = try await pair.one.open()
    let conflict = try #require(try await replica.conflicts().first)
    guard case .text(let record) = conflict.conflict.lost else {
      Issue.record("no identifier was kept: \(conflict)")
      return
    }
    #expect(try await replica.key(of: Name(record), in: "album") == [1])
    try await replica.resolve(conflict.number, .keepLocal)
    try await settle([pair.one, pair.two])
    #expect(try await pair.one.rows("SELECT album FROM track WHERE title = 't one'") == [[1]])
  }

  @Test("a parent that is deleted elsewhere, a row that comes back and a rebuilt table converge")
  func upheaval() async throws {
    let pair = try await Self.pair()
    try await pair.one.write(
      """
      INSERT INTO album VALUES (1, 'a'), (2, 'b'); INSERT INTO track VALUES (1, 't', 1), (2, 'u', 2);
      INSERT INTO tag VALUES ('x', 1, 1), ('x', 2, 1)
      """)
    try await settle([pair.one, pair.two])
    try await pair.one.write("DELETE FROM album WHERE title = 'a'")
    try await pair.two.write(
      "INSERT INTO track(title, album) SELECT 'v', id FROM album WHERE title = 'a'")
    try await settle([pair.one, pair.two])
    let before = try await pair.one.rows(
      "SELECT number, record FROM ferry_keys WHERE tbl = 'album' AND grp IS NULL")
    var migrator = Migrator()
    migrator.add("rebuild album") { database in
      try database.execute(
        """
        CREATE TABLE new(id INTEGER PRIMARY KEY, title TEXT, year INTEGER);
        INSERT INTO new SELECT id, title, NULL FROM album; DROP TABLE album;
        ALTER TABLE new RENAME TO album; INSERT INTO album VALUES (40, 'of the step', 1)
        """)
    }
    try await pair.one.open().migrate(migrator)
    try await settle([pair.one, pair.two])
    let after = try await pair.one.rows(
      "SELECT number, record FROM ferry_keys WHERE tbl = 'album' AND grp IS NULL")
    #expect(after.filter { $0[0] != 40 } == before)
    #expect(try await pair.two.count("album") == before.count + 1)
    // A new device gets all of it.
    let three = try await Device.joined(
      pair.server.url, schema: Self.tables, tracking: ["tag", "track", "album", "device"])
    try await settle([pair.one, pair.two, three])
  }

  @Test(
    "a device whose keys are texts syncs with one that counts, and a wrong identifier stops nothing"
  )
  func mixed() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url,
      schema: "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE v(id BLOB PRIMARY KEY, x)",
      tracking: ["t", "v"])
    let two = try await Device.joined(
      server.url,
      schema: "CREATE TABLE t(id TEXT PRIMARY KEY, x); CREATE TABLE v(id TEXT PRIMARY KEY, x)",
      tracking: ["t", "v"])
    try await one.write(
      "INSERT INTO t(x) VALUES ('one'); INSERT INTO v VALUES (x'000102030405060708090a0b0c0d0e0f', 1)"
    )
    try await two.write(
      "INSERT INTO t VALUES ('abc', 'two'); INSERT INTO v VALUES ('no key', 2), ('[\"x\"]', 3)")
    for device in [one, two] { try await device.exchange() }
    try await one.exchange(exits: 4)
    try await two.exchange()
    #expect(try await one.rows("SELECT id, x FROM t ORDER BY id") == [[1, "one"], [2, "two"]])
    #expect(try await two.rows("SELECT x FROM t ORDER BY x") == [["one"], ["two"]])
    #expect(try await one.rows("SELECT x FROM v ORDER BY x") == [[1], [3]])
    #expect(
      try await two.value("SELECT x FROM v WHERE id = '00010203-0405-0607-0809-0a0b0c0d0e0f'") == 1)
    #expect(try await one.status().deferred == 1)
    try await one.write("UPDATE t SET x = 'both' WHERE id = 2; DELETE FROM t WHERE id = 1")
    try await one.exchange(exits: 4)
    try await two.exchange()
    #expect(try await two.rows("SELECT * FROM t") == [["abc", "both"]])
  }
}
