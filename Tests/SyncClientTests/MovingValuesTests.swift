import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Values that no two local rows may share, and that move between rows.
@Suite("Unique values that move", .hangLimit)
struct MovingValuesTests {
  private let maker = PageMaker()

  private func places(_ schema: String, also: String = "") throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, \(schema)); \(also)")
    try replica.file.track(["t"])
    return replica
  }

  private func place(_ sequence: Int, _ record: Name, _ value: Int, inserts: Bool = false) -> Change
  {
    maker.change(
      SequenceNumber(sequence), "t", record, [Column("u", .integer(Int64(value)))],
      inserts: inserts)
  }

  private func shown(_ replica: ReplicaFixture) throws -> [[Value]] {
    try replica.rows("SELECT id, u FROM t ORDER BY id")
  }

  @Test(
    "a swap of unique values is applied under any other constraint of the column",
    arguments: [
      "u INTEGER UNIQUE",
      "u INTEGER NOT NULL UNIQUE CHECK (u BETWEEN 1 AND 2), n INTEGER DEFAULT 7",
      "u INTEGER, UNIQUE(u) ON CONFLICT REPLACE", "u INTEGER, UNIQUE(u) ON CONFLICT IGNORE",
      "u INTEGER UNIQUE, up TEXT REFERENCES t(id) ON DELETE CASCADE",
    ], [false, true])
  func swap(schema: String, isWhole: Bool) throws {
    let replica = try places(schema)
    try replica.apply([place(1, "p", 1, inserts: true), place(2, "q", 2, inserts: true)])
    let result = try replica.apply([
      place(3, "p", 2, inserts: isWhole), place(4, "q", 1, inserts: isWhole),
    ])
    #expect(result == AppliedPull(applied: 2, refused: 0))
    #expect(try shown(replica) == [["p", 2], ["q", 1]])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.file.reports.status().deferred == 0)
  }

  @Test("values that conflict only in between are applied under partial and expression indexes")
  func indexes() throws {
    let replica = try places(
      "u INTEGER, n TEXT",
      also: """
        CREATE UNIQUE INDEX one ON t(abs(u));
        CREATE UNIQUE INDEX two ON t(n COLLATE NOCASE) WHERE u > 0
        """)
    try replica.apply([
      maker.change(1, "t", "p", [Column("u", 1), Column("n", "a")]),
      maker.change(2, "t", "q", [Column("u", 2), Column("n", "b")]),
    ])
    let result = try replica.apply([
      maker.change(3, "t", "p", [Column("u", -2), Column("n", "B")], inserts: false),
      maker.change(4, "t", "q", [Column("u", 1), Column("n", "A")], inserts: false),
    ])
    #expect(result.refused == 0)
    #expect(try replica.rows("SELECT u, n FROM t ORDER BY id") == [[-2, "B"], [1, "A"]])
  }

  @Test("a value that one row frees, by an update or a delete, can be taken in the same pull")
  func freed() throws {
    let replica = try places("u INTEGER UNIQUE")
    try replica.apply([place(1, "p", 1, inserts: true), place(2, "q", 2, inserts: true)])
    let result = try replica.apply([
      place(3, "new", 1, inserts: true), place(4, "r", 2, inserts: true), place(5, "p", 3),
      maker.deletion(6, "t", "q"),
    ])
    #expect(result == AppliedPull(applied: 4, refused: 0))
    #expect(try shown(replica) == [["new", 1], ["p", 3], ["r", 2]])
  }

  @Test("a value that a deferred change frees can be taken in the same pull")
  func freedByDeferred() throws {
    let replica = try places("u INTEGER UNIQUE")
    try replica.apply([place(1, "p", 1, inserts: true), place(2, "q", 2, inserts: true)])
    // The second change is deferred until the third, and the first until the second.
    let result = try replica.apply([
      place(3, "new", 2, inserts: true), place(4, "q", 1), place(5, "p", 3),
    ])
    #expect(result == AppliedPull(applied: 3, refused: 0))
    #expect(try shown(replica) == [["new", 2], ["p", 3], ["q", 1]])
  }

  @Test("a shift of 3,000 values over the pages of one pull is applied at once")
  func shift() throws {
    let replica = try places("u INTEGER NOT NULL UNIQUE")
    let count = 3_000
    func name(_ index: Int) -> Name { Name("r" + String(10_000 + index)) }
    try replica.apply((1...count).map { place($0, name($0), $0, inserts: true) })
    let changes = (1...count).map { place(count + $0, name($0), $0 + 1) }
    let head = SequenceNumber(2 * count + 1)
    let first = maker.page(
      Array(changes.prefix(2_000)), head: head, more: true, applied: SequenceNumber(count))
    try replica.file.incoming.stage(first.body, first.head, changes: 2_000)
    let result = try replica.apply(
      Array(changes.suffix(1_000)) + [place(2 * count + 1, "first", 1, inserts: true)])
    #expect(result.refused == 0)
    #expect(
      try replica.rows("SELECT count(*) FROM t WHERE u = substr(id, 2) - 9999")
        == [[.integer(Int64(count))]])
    #expect(try replica.rows("SELECT u FROM t WHERE id = 'first'") == [[1]])
  }

  @Test("values that move over several pulls are applied when the last pull arrives")
  func severalPulls() throws {
    let replica = try places("u INTEGER UNIQUE")
    try replica.apply((1...3).map { place($0, Name("r\($0)"), $0, inserts: true) })
    #expect(try replica.apply([place(4, "r1", 2)]).refused == 1)
    #expect(try replica.apply([place(5, "r2", 3)]).refused == 2)
    #expect(try shown(replica) == [["r1", 1], ["r2", 2], ["r3", 3]])
    #expect(try replica.apply([place(6, "r3", 1)]).refused == 0)
    #expect(try shown(replica) == [["r1", 2], ["r2", 3], ["r3", 1]])
    #expect(try replica.file.reports.status().deferred == 0)
  }

  @Test("an own row defers the rows that need its value, and no others")
  func ownRow() throws {
    let replica = try places("u INTEGER UNIQUE")
    try replica.apply((1...6).map { place($0, Name("r\($0)"), $0, inserts: true) })
    try replica.run("DELETE FROM t WHERE id = 'r4'; INSERT INTO t VALUES ('mine', 4)")
    // r1 and r2 swap; r3 goes to the place of the own row, and r5 and r6 come after it.
    let result = try replica.apply([
      place(7, "r1", 2), place(8, "r2", 1), place(9, "r3", 4), place(10, "r5", 3),
      place(11, "r6", 5),
    ])
    #expect(result.refused == 3)
    #expect(
      try shown(replica)
        == [["mine", 4], ["r1", 2], ["r2", 1], ["r3", 3], ["r5", 5], ["r6", 6]])
    #expect(try replica.pending.map(\.key.record) == ["r4", "mine"])
    try replica.run("DELETE FROM t WHERE id = 'mine'")
    #expect(try replica.apply([place(12, "r1", 2)]).refused == 0)
    #expect(
      try shown(replica) == [["r1", 2], ["r2", 1], ["r3", 4], ["r5", 3], ["r6", 5]])
  }

  @Test("children are unchanged if their parents' values move, tracked or not")
  func children() throws {
    let replica = try places(
      "u INTEGER UNIQUE",
      also: """
        CREATE TABLE child(id TEXT PRIMARY KEY, t TEXT REFERENCES t(id) ON DELETE CASCADE);
        CREATE TABLE plain(n INTEGER PRIMARY KEY, t TEXT REFERENCES t(id) ON DELETE SET NULL);
        CREATE TABLE strict(n INTEGER PRIMARY KEY, t TEXT REFERENCES t(id) ON DELETE RESTRICT)
        """)
    try replica.file.track(["child"])
    try replica.apply([
      place(1, "p", 1, inserts: true), place(2, "q", 2, inserts: true),
      maker.change(3, "child", "c", [Column("t", "p")]),
    ])
    try replica.run("INSERT INTO plain VALUES (1, 'q'); INSERT INTO strict VALUES (1, 'p')")
    let result = try replica.apply([place(4, "p", 2), place(5, "q", 1)])
    #expect(result == AppliedPull(applied: 2, refused: 0))
    #expect(try shown(replica) == [["p", 2], ["q", 1]])
    let children =
      "SELECT t FROM child UNION ALL SELECT t FROM plain UNION ALL SELECT t FROM strict"
    #expect(try replica.rows(children) == [["p"], ["q"], ["p"]])
    #expect(try replica.pending.isEmpty)
    // A delete still deletes the rows with references to it.
    try replica.run("DELETE FROM strict")
    try replica.apply([maker.deletion(6, "t", "p")])
    #expect(try replica.rows(children) == [["q"]])
    #expect(try replica.pending.map(\.key.record) == ["c"])
  }

  @Test("data that the user's triggers derive from rows stays correct while values move")
  func triggers() throws {
    let replica = try places(
      "u INTEGER UNIQUE",
      also: """
        CREATE TABLE search(id TEXT UNIQUE, u INTEGER);
        CREATE TRIGGER i AFTER INSERT ON t BEGIN INSERT INTO search VALUES (NEW.id, NEW.u); END;
        CREATE TRIGGER d AFTER DELETE ON t BEGIN DELETE FROM search WHERE id = OLD.id; END;
        CREATE TRIGGER u AFTER UPDATE ON t BEGIN
          UPDATE search SET u = NEW.u WHERE id = OLD.id AND u = OLD.u;
        END
        """)
    try replica.apply((1...3).map { place($0, Name("r\($0)"), $0, inserts: true) })
    try replica.apply([place(4, "r1", 2), place(5, "r2", 3), place(6, "r3", 1)])
    #expect(try shown(replica) == [["r1", 2], ["r2", 3], ["r3", 1]])
    #expect(try replica.rows("SELECT id, u FROM search ORDER BY id") == (try shown(replica)))
    #expect(try replica.pending.isEmpty)
  }

  @Test("a trigger that forbids deletes defers all rows that would need one")
  func protectedRows() throws {
    let replica = try places(
      "u INTEGER UNIQUE",
      also: "CREATE TRIGGER d BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'no'); END")
    try replica.apply([place(1, "p", 1, inserts: true), place(2, "q", 2, inserts: true)])
    #expect(try replica.apply([place(3, "p", 2), place(4, "q", 1)]).refused == 2)
    #expect(try shown(replica) == [["p", 1], ["q", 2]])
  }

  @Test("a row that a constraint or trigger silently drops is kept with the reason")
  func ignored() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, n INTEGER NOT NULL ON CONFLICT IGNORE);
      CREATE TABLE s(id TEXT PRIMARY KEY, n INTEGER);
      CREATE TRIGGER i BEFORE INSERT ON s WHEN NEW.n < 0 BEGIN SELECT RAISE(IGNORE); END;
      CREATE TRIGGER d BEFORE DELETE ON s BEGIN SELECT RAISE(IGNORE); END
      """)
    try replica.file.track(["t", "s"])
    let result = try replica.apply([
      maker.change(1, "t", "a", [Column("n", nil)]), maker.change(2, "t", "b", [Column("n", 1)]),
      maker.change(3, "s", "c", [Column("n", -1)]), maker.change(4, "s", "d", [Column("n", 1)]),
    ])
    #expect(result == AppliedPull(applied: 2, refused: 2))
    #expect(try replica.apply([maker.deletion(5, "s", "d")]).refused == 3)
    let waiting = try replica.file.waiting.oldest(9)
    #expect(waiting.map(\.key.record) == ["a", "c", "d"])
    #expect(waiting.allSatisfy { $0.reason.contains("ignores the row") })
    // A write without an effect is not an ignored one.
    try replica.run("CREATE TRIGGER u BEFORE UPDATE ON t BEGIN SELECT RAISE(IGNORE); END")
    try replica.apply([maker.change(6, "t", "b", [Column("n", 1)], inserts: false)])
    #expect(try replica.file.waiting.oldest(9).count == 3)
  }

  @Test("a CHECK on columns that a change does not name is checked against the local row")
  func checks() throws {
    let replica = try places("u INTEGER, n INTEGER, CHECK (n IS NOT NULL AND u < n)")
    try replica.apply([maker.change(1, "t", "p", [Column("u", 1), Column("n", 5)])])
    #expect(try replica.apply([place(2, "p", 3)]).refused == 0)
    #expect(try replica.rows("SELECT u, n FROM t") == [[3, 5]])
  }
}
