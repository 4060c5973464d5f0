import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Foreign keys to a UNIQUE column with ON UPDATE.
@Suite("Rows that follow a key value", .hangLimit)
struct KeyFollowerTests {
  private let maker = PageMaker()

  private func replica(_ action: String) throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE labels(id TEXT PRIMARY KEY, code TEXT UNIQUE);
      CREATE TABLE tags(id TEXT PRIMARY KEY,
        code TEXT DEFAULT 'none' REFERENCES labels(code) ON UPDATE \(action))
      """)
    try replica.file.track(["labels", "tags"])
    try replica.apply([
      maker.change(1, "labels", "l", [Column("code", "old")]),
      maker.change(2, "tags", "known", [Column("code", "old")]),
    ])
    return replica
  }

  @Test(
    "a row that the author did not know follows the value, and the change is recorded",
    arguments: [
      ("CASCADE", Value.text("new")), ("SET NULL", Value.null), ("SET DEFAULT", Value.text("none")),
    ])
  func concurrentChild(action: String, expected: Value) throws {
    let replica = try replica(action)
    try replica.apply([maker.change(3, "labels", "default", [Column("code", "none")])])
    try replica.run("INSERT INTO tags VALUES ('mine', 'old')")
    let result = try replica.apply([
      maker.change(4, "labels", "l", [Column("code", "new")], inserts: false),
      maker.change(5, "tags", "known", [Column("code", expected)], inserts: false),
    ])
    #expect(result == AppliedPull(applied: 2, refused: 0))
    #expect(
      try replica.rows("SELECT id, code FROM tags ORDER BY id")
        == [["known", expected], ["mine", expected]])
    // Effects of a pulled change are not recorded again.
    let pending = try replica.pending
    #expect(pending.map(\.key.record) == ["mine", "mine"])
    #expect(pending.last?.columns == [Column("code", expected)])
    #expect(pending[1].time > pending[0].time)
  }

  @Test("if a row's default has no parent on the device, the change of the value is deferred")
  func defaultWithoutParent() throws {
    let replica = try replica("SET DEFAULT")
    try replica.run("INSERT INTO tags VALUES ('mine', 'old')")
    let result = try replica.apply([
      maker.change(3, "labels", "l", [Column("code", "new")], inserts: false),
      maker.change(4, "labels", "default", [Column("code", "none")]),
      maker.change(5, "tags", "known", [Column("code", "none")], inserts: false),
    ])
    #expect(result.refused == 0)
    let changes = [
      maker.change(6, "labels", "default", [Column("code", "all")], inserts: false),
      maker.change(7, "tags", "known", [Column("code", .null)], inserts: false),
    ]
    #expect(try replica.apply(changes).refused == 1)
    #expect(
      try replica.rows("SELECT id, code FROM tags ORDER BY id")
        == [["known", .null], ["mine", "none"]])
    #expect(try replica.rows("SELECT code FROM labels ORDER BY id") == [["none"], ["new"]])
    // It is applied as soon as no row refers to the value any more.
    try replica.run("DELETE FROM tags WHERE id = 'mine'")
    #expect(try replica.apply([], head: 8).refused == 0)
    #expect(try replica.rows("SELECT code FROM labels ORDER BY id") == [["all"], ["new"]])
  }

  @Test("a row that arrives with the value's change follows it too")
  func childInTheSamePull() throws {
    let replica = try replica("CASCADE")
    try replica.apply([
      maker.change(3, "tags", "theirs", [Column("code", "old")]),
      maker.change(4, "labels", "l", [Column("code", "new")], inserts: false),
      maker.change(5, "tags", "known", [Column("code", "new")], inserts: false),
    ])
    #expect(try replica.rows("SELECT DISTINCT code FROM tags") == [["new"]])
    #expect(try replica.pending.map(\.key.record) == ["theirs"])
  }

  @Test("rows keep a value that another row has taken")
  func swappedValues() throws {
    let replica = try replica("CASCADE")
    try replica.apply([maker.change(3, "labels", "m", [Column("code", "other")])])
    try replica.run("INSERT INTO tags VALUES ('mine', 'old')")
    let result = try replica.apply([
      maker.change(4, "labels", "l", [Column("code", "other")], inserts: false),
      maker.change(5, "labels", "m", [Column("code", "old")], inserts: false),
      maker.change(6, "tags", "known", [Column("code", "other")], inserts: false),
    ])
    #expect(result.refused == 0)
    #expect(
      try replica.rows("SELECT id, code FROM tags ORDER BY id")
        == [["known", "other"], ["mine", "old"]])
  }
}
