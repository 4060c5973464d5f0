import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Batch operations on the device", .hangLimit)
struct BatchTests {
  private let maker = PageMaker()

  /// Tasks a, b and c, present on the server; c is done.
  private func withThree(limits: Limits = .standard) throws -> ReplicaFixture {
    let replica = try ReplicaFixture.withTasks(limits: limits)
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x"), Column("done", 0)]),
      maker.change(2, "tasks", "b", [Column("title", "y"), Column("done", 0)]),
      maker.change(3, "tasks", "c", [Column("title", "z"), Column("done", 1)]),
    ])
    return replica
  }

  @discardableResult
  private func finish(_ replica: ReplicaFixture, _ predicate: String = "done = 0") throws -> Int {
    try replica.file.write { try $0.batch("tasks", where: predicate, set: ["done": 1]) }
  }

  private func done(_ replica: ReplicaFixture) throws -> [[Value]] {
    try replica.rows("SELECT id FROM tasks WHERE done = 1 ORDER BY id")
  }

  @Test("a batch that a foreign key rejects names the tables")
  func foreignKeys() throws {
    let replica = try withThree()
    try replica.run(
      """
      CREATE TABLE notes(id TEXT PRIMARY KEY, task TEXT REFERENCES tasks(id));
      INSERT INTO notes VALUES ('n', 'b')
      """)
    try replica.file.track(["notes"])
    let deleted = #expect(throws: ReplicaError.self) {
      try replica.file.write { try $0.batchDelete("tasks", where: "done = 0") }
    }
    #expect(try #require(deleted).description.contains("rows of notes refer to a row of tasks"))
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[3]])
    let moved = #expect(throws: ReplicaError.self) {
      try replica.file.write { try $0.batch("notes", where: "id = 'n'", set: ["task": "none"]) }
    }
    #expect(try #require(moved).description.contains("in notes, task refers to tasks"))
  }

  // MARK: Recording

  @Test("a batch is one pending operation, and its effect is visible at once")
  func recorded() throws {
    let replica = try withThree()
    #expect(try finish(replica) == 2)
    #expect(try done(replica) == [["a"], ["b"], ["c"]])
    let pending = try replica.pending
    #expect(pending.map(\.kind) == [.batch])
    #expect(pending[0].key == RecordKey(table: "tasks", record: ""))
    #expect(pending[0].columns == [Column("done", 1)])
    #expect(pending[0].batch == Batch(.set, where: .compare(.column("done"), .equal, 0)))
    #expect(pending[0].base == 3)
    let packet = try replica.freeze()[0]
    #expect(try Packet(decoding: packet.encoded(), limits: .standard) == packet)
  }

  @Test("a batch uses the table's own names, in any case, and its key column for the record")
  func names() throws {
    let replica = try withThree()
    _ = try replica.file.write {
      try $0.batch("TASKS", where: "ID = 'a' and DONE = 0", set: ["Title": "new"])
    }
    let operation = try replica.pending[0]
    #expect(operation.key.table == "tasks")
    #expect(operation.columns == [Column("title", "new")])
    #expect(
      operation.batch?.predicate
        == .and([.compare(.record, .equal, "a"), .compare(.column("done"), .equal, 0)]))
    #expect(try replica.rows("SELECT title FROM tasks WHERE id = 'a'") == [["new"]])
  }

  @Test("a batch that deletes removes its rows, and the table's own trigger records nothing")
  func deleting() throws {
    let replica = try withThree()
    #expect(try replica.file.write { try $0.batchDelete("tasks", where: "done = 0") } == 2)
    #expect(try replica.rows("SELECT id FROM tasks") == [["c"]])
    #expect(try replica.pending.map(\.kind) == [.batch])
  }

  @Test("changes of other rows, by a batch's foreign keys or triggers, are recorded")
  func alongWith() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE lists(id TEXT PRIMARY KEY, parent TEXT REFERENCES lists(id) ON DELETE CASCADE,
        n INTEGER, changed INTEGER DEFAULT 0);
      CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE);
      CREATE TRIGGER stamp AFTER UPDATE OF n ON lists
        BEGIN UPDATE lists SET changed = changed + 1 WHERE id = NEW.id; END
      """)
    try replica.file.track(["lists", "items"])
    try replica.apply([
      maker.change(1, "lists", "a", [Column("n", 1)]),
      maker.change(2, "lists", "b", [Column("n", 2), Column("parent", "a")]),
      maker.change(3, "items", "i", [Column("list", "b")]),
    ])
    _ = try replica.file.write { try $0.batch("lists", where: "n = 2", set: ["n": 3]) }
    #expect(try replica.pending.map { "\($0.kind) \($0.key.record)" } == ["batch ", "update b"])
    #expect(try replica.pending[1].columns == [Column("changed", 1)])
    _ = try replica.file.write { try $0.batchDelete("lists", where: "n = 1") }
    let added = try replica.pending.dropFirst(2).map { "\($0.kind) \($0.key.record)" }
    #expect(added.first == "batch ")
    #expect(Set(added.dropFirst()) == ["delete b", "delete i"])
  }

  @Test(
    "an invalid batch is refused with the reason and changes nothing",
    arguments: [
      ("tasks", "due = 1", ["done": 1], "table tasks has no column due; it has id, title, done"),
      ("tasks", "true", ["due": 1], "table tasks has no column due; it has id, title, done"),
      ("tasks", "true", ["id": "x"], "a record's key id cannot be set"),
      ("tasks", "true", [:], "a batch sets at least one column"),
      ("tasks", "true", ["done": 1, "DONE": 2], "column done is set twice"),
      (
        "tasks", "done =", ["done": 1],
        "the predicate cannot be read: a value was expected, not the end (at character 7)"
      ),
      ("others", "true", ["n": 1], "table others is not tracked"),
    ] as [(Name, String, [Name: Value], String)])
  func refused(table: Name, predicate: String, columns: [Name: Value], reason: String) throws {
    let replica = try withThree()
    try replica.run("CREATE TABLE others(id TEXT PRIMARY KEY, n)")
    #expect(throws: ReplicaError.invalidBatch(reason)) {
      try replica.file.write { try $0.batch(table, where: predicate, set: columns) }
    }
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT count(*) FROM ferry_batch_rows") == [[0]])
  }

  @Test("a batch is rolled back whole if the table rejects its values")
  func constraint() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5))")
    try replica.file.track(["t"])
    try replica.apply([maker.change(1, "t", "a", [Column("n", 1)])])
    #expect(throws: ReplicaError.self) {
      try replica.file.write { try $0.batch("t", where: "true", set: ["n": 9]) }
    }
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT n FROM t") == [[1]])
    try replica.run("UPDATE t SET n = 2")
    #expect(try replica.pending.map(\.kind) == [.update])
  }

  // MARK: Merging

  @Test("operations on one record are not merged across a batch on their table")
  func notMergedAcross() throws {
    let replica = try withThree()
    try replica.run("CREATE TABLE others(id TEXT PRIMARY KEY, n)")
    try replica.file.track(["others"])
    try replica.run("INSERT INTO tasks(id, done) VALUES ('d', 0), ('e', 0)")
    try replica.run("INSERT INTO others VALUES ('o', 1)")
    try finish(replica)
    try replica.run("UPDATE tasks SET done = 0 WHERE id = 'd'")
    try replica.run("UPDATE tasks SET title = 't' WHERE id = 'd'")
    try replica.run("DELETE FROM tasks WHERE id = 'e'")
    try replica.run("UPDATE others SET n = 2")
    let sent = try replica.freeze().flatMap(\.operations).map { "\($0.kind) \($0.key.record)" }
    #expect(
      sent == ["insert d", "insert e", "batch ", "update d", "delete e", "insert o"])
  }

  // MARK: While it is pending

  @Test("a pending batch shields its columns on the rows that it changed, and no others")
  func shields() throws {
    let replica = try withThree()
    try finish(replica)
    let earlier = replica.clock.now - 1
    try replica.apply([
      maker.change(
        4, "tasks", "a", [Column("done", 5), Column("title", "theirs")], inserts: false,
        at: earlier),
      maker.change(5, "tasks", "c", [Column("done", 6)], inserts: false, at: earlier),
    ])
    #expect(
      try replica.rows("SELECT title, done FROM tasks WHERE id <> 'b' ORDER BY id")
        == [["theirs", 1], ["z", 6]])
  }

  @Test("a later edit by another device wins over a pending batch")
  func laterEdit() throws {
    let replica = try withThree()
    try finish(replica)
    try replica.apply([
      maker.change(
        4, "tasks", "a", [Column("done", 5)], inserts: false,
        at: replica.clock.now + 1_000)
    ])
    #expect(try replica.rows("SELECT done FROM tasks WHERE id = 'a'") == [[5]])
  }

  @Test("a row that a pending batch deleted does not return with an older page")
  func deletedStaysAway() throws {
    let replica = try withThree()
    _ = try replica.file.write { try $0.batchDelete("tasks", where: "id = 'a'") }
    try replica.apply([
      maker.change(
        4, "tasks", "a", [Column("title", "theirs")], inserts: false,
        at: replica.clock.now - 1)
    ])
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["b"], ["c"]])
  }

  @Test("own edits before and after a pending batch keep their order")
  func ownEdits() throws {
    let replica = try withThree()
    try replica.run("UPDATE tasks SET done = 0, title = 'mine' WHERE id = 'a'")
    try finish(replica)
    try replica.run("UPDATE tasks SET done = 2 WHERE id = 'b'")
    let earlier = replica.clock.now - 1
    try replica.apply([
      maker.change(4, "tasks", "a", [Column("title", "t"), Column("done", 8)], at: earlier),
      maker.change(5, "tasks", "b", [Column("title", "t"), Column("done", 8)], at: earlier),
    ])
    #expect(
      try replica.rows("SELECT title, done FROM tasks WHERE id < 'c' ORDER BY id")
        == [["mine", 1], ["t", 2]])
  }

  // MARK: After it was confirmed

  @Test("a confirmed batch does not move the cursor, and its rows are fetched again")
  func confirmed() throws {
    let replica = try withThree()
    try finish(replica)
    let packet = try replica.freeze()[0]
    let receipt = PacketReceipt(
      tail: try #require(packet.tail), status: .applied, sequences: 4...5,
      outcomes: [Outcome(records: 1)])
    _ = try replica.file.chain.receive(
      PacketAnswer(receipt: receipt, epoch: maker.epoch, head: 5, serverTime: 0))
    #expect(try replica.file.syncState().applied == 3)
    #expect(try replica.file.queue.count() == 0)
    #expect(try replica.rows("SELECT record FROM ferry_refresh ORDER BY 1") == [["a"], ["b"]])
    #expect(try replica.rows("SELECT count(*) FROM ferry_batch_rows") == [[0]])
    // The server had b in another state: the server's value of b counts now, older as it is.
    try replica.apply([
      maker.change(5, "tasks", "a", [Column("done", 1)], inserts: false, at: replica.clock.now),
      maker.change(5, "tasks", "b", [Column("title", "y"), Column("done", 3)], at: 1),
    ])
    #expect(try replica.rows("SELECT done FROM tasks ORDER BY id") == [[1], [3], [1]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("after a lost answer the next page confirms a batch, and its rows are noted")
  func confirmedByPage() throws {
    let replica = try withThree()
    try finish(replica)
    let packet = try replica.freeze()[0]
    try replica.apply([], head: 6, tail: packet.tail)
    #expect(try replica.rows("SELECT record FROM ferry_refresh ORDER BY 1") == [["a"], ["b"]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("the rows of a batch that leaves the queue are fetched again")
  func withdrawn() throws {
    let replica = try withThree()
    try finish(replica)
    try replica.file.connection.execute("DELETE FROM ferry_operations")
    try replica.apply([
      maker.change(4, "tasks", "a", [Column("done", 4)], inserts: false, at: 1)
    ])
    #expect(try replica.rows("SELECT done FROM tasks WHERE id = 'a'") == [[4]])
    #expect(try replica.rows("SELECT record FROM ferry_refresh ORDER BY 1") == [["a"], ["b"]])
  }

  /// Refuses the first batch of the first packet, and names a record as servers do.
  private func refuse(_ replica: ReplicaFixture, naming record: Name) throws {
    let batch = try #require(try replica.freeze()[0].operations.first { $0.kind == .batch })
    let number = try #require(try replica.file.packets.open().first).number
    let refusal = Refusal(
      operation: batch.id, code: .uniqueTaken, detail: "taken", table: "tasks", record: record)
    #expect(try replica.file.refusedOperations.remove(from: number, [refusal]) == 1)
  }

  @Test(
    "the rows of a refused batch are fetched again and not shielded",
    arguments: ["", "b"] as [Name])
  func refusedByServer(naming record: Name) throws {
    let replica = try withThree()
    try finish(replica)
    try refuse(replica, naming: record)
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT count(*) FROM ferry_batch_rows") == [[0]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["a", "b"])
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(entry.code == .uniqueTaken)
    #expect(entry.refused == entry.operations.map(\.id))
    try replica.apply([
      maker.change(4, "tasks", "a", [Column("title", "x"), Column("done", 0)]),
      maker.change(5, "tasks", "b", [Column("title", "y"), Column("done", 0)]),
    ])
    #expect(try done(replica) == [["c"]])
    #expect(try replica.file.quarantineAnswers.discard(entry.number))
  }

  @Test("a refused batch takes no other batch and no edit of its packet along")
  func refusedAlone() throws {
    let replica = try withThree()
    try finish(replica, "id = 'a'")
    try finish(replica, "id = 'b'")
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    try refuse(replica, naming: "a")
    #expect(try replica.pending.map(\.kind) == [.batch, .update])
    #expect(try replica.rows("SELECT record FROM ferry_batch_rows") == [["b"]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["a"])
  }

  @Test("a rejected delete has no values to change", arguments: [false, true])
  func editedDelete(isBatch: Bool) throws {
    let replica = try withThree()
    _ = try replica.file.write {
      if isBatch {
        _ = try $0.batchDelete("tasks", where: "id = 'a'")
      } else {
        try $0.execute("DELETE FROM tasks WHERE id = 'a'")
      }
    }
    let operation = try #require(try replica.freeze().first?.operations.first)
    let refusal = Refusal(
      operation: operation.id, code: .forbiddenTable, detail: "no", table: "tasks",
      record: operation.key.record)
    let number = try #require(try replica.file.packets.open().first).number
    #expect(try replica.file.refusedOperations.remove(from: number, [refusal]) == 1)
    try replica.apply([maker.change(4, "tasks", "a", [Column("title", "x"), Column("done", 0)])])
    let entry = try #require(try replica.file.quarantine.oldest(1).first)
    let error = #expect(throws: ReplicaError.self) {
      try replica.file.quarantineAnswers.retry(entry.number, changing: [Column("title", "y")])
    }
    #expect(error?.description.contains("has no values to change") == true)
    #expect(try replica.file.quarantine.oldest(9) == [entry])
    try replica.file.quarantineAnswers.retry(entry.number, changing: [])
    #expect(try replica.pending.map(\.kind) == [isBatch ? .batch : .delete])
  }

  @Test("a refused batch leaves with all packets of its transaction, and with no other one")
  func refusedInSeveralPackets() throws {
    var limits = Limits.standard
    limits.operationsPerPacket = 2
    let replica = try withThree(limits: limits)
    try replica.run("UPDATE tasks SET title = 'before' WHERE id = 'c'")
    try replica.file.write { database in
      try database.execute("INSERT INTO tasks(id) VALUES ('d'), ('e'), ('f')")
      _ = try database.batch("tasks", where: "done = 0", set: ["done": 1])
      try database.execute("INSERT INTO tasks(id) VALUES ('g')")
    }
    try replica.run("UPDATE tasks SET title = 'after' WHERE id = 'c'")
    let packets = try replica.freeze()
    #expect(packets.count(where: \.continues) == 2)
    let index = try #require(packets.firstIndex { $0.operations.contains { $0.kind == .batch } })
    let batch = try #require(packets[index].operations.first { $0.kind == .batch })
    let refusal = Refusal(
      operation: batch.id, code: .uniqueTaken, detail: "taken", table: "tasks", record: "a")
    let number = try replica.file.packets.open()[index].number
    #expect(try replica.file.refusedOperations.remove(from: number, [refusal]) == 5)
    #expect(
      try replica.pending.map(\.columns) == [
        [Column("title", "before")], [Column("title", "after")],
      ])
    #expect(try replica.freeze().allSatisfy { !$0.continues })
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(entry.refused == [batch.id] && entry.operations.count == 5)
    #expect(
      try replica.file.refreshes.next().map(\.record) == ["a", "b", "d", "e", "f", "g"])
  }

  @Test("a batch counts towards its transaction's limit of bytes")
  func sizes() throws {
    let replica = try withThree()
    let large = Value.text(String(repeating: "x", count: 1_000_000))
    #expect(throws: ReplicaError.self) {
      try replica.file.write { database in
        for _ in 0..<20 { try database.batch("tasks", where: "true", set: ["title": large]) }
      }
    }
    #expect(try replica.pending.isEmpty)
  }
}
