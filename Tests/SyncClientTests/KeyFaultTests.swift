import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Identifiers and keys that do not fit", .hangLimit)
struct KeyFaultTests {
  private let maker = PageMaker()

  private func tracked(
    _ sql: String, _ tables: [Name], identity: KeyIdentity? = nil
  ) throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(sql)
    try replica.file.track(tables, identity: identity)
    return replica
  }

  @Test(
    "a record whose identifier is no key here waits, and stops neither a migration nor its delete")
  func foreign() throws {
    let replica = try tracked("CREATE TABLE v(id BLOB PRIMARY KEY, x)", ["v"])
    try replica.apply([
      maker.change(1, "v", "no key", [Column("x", 1)]),
      maker.change(2, "v", #"["a"]"#, [Column("x", 2)]),
    ])
    #expect(try replica.rows("SELECT * FROM v") == [["a", 2]])
    try replica.run("ALTER TABLE v ADD COLUMN y")
    try replica.reopen()
    #expect(try replica.file.waiting.oldest(10).map(\.key.record) == ["no key"])
    try replica.apply([maker.deletion(3, "v", "no key")])
    #expect(try replica.file.waiting.oldest(10).isEmpty)
  }

  @Test(
    "an identifier whose value SQLite would convert touches no other row",
    arguments: [
      ("id INTEGER PRIMARY KEY, x", "7", #"["7"]"#), ("id INT PRIMARY KEY, x", "7", #"["7.0"]"#),
      ("id NUMERIC PRIMARY KEY, x", "7", #"[" 7"]"#),
      ("id TEXT, x, n INT, PRIMARY KEY(id, n)", "'a', 0, 7", #"["a","7"]"#),
      ("id TEXT, x, n INT, PRIMARY KEY(id, n)", "'5', 0, 7", "[5,7]"),
    ])
  func converted(columns: String, row: String, record: String) throws {
    let replica = try tracked(
      "CREATE TABLE t(\(columns)); INSERT INTO t VALUES (\(row.contains(",") ? row : row + ", 0"))",
      ["t"], identity: .value)
    let before = try replica.rows("SELECT * FROM t")
    let pending = try replica.pending.count
    try replica.apply([maker.change(1, "t", Name(record), [Column("x", 1)])])
    #expect(try replica.file.waiting.oldest(9).map(\.key.record.text) == [record])
    try replica.apply([maker.deletion(2, "t", Name(record))])
    #expect(try replica.rows("SELECT * FROM t") == before)
    #expect(try replica.pending.count == pending)
  }

  @Test(
    "the error for a key that identifies no record names the table and the column",
    arguments: ["NULL", "''", "x'01'", "'a' || char(0)"])
  func named(key: String) throws {
    let replica = try tracked("CREATE TABLE notes(body, \"the key\" TEXT PRIMARY KEY)", ["notes"])
    let error = #expect(throws: (any Error).self) {
      try replica.run("INSERT INTO notes VALUES ('x', \(key))")
    }
    let message = try #require(error.map { "\($0)" })
    #expect(message.contains("table notes: a record's key (the key) must "), "\(message)")
    #expect(try replica.pending.isEmpty)
  }

  @Test(
    "the error for a bad key of several columns names the table and the column at fault",
    arguments: [
      ("'a', NULL, 1", "column n of a record's key (tag, n, album) must be an integer"),
      ("NULL, 1.5, 1", "column tag of a record's key (tag, n, album) must be an integer"),
      ("'a', 1.5, 1", "column n of a record's key (tag, n, album) must be an integer"),
      ("CAST(x'ff' AS TEXT), 7, 1", "column tag of a record's key (tag, n, album) must be"),
      ("'a', 7, NULL", "column album of a record's key (tag, n, album) must be an integer"),
      ("'a', 7, 'x'", "column album refers to album, whose keys are integers, and 'x' is none"),
      (
        "'a', printf('%600s', 'x'), 1",
        "column n of a record's key (tag, n, album) is too long: the whole key may have 512 bytes"
      ),
    ])
  func composite(key: String, reason: String) throws {
    let replica = try tracked(
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY);
      CREATE TABLE tags(tag, n, album REFERENCES album(id), PRIMARY KEY(tag, n, album));
      INSERT INTO album VALUES (1); INSERT INTO tags VALUES ('before', 1, 1)
      """, ["album", "tags"])
    try replica.file.write { try $0.renameTable("tags", to: "my tags") }
    let pending = try replica.pending.count
    for statement in [
      "INSERT INTO \"my tags\" VALUES (\(key))",
      "UPDATE \"my tags\" SET (tag, n, album) = (SELECT \(key))",
    ] {
      let error = #expect(throws: (any Error).self) { try replica.run(statement) }
      let message = error.map { "\($0)" } ?? ""
      #expect(message.contains("table my tags: " + reason), "\(message)")
    }
    #expect(try replica.pending.count == pending)
    #expect(try replica.rows("SELECT * FROM \"my tags\"") == [["before", 1, 1]])
    try replica.run("DELETE FROM \"my tags\"")
    #expect(try replica.pending.last?.kind == .delete)
  }

  @Test("the reason of a record that waits for another key names the column")
  func pulledKey() throws {
    let replica = try tracked(
      "CREATE TABLE t(id TEXT, x, n INT, PRIMARY KEY(id, n))", ["t"], identity: .value)
    try replica.apply([maker.change(1, "t", #"["a","7"]"#, [Column("x", 1)])])
    let reason = try #require(try replica.file.waiting.oldest(1).first?.reason)
    #expect(reason.contains("has no value for the key's column n"), "\(reason)")
  }

  @Test("a table keeps its identity when it is tracked again")
  func again() throws {
    let replica = try tracked(
      "CREATE TABLE country(id INTEGER PRIMARY KEY, name); INSERT INTO country VALUES (7, 'x')",
      ["country"], identity: .value)
    try replica.file.tracking.untrack("country")
    #expect(throws: ReplicaError.self) {
      try replica.file.track(["country"], identity: .mapped)
    }
    try replica.file.track(["country"])
    #expect(try replica.file.rows.record(of: "country", key: [7]) == "7")
  }

  @Test("columns stay translated after another program has renamed the table to which they refer")
  func renamed() throws {
    let replica = try tracked(
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY);
      CREATE TABLE track(id INTEGER PRIMARY KEY, album REFERENCES album(id));
      INSERT INTO album VALUES (3)
      """, ["album", "track"])
    let album = try #require(try replica.pending.first { $0.key.table == "album" }?.key.record.text)
    let other = try SQLiteConnection(path: replica.path)
    try other.execute("ALTER TABLE album RENAME TO albums")
    try replica.reopen()
    try replica.run("INSERT INTO track VALUES (1, 3)")
    #expect(try replica.pending.last?.columns == [Column("album", .text(album))])
    try other.execute("ALTER TABLE albums RENAME TO album")
    try replica.reopen()
    #expect(try replica.file.unrecordedWrites.faults().isEmpty)
  }

  @Test("rows that refer to no row are named before a table is tracked")
  func dangling() throws {
    let replica = try ReplicaFixture()
    let other = try SQLiteConnection(path: replica.path)
    try other.execute(
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY);
      CREATE TABLE track(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id));
      INSERT INTO track VALUES (1, 0), (2, ''), (3, NULL)
      """)
    let error = #expect(throws: ReplicaError.self) {
      try replica.file.track(["album", "track"])
    }
    #expect(error?.description.contains("2 of its rows refer with album to rows of album") == true)
    try replica.run("UPDATE track SET album = NULL")
    try replica.file.track(["album", "track"])
  }

  @Test("a key that is no text in UTF-8 is refused")
  func encoding() throws {
    let replica = try tracked("CREATE TABLE tag(a TEXT, n INT, PRIMARY KEY(a, n))", ["tag"])
    for byte in ["ff", "fe"] {
      #expect(throws: DatabaseError.self) {
        try replica.run("INSERT INTO tag VALUES (CAST(x'\(byte)' AS TEXT), 1)")
      }
    }
    #expect(try replica.pending.isEmpty)
  }

  @Test("tracking all tables leaves out the table that is at fault, and no other")
  func blame() throws {
    let replica = try tracked(
      """
      CREATE TABLE track(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id));
      CREATE TABLE aaa(id INTEGER PRIMARY KEY); CREATE TABLE album(id INTEGER PRIMARY KEY);
      CREATE TABLE zzz(id INTEGER PRIMARY KEY)
      """, ["track"])
    let report = try BulkTracking(file: replica.file).trackFile()
    #expect(report.tracked == ["aaa", "zzz"])
    #expect(report.faults.map(\.table) == ["album"])
  }
}
