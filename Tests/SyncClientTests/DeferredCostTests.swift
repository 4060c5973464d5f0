import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The cost of deferred records, counted in attempted changes.
@Suite("The cost of deferred records", .hangLimit)
struct DeferredCostTests {
  private let maker = PageMaker()

  private func tree(_ definition: String) throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(\(definition))")
    try replica.file.track(["t"])
    return replica
  }

  /// Records in a row, each with a reference to the one before. The first one refers to an absent
  /// record.
  private func chain(_ count: Int, isReversed: Bool, number: (Int) -> Value) -> [Change] {
    let order = isReversed ? Array((1...count).reversed()) : Array(1...count)
    return order.enumerated().map { place, index in
      maker.change(
        SequenceNumber(place + 1), "t", name(index), [Column("up", number(index - 1))])
    }
  }

  private func name(_ index: Int) -> Name { "r\(index)" }

  /// Returns the number of changes tried by a pull of a list, and the deferred records.
  private func pull(
    _ replica: ReplicaFixture, _ changes: [Change], head: SequenceNumber? = nil
  ) throws -> (attempts: Int, refused: Int) {
    let before = replica.file.attempts.count
    let refused = try replica.apply(changes, head: head).refused
    return (replica.file.attempts.count - before, refused)
  }

  /// Keys of the table, and a parent of each row.
  static let keys = [
    "id TEXT PRIMARY KEY, up TEXT REFERENCES t(id)",
    "id TEXT PRIMARY KEY, up TEXT REFERENCES t(id) ON DELETE CASCADE",
    "id TEXT PRIMARY KEY, up TEXT REFERENCES t(id) DEFERRABLE INITIALLY DEFERRED",
    "id INTEGER PRIMARY KEY, up INTEGER REFERENCES t(id)",
  ]

  @Test(
    "a chain without its root costs three runs once, nothing later, and arrives with the root",
    arguments: keys, [true, false])
  func chain(definition: String, isReversed: Bool) throws {
    let replica = try tree(definition)
    let count = 300
    let list = chain(count, isReversed: isReversed) { .text("r\($0)") }
    let first = try pull(replica, list)
    #expect(first.refused == count)
    #expect(first.attempts <= 4 * count)
    #expect(try replica.rows("SELECT count(*) FROM t") == [[0]])
    let next = SequenceNumber(count + 1)
    #expect(try pull(replica, [], head: next) == (0, count))
    #expect(try pull(replica, [maker.change(next, "t", "x", [])]) == (1, count))
    #expect(try pull(replica, [], head: next) == (0, count))
    #expect(try pull(replica, [maker.change(next + 1, "t", "r0", [])]) == (count + 1, 0))
    #expect(try replica.rows("SELECT count(*) FROM t") == [[.integer(Int64(count + 2))]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("rows of a chain arrive after the user inserts the root")
  func ownRoot() throws {
    let replica = try tree(Self.keys[0])
    try replica.apply(chain(50, isReversed: true) { .text("r\($0)") })
    try replica.run("INSERT INTO t VALUES ('r0', NULL)")
    #expect(try replica.apply([], head: 50).refused == 0)
    #expect(try replica.rows("SELECT count(*) FROM t") == [[51]])
  }

  @Test("a chain that waits for its table costs as little when the table is made")
  func laterTable() throws {
    let replica = try ReplicaFixture()
    let list = chain(300, isReversed: false) { .text("r\($0)") }
    try replica.apply(list)
    try replica.run("CREATE TABLE t(\(Self.keys[2]))")
    let before = replica.file.attempts.count
    try replica.file.track(["t"])
    #expect(replica.file.attempts.count - before <= 4 * list.count)
    #expect(try replica.file.kept.refusedCount() == list.count)
    #expect(try replica.apply([maker.change(301, "t", "r0", [])]).refused == 0)
    #expect(try replica.rows("SELECT count(*) FROM t") == [[301]])
  }

  @Test("a row that violates its table's definition is tried again only when the schema changes")
  func definition() throws {
    let replica = try tree("id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5)")
    let list = (1...100).map { maker.change($0, "t", name(Int($0)), [Column("n", 7)]) }
    #expect(try pull(replica, list) == (100, 100))
    #expect(try pull(replica, [maker.change(101, "t", "x", [])]) == (1, 100))
    #expect(try pull(replica, [], head: 101) == (0, 100))
    try replica.run("UPDATE t SET n = 1")
    #expect(try pull(replica, [], head: 101) == (0, 100))
    try replica.run("CREATE TABLE other(x)")
    #expect(try pull(replica, [], head: 101) == (100, 100))
    #expect(try pull(replica, [], head: 101) == (0, 100))
  }

  @Test("a row whose unique value another one has is tried again when its table is written")
  func unique() throws {
    let replica = try tree("id TEXT PRIMARY KEY, v TEXT UNIQUE")
    try replica.run("CREATE TABLE u(id TEXT PRIMARY KEY)")
    try replica.file.track(["u"])
    try replica.apply([
      maker.change(1, "t", "a", [Column("v", "x")]), maker.change(2, "t", "b", [Column("v", "x")]),
    ])
    #expect(try replica.file.kept.refusedCount() == 1)
    try replica.apply([], head: 2)
    #expect(try pull(replica, [maker.change(3, "u", "c", [])]) == (1, 1))
    #expect(try pull(replica, [], head: 3) == (0, 1))
    try replica.run("DELETE FROM t")
    #expect(try replica.apply([], head: 3).refused == 0)
    #expect(try replica.rows("SELECT id FROM t") == [["b"]])
  }

  @Test(
    "of rows that a trigger rejects, a limited number is tried with each pull, each in its turn")
  func unseen() throws {
    let replica = try tree("id TEXT PRIMARY KEY, n INTEGER")
    try replica.run(
      """
      CREATE TABLE closed(x);
      INSERT INTO closed VALUES (1);
      CREATE TRIGGER t_closed BEFORE INSERT ON t WHEN (SELECT count(*) FROM closed) > 0
      BEGIN SELECT RAISE(ABORT, 'closed'); END
      """)
    let count = 2 * KeptChanges.unseenPerPull + 10
    let list = (1...count).map { maker.change(SequenceNumber($0), "t", name($0), []) }
    #expect(try replica.apply(list).refused == count)
    let head = SequenceNumber(count)
    #expect(try pull(replica, [], head: head) == (KeptChanges.unseenPerPull, count))
    try replica.run("DELETE FROM closed")
    for left in [count - 500, count - 1_000, 0] {
      #expect(try replica.apply([], head: head).refused == left)
    }
  }
}
