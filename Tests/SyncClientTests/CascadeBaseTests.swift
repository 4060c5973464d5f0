import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The `base` of SQLite's changes to rows deleted along with a parent by a pull list.
@Suite("Bases of rows that cascade from their parents", .hangLimit)
struct CascadeBaseTests {
  private let maker = PageMaker()

  /// Parents `P1` and `P2`, and a child of the second, which the server has.
  private func family(_ action: String = "CASCADE", deletes: String = "edit-wins") throws
    -> ReplicaFixture
  {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY, name TEXT);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE \(action), note TEXT)
      """)
    try replica.file.track(["p", "k"])
    let document = #"{"version":1,"tables":{"k":{"deletes":"\#(deletes)"}}}"#
    try replica.apply([
      maker.change(
        1, "ferry_schema", "schema", [Column("document", .text(document)), Column("version", 1)]),
      maker.change(2, "p", "P1", []), maker.change(3, "p", "P2", []),
      maker.change(4, "k", "old", [Column("note", "a"), Column("p", "P2")]),
    ])
    return replica
  }

  private func bases(_ replica: ReplicaFixture) throws -> [Name: SequenceNumber] {
    let deletes = try replica.pending.filter { $0.kind != .insert }
    return Dictionary(uniqueKeysWithValues: deletes.map { ($0.key.record, $0.base) })
  }

  @Test(
    "a cascaded row has seen the cursor before the list and the list's changes of the row",
    arguments: ["CASCADE", "SET NULL"])
  func bases(action: String) throws {
    let replica = try family(action)
    try replica.apply([maker.change(5, "k", "kept", [Column("p", "P2")])])
    try replica.apply([
      maker.change(6, "k", "kept", [Column("note", "b")], inserts: false),
      maker.change(7, "k", "new", [Column("p", "P2")]), maker.deletion(8, "p", "P2"),
      maker.change(9, "p", "P3", []),
    ])
    #expect(try bases(replica) == ["old": 5, "kept": 9, "new": 9])
  }

  @Test(
    "a row that was moved to another parent later survives, and nothing is recorded",
    arguments: ["edit-wins", "ask", "delete-wins"])
  func concurrentMove(deletes: String) throws {
    let replica = try family(deletes: deletes)
    try replica.apply([
      maker.deletion(5, "p", "P2"),
      maker.change(6, "k", "old", [Column("note", "a"), Column("p", "P1")]),
    ])
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT id, p FROM k") == [["old", "P1"]])
  }

  @Test("a row that a later page deletes does not go with its parent")
  func earlierPage() throws {
    let replica = try family()
    let first = maker.page(
      [maker.change(6, "k", "new", [Column("p", "P2")])], head: 6, more: true, applied: 4)
    try replica.file.incoming.stage(first.body, first.head, changes: 1)
    // Others wrote to the row between the pages, so the newest change of the row comes last.
    try replica.apply([
      maker.deletion(9, "p", "P2"), maker.deletion(12, "k", "new"),
    ])
    #expect(try bases(replica) == ["old": 4])
  }

  @Test("a row whose parent is gone is deleted once, after all pages that name it")
  func namedTwice() throws {
    let replica = try family()
    let first = maker.page(
      [maker.deletion(5, "p", "P2"), maker.change(6, "k", "new", [Column("p", "P2")])],
      head: 7, more: true, applied: 4)
    try replica.file.incoming.stage(first.body, first.head, changes: 2)
    try replica.apply([maker.change(9, "k", "new", [Column("note", "b")], inserts: false)])
    let deletes = try replica.pending.filter { $0.key.record == "new" }
    #expect(deletes.map(\.kind) == [.delete])
    #expect(deletes.map(\.base) == [9])
  }

  @Test("a row that a full list has brought has seen all of the list")
  func replacement() throws {
    let replica = try family()
    try ReplacingPull(replica.file).begin(Problem(.cursorExpired, "the cursor is too old"))
    try replica.apply([
      maker.change(2, "p", "P1", []), maker.deletion(7, "p", "P2"),
      maker.change(8, "k", "old", [Column("note", "b"), Column("p", "P2")]),
    ])
    #expect(try bases(replica) == ["old": 8])
  }
}
