import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Rows moved by a pull list from a parent that it deletes.
@Suite("Children that move from a deleted parent", .hangLimit)
struct MovedChildrenTests {
  private let maker = PageMaker()

  private static let actions = [
    "CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION",
    "NO ACTION DEFERRABLE INITIALLY DEFERRED",
  ]
  /// The orders of: the delete of the old parent, the insert of the new one, the move of the child.
  private static let permutations = [
    [0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0],
  ]

  /// Parents `old` and `other`, and a child `c` of the first, which the server has.
  private func family(_ action: String = "CASCADE", check: String = "") throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT DEFAULT 'other' REFERENCES p(id)
        ON DELETE \(action), note TEXT \(check))
      """)
    try replica.file.track(["p", "k"])
    try replica.apply([
      maker.change(1, "p", "old", [Column("name", "n")]), maker.change(2, "p", "other", []),
      maker.change(3, "k", "c", [Column("note", "a"), Column("p", "old")]),
    ])
    return replica
  }

  private func move(
    _ sequence: SequenceNumber, _ record: Name = "c", to parent: String = "new",
    _ more: Column...
  ) -> Change {
    maker.change(sequence, "k", record, more + [Column("p", .text(parent))], inserts: false)
  }

  /// The changes of a key, in an order.
  private func changes(_ order: [Int], from first: SequenceNumber = 4) -> [Change] {
    order.enumerated().map { place, kind in
      let sequence = first + SequenceNumber(place)
      switch kind {
      case 0: return maker.deletion(sequence, "p", "old")
      case 1: return maker.change(sequence, "p", "new", [Column("name", "n")])
      default: return move(sequence)
      }
    }
  }

  private func expectMoved(_ replica: ReplicaFixture) throws {
    #expect(try replica.rows("SELECT id, p, note FROM k") == [["c", "new", "a"]])
    #expect(try replica.rows("SELECT id FROM p ORDER BY id") == [["new"], ["other"]])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.file.kept.count() == 0)
  }

  @Test(
    "a child that the list moves stays, in each order and with each action", arguments: actions,
    permutations)
  func eachOrder(action: String, order: [Int]) throws {
    let replica = try family(action)
    #expect(try replica.apply(changes(order)).refused == 0)
    try expectMoved(replica)
  }

  @Test(
    "a page may end between the delete of a parent and the move of its child", arguments: actions,
    [1, 2])
  func pages(action: String, size: Int) throws {
    let replica = try family(action)
    let changes = changes([0, 1, 2])
    let first = maker.page(
      Array(changes.prefix(size)), head: 6, more: true, applied: 3)
    try replica.file.incoming.stage(first.body, first.head, changes: size)
    try replica.apply(Array(changes.dropFirst(size)))
    try expectMoved(replica)
  }

  @Test("a child that another edit brings long after the delete stays", arguments: actions)
  func laterEdit(action: String) throws {
    let replica = try family(action)
    try replica.apply([
      maker.deletion(5, "p", "old"), move(90, to: "other", Column("note", "b")),
    ])
    #expect(try replica.rows("SELECT id, p, note FROM k") == [["c", "other", "b"]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("rows of several levels stay, each with its new parent")
  func levels() throws {
    let replica = try family()
    try replica.run(
      "CREATE TABLE g(id TEXT PRIMARY KEY, k TEXT REFERENCES k(id) ON DELETE CASCADE)")
    try replica.file.track(["g"])
    try replica.apply([
      maker.change(4, "k", "d", [Column("p", "other")]),
      maker.change(5, "g", "g1", [Column("k", "c")]),
      maker.change(6, "g", "g2", [Column("k", "c")]),
    ])
    // The child goes with the parent, and one of the child's own children was moved before.
    try replica.apply([
      maker.deletion(7, "p", "old"), maker.deletion(8, "g", "g2"),
      maker.change(9, "g", "g1", [Column("k", "d")], inserts: false),
    ])
    #expect(try replica.rows("SELECT id, k FROM g") == [["g1", "d"]])
    #expect(try replica.pending.map { "\($0.kind) \($0.key.record)" } == ["delete c"])
  }

  @Test("rows of a tree get another root", arguments: ["CASCADE", "SET NULL", "NO ACTION"])
  func tree(action: String) throws {
    let replica = try ReplicaFixture()
    try replica.run(
      "CREATE TABLE t(id TEXT PRIMARY KEY, up TEXT REFERENCES t(id) ON DELETE \(action))")
    try replica.file.track(["t"])
    try replica.apply([
      maker.change(1, "t", "a", [Column("up", .null)]),
      maker.change(2, "t", "b", [Column("up", "a")]),
      maker.change(3, "t", "c", [Column("up", "b")]),
      maker.change(4, "t", "self", [Column("up", "self")]),
    ])
    try replica.apply([
      maker.deletion(5, "t", "a"), maker.deletion(6, "t", "self"), maker.deletion(7, "t", "b"),
      maker.change(8, "t", "new", [Column("up", .null)]),
      maker.change(9, "t", "c", [Column("up", "new")], inserts: false),
    ])
    #expect(try replica.rows("SELECT id, up FROM t ORDER BY id") == [["c", "new"], ["new", nil]])
    #expect(try replica.pending.isEmpty)
  }

  @Test(
    "a row of a tree that another row keeps stays, with all rows above it",
    arguments: ["RESTRICT", "NO ACTION"], [true, false])
  func keptInTree(action: String, isListed: Bool) throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, up TEXT REFERENCES t(id) ON DELETE CASCADE);
      CREATE TABLE k(id TEXT PRIMARY KEY, t TEXT REFERENCES t(id) ON DELETE \(action))
      """)
    try replica.file.track(["t", "k"])
    try replica.apply([
      maker.change(1, "t", "a", [Column("up", .null)]),
      maker.change(2, "t", "b", [Column("up", "a")]),
      maker.change(3, "t", "other", [Column("up", "a")]),
      maker.change(4, "t", "c", [Column("up", "b")]),
    ])
    // The author of the deletes has seen neither row.
    let kept = isListed ? "c" : "mine"
    if !isListed { try replica.run("INSERT INTO t VALUES ('mine', 'b')") }
    try replica.run("INSERT INTO k VALUES ('k', '\(kept)')")
    try replica.apply([
      maker.deletion(5, "t", "a"), maker.deletion(6, "t", "b"), maker.deletion(7, "t", "other"),
      maker.deletion(8, "t", "c"),
    ])
    let rows: [[Value]] = [["a", nil], ["b", "a"], [.text(kept), "b"]]
    #expect(try replica.rows("SELECT id, up FROM t ORDER BY id") == rows)
    #expect(try replica.rows("SELECT id, t FROM k") == [["k", .text(kept)]])
    #expect(try replica.file.kept.count() == 0)
    // The rows return on all devices.
    let recorded = try replica.pending.map { "\($0.kind) \($0.key.record)" }
    #expect(Set(recorded) == ["insert a", "insert b", "insert \(kept)", "insert k"])
    #expect(recorded.count == 4)
  }

  @Test("a long chain that is deleted from its first row on is not recorded")
  func chain() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      "CREATE TABLE t(id TEXT PRIMARY KEY, up TEXT REFERENCES t(id) ON DELETE CASCADE)")
    try replica.run("CREATE INDEX t_up ON t(up)")
    try replica.file.track(["t"])
    let count = 2_000
    func id(_ place: Int) -> String { "r\(10_000 + place)" }
    try replica.apply(
      (1...count).map { place in
        let up: Value = place == 1 ? .null : .text(id(place - 1))
        return maker.change(SequenceNumber(place), "t", Name(id(place)), [Column("up", up)])
      })
    try replica.apply(
      (1...count).map { maker.deletion(SequenceNumber(count + $0), "t", Name(id($0))) })
    #expect(try replica.rows("SELECT id FROM t").isEmpty)
    #expect(try replica.pending.isEmpty)
    #expect(try replica.file.kept.count() == 0)
  }

  @Test("a pending edit of a moved child stays pending", arguments: actions)
  func pendingEdit(action: String) throws {
    let replica = try family(action)
    try replica.run("UPDATE k SET note = 'mine'")
    try replica.apply(changes([0, 1, 2]))
    #expect(try replica.rows("SELECT id, p, note FROM k") == [["c", "new", "mine"]])
    #expect(try replica.pending.map(\.kind) == [.update])
  }

  @Test("a new child of the old parent goes with it, and frees its values for the new one")
  func pendingChild() throws {
    let replica = try family()
    try replica.run("INSERT INTO k VALUES ('mine', 'old', 'm')")
    #expect(try replica.apply(changes([0, 1, 2])).refused == 0)
    #expect(try replica.rows("SELECT id, p FROM k") == [["c", "new"]])
    #expect(try replica.rows("SELECT name FROM p WHERE id = 'new'") == [["n"]])
    #expect(
      try replica.pending.map { "\($0.kind) \($0.key.record)" } == ["insert mine", "delete mine"])
  }

  @Test("a deferred move keeps the former parent until it can be applied", arguments: actions)
  func deferredMove(action: String) throws {
    let replica = try family(action, check: "CHECK (note <> 'bad')")
    try replica.apply([
      maker.deletion(4, "p", "old"), maker.change(5, "p", "new", []),
      move(6, to: "new", Column("note", "bad")),
    ])
    #expect(try replica.rows("SELECT id, p FROM k") == [["c", "old"]])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.file.kept.refusedCount() == 2)
    try replica.apply([move(7, to: "new", Column("note", "good"))])
    #expect(try replica.rows("SELECT id, p FROM k") == [["c", "new"]])
    #expect(try replica.rows("SELECT id FROM p ORDER BY id") == [["new"], ["other"]])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.file.kept.count() == 0)
  }

  @Test("a move to a parent that is not here yet keeps the former parent", arguments: actions)
  func missingParent(action: String) throws {
    let replica = try family(action)
    try replica.apply([maker.deletion(4, "p", "old"), move(6)])
    #expect(try replica.rows("SELECT id, p FROM k") == [["c", "old"]])
    #expect(try replica.pending.isEmpty)
    try replica.apply([maker.change(7, "p", "new", [Column("name", "n")])])
    try expectMoved(replica)
  }

  @Test("a trigger that deletes children deletes none that the list moves")
  func triggers() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY, name TEXT);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT, note TEXT);
      CREATE TRIGGER p_gone AFTER DELETE ON p BEGIN DELETE FROM k WHERE p = OLD.id; END
      """)
    try replica.file.track(["p", "k"])
    try replica.apply([
      maker.change(1, "p", "old", []), maker.change(2, "p", "other", []),
      maker.change(3, "k", "c", [Column("note", "a"), Column("p", "old")]),
    ])
    try replica.apply(changes([0, 1, 2]))
    try expectMoved(replica)
  }

  @Test("a table that is not tracked between both changes nothing")
  func untrackedBetween() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY, name TEXT);
      CREATE TABLE u(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE CASCADE);
      CREATE TABLE k(id TEXT PRIMARY KEY, u TEXT REFERENCES u(id) ON DELETE CASCADE)
      """)
    try replica.file.track(["p", "k"])
    try replica.apply([maker.change(1, "p", "old", [])])
    try replica.run("INSERT INTO u VALUES ('u', 'old')")
    try replica.apply([maker.change(2, "k", "c", [Column("u", "u")])])
    try replica.apply([
      maker.deletion(3, "p", "old"),
      maker.change(4, "k", "c", [Column("u", .null)], inserts: false),
    ])
    #expect(try replica.rows("SELECT id, u FROM k") == [["c", nil]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("the child of a row without its parent stays if the list moves it")
  func orphanWithChild() throws {
    let replica = try family()
    try replica.run(
      "CREATE TABLE g(id TEXT PRIMARY KEY, k TEXT REFERENCES k(id) ON DELETE CASCADE)")
    try replica.file.track(["g"])
    try replica.apply([
      maker.change(4, "k", "d", [Column("p", "other")]),
      maker.change(5, "g", "g1", [Column("k", "c")]),
    ])
    // Another device has moved the child to a parent deleted by a third one.
    try replica.apply([
      maker.deletion(6, "p", "gone"), move(7, to: "gone"),
      maker.change(8, "g", "g1", [Column("k", "d")], inserts: false),
    ])
    #expect(try replica.rows("SELECT id, k FROM g") == [["g1", "d"]])
    #expect(try replica.rows("SELECT id FROM k") == [["d"]])
    #expect(try replica.pending.map { "\($0.kind) \($0.key.record)" } == ["delete c"])
  }

  @Test("a row without its parent stays deferred if a row keeps it")
  func orphanThatIsKept() throws {
    let replica = try family()
    try replica.run(
      "CREATE TABLE g(id TEXT PRIMARY KEY, k TEXT REFERENCES k(id) ON DELETE RESTRICT)")
    try replica.file.track(["g"])
    try replica.apply([maker.change(4, "g", "g1", [Column("k", "c")])])
    try replica.apply([maker.deletion(6, "p", "gone"), move(7, to: "gone")])
    #expect(try replica.rows("SELECT id, k FROM g") == [["g1", "c"]])
    #expect(try replica.file.kept.refusedCount() == 1)
  }

  @Test("a full list removes rows that it does not name without recording that")
  func replacement() throws {
    let replica = try family()
    try ReplacingPull(replica.file).begin(Problem(.cursorExpired, "the cursor is too old"))
    try replica.apply([maker.change(9, "p", "other", [])])
    #expect(try replica.rows("SELECT id FROM k").isEmpty)
    #expect(try replica.rows("SELECT id FROM p") == [["other"]])
    #expect(try replica.pending.isEmpty)
  }
}
