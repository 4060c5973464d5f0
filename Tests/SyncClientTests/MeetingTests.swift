import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Own operations that conflict with pulled ones", .hangLimit)
struct MeetingTests {
  private let maker = PageMaker()

  @Test("an insert and a delete are sent as the delete if a pull contained the record")
  func metDeleteIsSent() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
    try replica.run("DELETE FROM tasks")
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    #expect(try replica.rows("SELECT title FROM tasks").isEmpty)
    #expect(try replica.freeze().flatMap(\.operations).map(\.kind) == [.delete])
  }

  @Test("the delete of a record that another device inserted as well is sent")
  func deletedAfterMeeting() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    #expect(try replica.rows("SELECT title FROM tasks") == [["mine"]])
    try replica.run("DELETE FROM tasks")
    #expect(try replica.freeze().flatMap(\.operations).map(\.kind) == [.delete])
  }

  @Test("values from before an own delete do not return with the own insert after it")
  func formerLife() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")])])
    try replica.run("DELETE FROM tasks")
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'again')")
    let earlier = replica.clock.now - 1
    try replica.apply([
      maker.change(2, "tasks", "a", [Column("done", 7)], inserts: false, at: earlier)
    ])
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["again", 0]])
  }

  @Test("a deferred record is deleted on the server after a local insert and delete")
  func keptIsDeleted() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5))")
    try replica.file.track(["t"])
    try replica.apply([maker.change(1, "t", "a", [Column("n", 9)])])
    try replica.run("INSERT INTO t VALUES ('a', 1)")
    try replica.run("DELETE FROM t")
    #expect(try replica.freeze().flatMap(\.operations).map(\.kind) == [.delete])
  }

  @Test("a conflict that is confirmed at an unknown sequence is pulled again from before it")
  func metAndAnswerLost() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 5)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
    let packet = try replica.freeze()[0]
    // A copy of this file has sent it, clamped since this clock is ahead; a later edit took 7.
    let later = maker.change(7, "tasks", "a", [Column("title", "theirs")])
    try replica.apply([later], head: 7)
    #expect(try replica.rows("SELECT title FROM tasks") == [["mine"]])
    // The response to the packet is lost.
    #expect(try replica.apply([], head: 8, tail: packet.tail).isToRepeat)
    #expect(try replica.file.syncState().applied == 5)
    #expect(try replica.apply([later], head: 8, tail: packet.tail).isToRepeat == false)
    #expect(try replica.rows("SELECT title FROM tasks") == [["theirs"]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("rows that cascade from a pulled delete are deleted later than they were written")
  func cascadeIsLater() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE lists(id TEXT PRIMARY KEY)")
    try replica.run(
      "CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE)")
    try replica.file.track(["lists", "items"])
    try replica.apply([maker.change(1, "lists", "l", [])])
    // The clock of the item's author is far ahead; both come with one pull.
    let ahead = replica.clock.now + 86_400_000
    try replica.apply([
      maker.change(2, "items", "i", [Column("list", "l")], at: ahead),
      maker.deletion(3, "lists", "l", at: replica.clock.now),
    ])
    #expect(try replica.pending.map(\.kind) == [.delete])
    #expect(try replica.pending[0].time > HybridTimestamp(milliseconds: ahead))
  }

  @Test("an insert that was sent and a later delete shield the record")
  func sentInsertAndDelete() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
    _ = try replica.freeze()
    try replica.run("DELETE FROM tasks")
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    #expect(try replica.rows("SELECT title FROM tasks").isEmpty)
    #expect(try replica.freeze().count == 2)
  }

  @Test("rows that cascade from a pulled delete are shielded from the rest of the page")
  func cascadeShieldsInThePage() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT)")
    try replica.run(
      "CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE)")
    try replica.file.track(["lists", "items"])
    let item = maker.change(2, "items", "i", [Column("list", "l")])
    try replica.apply([maker.change(1, "lists", "l", [Column("name", "groceries")]), item])
    let later = maker.change(4, "items", "i", [Column("list", "l")])
    let pulled = try replica.apply(
      [maker.deletion(3, "lists", "l", at: 1_750_000_000_000), later])
    #expect(pulled.refused == 0)
    #expect(try replica.rows("SELECT id FROM items").isEmpty)
    #expect(try replica.pending.map(\.kind) == [.delete])
  }

  @Test("a row that is deleted and returns keeps its pending columns")
  func comesBack() throws {
    for isPlain in [true, false] {
      let replica = try ReplicaFixture()
      try replica.run("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, votes INTEGER)")
      try replica.file.track(["tasks"])
      if !isPlain {
        let document = #"{"version":1,"tables":{"tasks":{"columns":{"votes":"max"}}}}"#
        try replica.apply([
          maker.change(
            1, "ferry_schema", "schema",
            [Column("document", .text(document)), Column("version", 1)])
        ])
      }
      try replica.run("INSERT INTO tasks VALUES ('a', 'one', 5)")
      _ = try replica.freeze()
      try replica.apply([maker.deletion(2, "tasks", "a", at: 1_900_000_000_000)])
      #expect(try replica.rows("SELECT id FROM tasks").isEmpty)
      // The server lost the delete, and a copy of this file has sent the insert.
      try replica.apply([
        maker.change(3, "tasks", "a", [Column("title", "one"), Column("votes", 5)])
      ])
      #expect(try replica.rows("SELECT title, votes FROM tasks") == [["one", 5]], "\(isPlain)")
    }
  }

  @Test("a change of another column keeps an own increment that a CHECK reads")
  func checkedIncrement() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      "CREATE TABLE goods(id TEXT PRIMARY KEY, name TEXT, stock INTEGER CHECK (stock >= 0))")
    try replica.file.track(["goods"])
    let document = #"{"version":1,"tables":{"goods":{"columns":{"stock":"counter"}}}}"#
    try replica.apply([
      maker.change(
        1, "ferry_schema", "schema", [Column("document", .text(document)), Column("version", 1)]),
      maker.change(2, "goods", "g", [Column("name", "nail"), Column("stock", 10)]),
    ])
    try replica.run("UPDATE goods SET stock = stock - 3")
    let renamed = maker.change(3, "goods", "g", [Column("name", "bolt")], inserts: false)
    #expect(try replica.apply([renamed]).refused == 0)
    #expect(try replica.rows("SELECT name, stock FROM goods") == [["bolt", 7]])
    // If the row is not here, the total of an increment to an unknown value is unknown, too.
    try replica.file.capture.during(.applying) { _ = try replica.run("DELETE FROM goods") }
    try replica.apply([
      maker.change(4, "goods", "g", [Column("name", "screw")], inserts: false)
    ])
    #expect(try replica.rows("SELECT name, stock FROM goods") == [["screw", nil]])
  }

  @Test("rows that cascade from a remote delete are deleted on the server as well")
  func remoteCascade() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE parent(id TEXT PRIMARY KEY);
      CREATE TABLE child(id TEXT PRIMARY KEY, parent TEXT REFERENCES parent(id) ON DELETE CASCADE)
      """)
    try replica.file.track(["parent", "child"])
    try replica.apply([
      maker.change(1, "parent", "p", []), maker.change(2, "child", "c", [Column("parent", "p")]),
    ])
    try replica.apply([maker.deletion(3, "parent", "p")])
    #expect(try replica.rows("SELECT count(*) FROM child") == [[0]])
    #expect(try replica.pending.map { "\($0.kind) \($0.key.record)" } == ["delete c"])
  }
}
