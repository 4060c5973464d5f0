import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Recording tables with other keys than texts", .hangLimit)
struct KeyCaptureTests {
  private static let tables = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE track(id INTEGER PRIMARY KEY, title TEXT, album INTEGER
      REFERENCES album(id) ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE cover(album INTEGER PRIMARY KEY REFERENCES album(id), image BLOB);
    CREATE TABLE rating(user BLOB, album INTEGER REFERENCES album(id), stars INTEGER,
      PRIMARY KEY(user, album)) WITHOUT ROWID;
    """

  private func tracked(_ more: String = "") throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(Self.tables + more)
    try replica.file.track(["album", "track", "cover", "rating"])
    return replica
  }

  private func only(_ table: Name, _ replica: ReplicaFixture) throws -> [SyncOperation] {
    try replica.pending.filter { $0.key.table == table }
  }

  @Test("an integer becomes an identifier, and a reference to it the same one")
  func reference() throws {
    let replica = try tracked()
    try replica.run(
      "INSERT INTO album(title) VALUES ('a'); INSERT INTO track VALUES (9, 'b', 1), (10, 'c', NULL)"
    )
    let album = try #require(try only("album", replica).first?.key.record)
    #expect(UniqueID(album.text)?.number == 1)
    let tracks = try only("track", replica)
    #expect(
      tracks.map(\.columns) == [
        [Column("title", "b"), Column("album", .text(album.text))],
        [Column("title", "c"), Column("album", nil)],
      ])
    try replica.run(
      "UPDATE track SET album = 1 WHERE id = 10; UPDATE track SET title = 'd' WHERE id = 9")
    #expect(
      try only("track", replica).suffix(2).map(\.columns) == [
        [Column("album", .text(album.text))], [Column("title", "d")],
      ])
    #expect(try replica.file.rows.record(of: "album", key: [1]) == album)
    #expect(try replica.file.rows.key(of: album, in: "album") == [1])
    #expect(try replica.file.rows.record(of: "album", key: [2]) == nil)
  }

  @Test("rows from before the tracking have identifiers, and refer to them")
  func existing() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      Self.tables
        + """
        INSERT INTO track VALUES (1, 'b', 7); INSERT INTO album VALUES (7, 'a');
        INSERT INTO rating VALUES (x'01', 7, 5); INSERT INTO cover VALUES (7, x'ff')
        """)
    try replica.file.track(["rating", "cover", "track", "album"])
    let album = try #require(try only("album", replica).first?.key.record.text)
    #expect(try only("track", replica).first?.columns.last == Column("album", .text(album)))
    #expect(try only("cover", replica).map(\.key.record.text) == [album])
    #expect(
      try only("rating", replica).map(\.key.record.text) == [#"[{"blob":"AQ=="},"\#(album)"]"#])
  }

  @Test("a row that is inserted before its parent refers to the parent's identifier")
  func childFirst() throws {
    let replica = try tracked()
    try replica.run("INSERT INTO track VALUES (1, 'b', 5); INSERT INTO album VALUES (5, 'a')")
    let album = try #require(try only("album", replica).first?.key.record.text)
    #expect(try only("track", replica).first?.columns.last == Column("album", .text(album)))
  }

  @Test("a number that is free again belongs to another record, except in the same transaction")
  func reuse() throws {
    let replica = try tracked()
    try replica.run("INSERT INTO album VALUES (1, 'a')")
    try replica.run("DELETE FROM album; INSERT INTO album VALUES (1, 'b')")
    try replica.run("INSERT OR REPLACE INTO album VALUES (1, 'c')")
    try replica.run("DELETE FROM album")
    try replica.run("INSERT INTO album(title) VALUES ('d')")
    let operations = try only("album", replica)
    #expect(
      operations.map(\.kind) == [.insert, .delete, .insert, .delete, .insert, .delete, .insert])
    #expect(Set(operations.dropLast().map(\.key.record)).count == 1)
    #expect(operations.last?.key.record != operations.first?.key.record)
    #expect(try replica.rows("SELECT id FROM album") == [[1]])
  }

  @Test("a record that comes back after its delete here is the same one")
  func back() throws {
    let replica = try tracked()
    let maker = PageMaker()
    let record: Name = "0190ddd1-0000-7000-8000-000000000001"
    try replica.apply([maker.change(1, "album", record, [Column("title", "a")])])
    try replica.run("INSERT INTO album(title) VALUES ('own'); DELETE FROM album WHERE title = 'a'")
    _ = try replica.file.chain.receive(replica.receipt(replica.freeze()[0], first: 2))
    try replica.apply([maker.change(4, "album", record, [Column("title", "b")])])
    #expect(try replica.rows("SELECT * FROM album ORDER BY id") == [[1, "b"], [2, "own"]])
    #expect(try replica.file.rows.key(of: record, in: "album") == [1])
    try replica.run("UPDATE album SET title = 'c' WHERE id = 1")
    #expect(try only("album", replica).last?.key.record == record)
  }

  @Test("a transaction that is rolled back gives no number to a record")
  func rolledBack() throws {
    let replica = try tracked()
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try replica.file.write { database in
        try database.execute("INSERT INTO album(title) VALUES ('a')")
        throw Stop()
      }
    }
    #expect(try replica.rows("SELECT * FROM ferry_keys").isEmpty)
  }

  @Test("another key is another record, which the rows that follow it refer to")
  func rekeyed() throws {
    let replica = try tracked()
    try replica.run("INSERT INTO album VALUES (1, 'a'); INSERT INTO track VALUES (1, 'b', 1)")
    try replica.run("UPDATE album SET id = 8")
    let albums = try only("album", replica)
    #expect(albums.map(\.kind) == [.insert, .delete, .insert])
    let new = try #require(albums.last?.key.record.text)
    #expect(try only("track", replica).last?.columns == [Column("album", .text(new))])
    #expect(new != albums.first?.key.record.text)
  }

  @Test("rows that a delete takes along are recorded under their own identifiers")
  func cascade() throws {
    let replica = try tracked()
    try replica.run(
      "INSERT INTO album VALUES (1, 'a'); INSERT INTO track VALUES (1, 'b', 1), (2, 'c', 1)")
    let inserted = Set(try replica.pending.map(\.key))
    try replica.run("DELETE FROM album")
    #expect(Set(try replica.pending.filter { $0.kind == .delete }.map(\.key)) == inserted)
  }

  @Test("a key with NULL or a real number, and a reference that is no number, are refused")
  func refused() throws {
    let replica = try tracked("CREATE TABLE pair(a, b, PRIMARY KEY(a, b));")
    try replica.file.track(["pair"])
    for sql in [
      "INSERT INTO pair VALUES (1, NULL)", "INSERT INTO pair VALUES (1, 2.5)",
      "INSERT INTO track VALUES (1, 'b', 'x')", "INSERT INTO pair VALUES (1, hex(zeroblob(300)))",
    ] {
      #expect(throws: DatabaseError.self) { try replica.run(sql) }
    }
    #expect(try replica.pending.isEmpty)
    try replica.run("INSERT INTO pair VALUES (1, 'x')")
    #expect(try replica.pending.map(\.key.record.text) == [#"[1,"x"]"#])
  }

  @Test(
    "the identity fits the key, or is refused with the reason",
    arguments: [
      ("id INTEGER PRIMARY KEY", .text, "not one TEXT column"),
      ("id TEXT PRIMARY KEY", .mapped, "one integer column"),
      ("id INTEGER PRIMARY KEY REFERENCES other", .mapped, "refers to another table"),
      ("id TEXT PRIMARY KEY", .value, "identifier as it is"),
      ("id INT, b TEXT, PRIMARY KEY(id, b)", .mapped, "one integer column"),
    ] as [(String, KeyIdentity, String)])
  func identities(columns: String, identity: KeyIdentity, reason: String) throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(\(columns))")
    let error = #expect(throws: ReplicaError.self) {
      try replica.file.track(["t"], identity: identity)
    }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    #expect(try replica.file.tables.tracked.names().isEmpty)
  }

  @Test("a message with U+0000 in a value is whole")
  func zeroByte() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id BIGINT PRIMARY KEY)")
    try replica.file.track(["t"])
    let error = #expect(throws: DatabaseError.self) {
      try replica.run("INSERT INTO t VALUES ('a' || char(0) || 'b')")
    }
    let message = try #require(error).message
    #expect(message.contains("'a\\u{0}b' is no key of the table t"), "\(message)")
  }

  @Test(
    "the proposed identity fits the key",
    arguments: [
      ("id TEXT PRIMARY KEY", .text), ("id VARCHAR(36) PRIMARY KEY", .text),
      ("id INTEGER PRIMARY KEY", .mapped), ("id BIGINT PRIMARY KEY", .mapped),
      ("id BLOB PRIMARY KEY", .value), ("id UUID PRIMARY KEY", .value),
      ("id PRIMARY KEY", .value), ("a, b, PRIMARY KEY(a, b)", .value),
      ("id INTEGER PRIMARY KEY REFERENCES other", .value),
      ("id INTEGER PRIMARY KEY, parent INTEGER REFERENCES t", .mapped),
    ] as [(String, KeyIdentity)])
  func proposals(columns: String, identity: KeyIdentity) throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(\(columns))")
    #expect(try replica.file.tracking.proposal(for: "t").identity == identity)
  }

  @Test("numbers by their value need no mapping")
  func byValue() throws {
    let replica = try ReplicaFixture()
    try replica.run(Self.tables)
    try replica.file.track(["album", "track"], identity: .value)
    try replica.run("INSERT INTO album VALUES (5, 'a'); INSERT INTO track VALUES (1, 'b', 5)")
    #expect(try replica.pending.map(\.key.record) == ["5", "1"])
    #expect(try replica.pending.last?.columns.last == Column("album", 5))
  }

  @Test("tables that refer to each other's numbers are tracked and untracked together")
  func together() throws {
    let replica = try ReplicaFixture()
    try replica.run(Self.tables)
    try replica.file.track(["track"])
    let early = #expect(throws: ReplicaError.self) { try replica.file.track(["album"]) }
    #expect(early?.description.contains("ferry untrack track") == true)
    #expect(try replica.file.tables.tracked.names() == ["track"])
    try replica.file.tracking.untrack("track")
    try replica.file.track(["track", "album"])
    let late = #expect(throws: ReplicaError.self) { try replica.file.tracking.untrack("album") }
    #expect(late?.description.contains("ferry untrack track") == true)
    let other = #expect(throws: ReplicaError.self) {
      try replica.file.track(["album"], identity: .value)
    }
    #expect(other?.description.contains("its identity is mapped") == true)
  }

  @Test("a batch names this device's numbers, and sends identifiers")
  func batch() throws {
    let replica = try tracked()
    try replica.run(
      "INSERT INTO album VALUES (1, 'a'), (2, 'b'); INSERT INTO track VALUES (1, 'c', 1), (2, 'd', 2)"
    )
    let albums = try only("album", replica).map(\.key.record.text)
    let changed = try replica.file.write {
      try $0.batch("track", where: "album = 1", set: ["album": 2])
    }
    #expect(changed == 1)
    #expect(try replica.rows("SELECT album FROM track") == [[2], [2]])
    let batch = try #require(try replica.pending.last)
    #expect(batch.columns == [Column("album", .text(albums[1]))])
    #expect(batch.batch?.predicate == .compare(.column("album"), .equal, .text(albums[0])))
    #expect(try replica.file.write { try $0.batchDelete("album", where: "id = 1") } == 1)
    for predicate in ["album > 1", "album = 77"] {
      #expect(throws: ReplicaError.self) {
        try replica.file.write { try $0.batchDelete("track", where: predicate) }
      }
    }
    #expect(throws: ReplicaError.self) {
      try replica.file.write { try $0.batchDelete("rating", where: "album = 1") }
    }
  }
}
