import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Rows that go with a parent, deleted by a device that has not seen them (SPEC.md §28).
@Suite("Rows that go with a deleted parent", .hangLimit)
struct LostRowsTests {
  private let maker = PageMaker()

  /// A parent `P` and a child `c` of it, both on the server.
  private func family(deletes: String = "delete-wins") throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY, name TEXT NOT NULL);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE CASCADE, note TEXT)
      """)
    try replica.file.track(["p", "k"])
    let document = #"{"version":1,"tables":{"k":{"deletes":"\#(deletes)"}}}"#
    try replica.apply([
      maker.change(
        1, "ferry_schema", "schema", [Column("document", .text(document)), Column("version", 1)]),
      maker.change(2, "p", "P", [Column("name", "parent")]),
      maker.change(3, "k", "c", [Column("note", "work"), Column("p", "P")]),
    ])
    return replica
  }

  private func listed(_ replica: ReplicaFixture) throws -> [KeptConflict] {
    try replica.file.conflicts.newest(10, own: replica.file.ownNames()).reversed()
  }

  @Test(
    "a confirmed row is listed with its values, and its delete has seen none of its writes",
    arguments: ["delete-wins", "edit-wins"])
  func confirmed(deletes: String) throws {
    let replica = try family(deletes: deletes)
    try replica.apply([maker.deletion(4, "p", "P")])
    let listed = try listed(replica)
    #expect(listed.map(\.conflict.column) == [nil, "p", "note"])
    #expect(listed.map(\.conflict.lost) == [.null, "P", "work"])
    #expect(listed.allSatisfy { $0.isLosersOwn && $0.conflict.winner.device == maker.device })
    // An edit would win against a delete whose author has not seen it.
    #expect(try replica.pending.map(\.base) == [deletes == "edit-wins" ? 3 : 0])
  }

  @Test("a row that the list deletes as well is not listed")
  func deletedToo() throws {
    let replica = try family()
    try replica.apply([maker.deletion(4, "p", "P"), maker.deletion(5, "k", "c")])
    #expect(try listed(replica).isEmpty)
    #expect(try replica.pending.isEmpty)
  }

  @Test("a value that the server reports as well is listed once")
  func reportedToo() throws {
    let replica = try family()
    try replica.apply([maker.deletion(4, "p", "P")])
    let operation = try #require(try replica.pending.first)
    let author = Stamp(time: HybridTimestamp(milliseconds: 1), device: maker.device)
    for (value, isKnown) in [(Value("work"), true), ("newer", false)] {
      let reported = Conflict(
        column: "note", lost: value, loser: author,
        winner: Stamp(time: operation.time, device: try replica.file.identity().device))
      #expect(
        try replica.file.conflicts.has(reported, of: operation.id, on: operation.key) == isKnown)
    }
  }

  @Test("an answer brings a row back together with its parent, as they were")
  func comesBack() throws {
    let replica = try family()
    try replica.apply([maker.deletion(4, "p", "P")])
    let number = try #require(try listed(replica).first).number
    #expect(try replica.file.conflictAnswers.resolve(number, .keepLocal))
    #expect(try replica.rows("SELECT * FROM p") == [["P", "parent"]])
    #expect(try replica.rows("SELECT * FROM k") == [["c", "P", "work"]])
    #expect(
      try replica.pending.map { "\($0.kind) \($0.key.record)" }
        == ["delete c", "insert P", "insert c"])
  }

  @Test("undoing the delete of a row brings its parent back, too")
  func undo() throws {
    let replica = try family()
    try replica.apply([maker.deletion(4, "p", "P")])
    _ = try replica.file.undoSteps.undo(try #require(try replica.pending.first).id)
    #expect(
      try replica.rows("SELECT p.name, k.note FROM k JOIN p ON p.id = k.p") == [["parent", "work"]])
  }

  @Test("without the parent's values, the answer names the record to insert first, and then works")
  func namesParent() throws {
    let replica = try family()
    try replica.apply([maker.deletion(4, "p", "P")])
    try replica.file.connection.execute("DELETE FROM ferry_former_rows")
    let number = try #require(try listed(replica).first).number
    let error = #expect(throws: ReplicaError.self) {
      try replica.file.conflictAnswers.resolve(number, .keepLocal)
    }
    #expect(error?.description.contains("insert p P first") == true)
    #expect(try listed(replica).allSatisfy { $0.resolvedAt == nil })
    try replica.run("INSERT INTO p VALUES ('P', 'again')")
    #expect(try replica.file.conflictAnswers.resolve(number, .keepLocal))
    #expect(try replica.rows("SELECT * FROM k") == [["c", "P", "work"]])
  }

  @Test("a row that has a key alone comes back, too")
  func keyAlone() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY);
      CREATE TABLE k(p TEXT NOT NULL REFERENCES p(id) ON DELETE CASCADE, tag TEXT NOT NULL,
        PRIMARY KEY(p, tag))
      """)
    try replica.file.track(["p", "k"])
    try replica.apply([maker.change(1, "p", "P", [])])
    try replica.run("INSERT INTO k VALUES ('P', 'red')")
    try replica.apply([maker.deletion(2, "p", "P")])
    let row = try #require(try listed(replica).first)
    #expect(row.conflict.column == nil)
    #expect(try replica.file.conflictAnswers.resolve(row.number, .keepLocal))
    #expect(try replica.rows("SELECT * FROM k") == [["P", "red"]])
  }
}
