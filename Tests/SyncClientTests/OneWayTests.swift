import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Tables whose changes are sent and do not come back (SPEC.md §17).
@Suite("One-way tables", .hangLimit)
struct OneWayTests {
  let maker = PageMaker()

  /// Returns an upload-only table of messages beside a two-way one of tasks.
  func outbox(automatic: Bool = false) throws -> ReplicaFixture {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("CREATE TABLE messages(id TEXT PRIMARY KEY, body TEXT)")
    try replica.file.track(["messages"], direction: .uploadOnly(automatic: automatic))
    return replica
  }

  func states(_ replica: ReplicaFixture) throws -> [String] {
    try replica.file.failedUploads.states(of: nil, limit: 100).map { upload in
      let marks = [
        (upload.isDirty, "dirty"), (upload.isDeleted, "deleted"), (upload.isFailed, "failed"),
      ]
      return ([upload.key.record.text] + marks.filter(\.0).map(\.1)).joined(separator: " ")
    }
  }

  /// Fails a sync that cannot reach the server, after it had made packets.
  func fail(_ replica: ReplicaFixture) throws {
    try replica.file.uploads.markFailed(
      through: replica.file.queue.newestOrder(), "no route to host")
  }

  /// Returns the packets of the next sync.
  func sent(_ replica: ReplicaFixture) throws -> [Packet] {
    try replica.file.uploads.prepare()
    return try replica.freeze()
  }

  func confirm(_ packets: [Packet], _ replica: ReplicaFixture) throws {
    var place = try replica.file.syncState().head + 1
    for packet in packets {
      _ = try replica.file.chain.receive(replica.receipt(packet, first: place))
      place += SequenceNumber(packet.operations.count)
    }
  }

  func refuse(
    _ packet: Packet, _ record: Name, _ replica: ReplicaFixture, table: Name = "messages"
  ) throws {
    let operation = try #require(packet.operations.first { $0.key.record == record })
    let number = try #require(try replica.file.packets.open().first?.number)
    let refusal = Refusal(
      operation: operation.id, code: .schemaViolation, detail: "too loud", table: table,
      record: record)
    _ = try replica.file.refusedOperations.remove(from: number, [refusal])
  }

  // MARK: Nothing comes back

  @Test("other devices' changes of an upload-only table are neither applied nor kept")
  func nothingComesBack() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('mine', 'x')")
    let pulled = try replica.apply([
      maker.change(1, "messages", "theirs", [Column("body", "y"), Column("unknown", 1)]),
      maker.deletion(2, "messages", "mine"),
      maker.change(3, "tasks", "t", [Column("title", "z")]),
    ])
    #expect(pulled.applied == 1)
    #expect(try replica.rows("SELECT id FROM messages") == [["mine"]])
    #expect(try replica.rows("SELECT id FROM tasks") == [["t"]])
    #expect(try replica.file.reports.status().toApply == 0)
    #expect(try replica.file.syncState().applied == 3)
  }

  @Test("a pull from scratch keeps the rows of an upload-only table")
  func replacement() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x'); INSERT INTO tasks(id) VALUES ('t')")
    try confirm(sent(replica), replica)
    try ReplacingPull(replica.file).begin(Problem(.cursorExpired, "old"))
    try replica.apply([], head: 9)
    #expect(try replica.rows("SELECT id FROM messages") == [["a"]])
    #expect(try replica.rows("SELECT id FROM tasks").isEmpty)
  }

  @Test("rows of an upload-only table that a server lost are re-uploaded, but not failed ones")
  func rescue() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('kept', 'x')")
    try replica.run("INSERT INTO messages VALUES ('lost', 'x')")
    try confirm(sent(replica), replica)
    try replica.apply([], head: 2)
    try replica.file.queue.storeNewestOrder()
    try replica.file.connection.execute("DELETE FROM ferry_operations WHERE state = 1")
    try replica.run("INSERT INTO messages VALUES ('failed', 'x')")
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply([maker.change(1, "messages", "kept", [])], head: 1)
    #expect(try replica.pending.map(\.key.record) == ["lost"])
    #expect(try states(replica) == ["failed dirty failed", "lost dirty"])
  }

  // MARK: States

  @Test("a change is dirty until its own operation is acknowledged")
  func dirty() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try replica.run("INSERT INTO messages VALUES ('b', 'x')")
    #expect(try states(replica) == ["a dirty", "b dirty"])
    let first = try sent(replica)
    try replica.run("UPDATE messages SET body = 'edited meanwhile' WHERE id = 'b'")
    try confirm(first, replica)
    #expect(try states(replica) == ["b dirty"])
    let edit = try #require(try replica.pending.last)
    #expect(
      try replica.file.failedUploads.states(of: "messages", limit: 1).map(\.identifier) == [edit.id]
    )
    try confirm(sent(replica), replica)
    #expect(try states(replica).isEmpty)
    #expect(try replica.file.failedUploads.states(of: "tasks", limit: 9).isEmpty)
  }

  @Test("a deleted record is listed until its delete is acknowledged")
  func deleted() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try confirm(sent(replica), replica)
    try replica.run("DELETE FROM messages")
    #expect(try states(replica) == ["a deleted"])
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    #expect(try states(replica) == ["a deleted failed"])
    _ = try replica.file.uploads.retry(table: nil, record: nil)
    try confirm(sent(replica), replica)
    #expect(try states(replica).isEmpty)
  }

  @Test("rows that a batch changed are dirty until the batch is acknowledged")
  func batch() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try confirm(sent(replica), replica)
    _ = try replica.file.write {
      try $0.batchDelete("messages", where: .compare(.column("body"), .equal, "x"))
    }
    #expect(try states(replica) == ["a deleted"])
    try confirm(sent(replica), replica)
    #expect(try states(replica).isEmpty)
  }

  // MARK: Failing and trying again

  @Test("failed changes are not sent again, and everything else of their packet is")
  func withdrawn() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO tasks(id) VALUES ('one')")
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    let lost = try sent(replica)
    try fail(replica)
    try replica.run("INSERT INTO tasks(id) VALUES ('two')")
    try replica.reopen()
    #expect(try states(replica) == ["a dirty failed"])
    try replica.apply([], head: 0)
    let again = try sent(replica)
    #expect(again.map { $0.operations.map(\.key.record) } == [["one"], ["two"]])
    #expect(again[0].operations[0] == lost[0].operations[0])
    #expect(again.map(\.dependency) == [nil, again[0].tail])
    #expect(try states(replica) == ["a dirty failed"])
    #expect(try replica.file.reports.status().unsent == 1)
    #expect(try replica.file.reports.status().pending == 2)
  }

  @Test("a change that arrived in spite of a failure is confirmed by the next pull")
  func answerLost() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    let packet = try sent(replica)[0]
    try fail(replica)
    #expect(try states(replica) == ["a dirty failed"])
    try replica.apply([], head: 1, tail: packet.tail)
    #expect(try sent(replica).isEmpty)
    #expect(try states(replica).isEmpty)
    #expect(try !replica.file.failedUploads.hasMarks())
  }

  @Test("a retry before the next contact with the server sends the same packet")
  func samePacket() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    let packet = try sent(replica)
    try fail(replica)
    #expect(try replica.file.uploads.retry(table: "messages", record: "a") == 1)
    #expect(try states(replica) == ["a dirty"])
    #expect(try sent(replica) == packet)
  }

  @Test("a retried operation at the queue's end does not set the clock back")
  func clock() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    replica.clock.now += 1_000
    try replica.run("INSERT INTO tasks(id) VALUES ('later')")
    let later = try #require(try replica.pending.last?.time)
    #expect(try replica.file.uploads.retry(table: "messages", record: "a") == 1)
    #expect(try replica.pending.map(\.key.record) == ["later", "a"])
    let stored = try replica.rows("SELECT clock FROM ferry_replica")
    #expect(stored == [[.integer(Int64(bitPattern: later.rawValue))]])
  }

  @Test("a retried operation goes to the queue's end")
  func queueEnd() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    try replica.run("INSERT INTO tasks(id) VALUES ('b')")
    #expect(try replica.file.uploads.retry(table: "messages", record: "a") == 1)
    #expect(try sent(replica).flatMap(\.operations).map(\.key.record) == ["b", "a"])
  }

  @Test("retried operations keep their identifiers and times, and new ones are later")
  func sameIdentifiers() throws {
    let replica = try outbox()
    for record in ["a", "b"] {
      try replica.run("INSERT INTO messages VALUES (?, 'x')", [.text(record)])
    }
    let made = try replica.pending
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    try replica.run("INSERT INTO tasks(id) VALUES ('t')")
    #expect(try replica.file.uploads.retry(table: "messages", record: "b") == 1)
    try replica.run("INSERT INTO tasks(id) VALUES ('u')")
    let pending = try replica.pending
    #expect(pending.map(\.key.record) == ["t", "b", "u"])
    #expect(pending[1] == made[1])
    #expect(pending[0].time > made[1].time && pending[2].time > pending[0].time)
    #expect(try replica.file.uploads.retry(table: "messages", record: nil) == 1)
    #expect(try replica.file.uploads.retry(table: nil, record: nil) == 0)
    #expect(throws: ReplicaError.self) {
      try replica.file.uploads.retry(table: "messages", record: "a")
    }
  }

  @Test("a transaction fails and is retried whole, with later changes of its records")
  func wholeTransaction() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x'), ('b', 'x')")
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    try replica.run("UPDATE messages SET body = 'y' WHERE id = 'b'")
    #expect(try sent(replica).isEmpty)
    #expect(try states(replica) == ["a dirty failed", "b dirty failed"])
    #expect(try replica.file.uploads.retry(table: "messages", record: "a") == 2)
    let packet = try #require(try sent(replica).first)
    #expect(packet.operations.map(\.key.record) == ["a", "b"])
    #expect(packet.operations[1].columns == [Column("body", "y")])
  }

  @Test("a transaction that also writes to a two-way or automatic table stays in the queue")
  func mixedTransaction() throws {
    let replica = try outbox()
    try replica.run("CREATE TABLE receipts(id TEXT PRIMARY KEY)")
    try replica.file.track(["receipts"], direction: .uploadOnly(automatic: true))
    try replica.run("INSERT INTO messages VALUES ('a', 'x'); INSERT INTO tasks(id) VALUES ('t')")
    try replica.run("INSERT INTO messages VALUES ('b', 'x'); INSERT INTO receipts VALUES ('r')")
    try replica.file.write { database in
      try database.execute("INSERT INTO messages VALUES ('c', 'x')")
      try database.execute("INSERT INTO tasks(id) VALUES ('u')")
    }
    try fail(replica)
    #expect(try sent(replica).flatMap(\.operations).count == 6)
    #expect(try replica.file.reports.status().unsent == 0)
  }

  @Test("failed changes of an automatic table are not marked, and go with the next sync")
  func automatic() throws {
    let replica = try outbox(automatic: true)
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    let packet = try sent(replica)
    try fail(replica)
    #expect(try states(replica) == ["a dirty"])
    #expect(try sent(replica) == packet)
  }

  @Test("changes written after a sync began are not marked by its failure")
  func writtenMeanwhile() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    let newest = try replica.file.queue.newestOrder()
    try replica.run("INSERT INTO messages VALUES ('b', 'x')")
    try replica.file.uploads.markFailed(through: newest, "gone")
    #expect(try states(replica) == ["a dirty failed", "b dirty"])
  }

  @Test("a packet of failed changes only is withdrawn, and the chain continues without it")
  func wholePacketWithdrawn() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO tasks(id) VALUES ('one')")
    _ = try sent(replica)
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    _ = try sent(replica)
    try replica.run("INSERT INTO tasks(id) VALUES ('two')")
    let lost = try sent(replica)
    #expect(lost.count == 3)
    try fail(replica)
    let left = try sent(replica)
    #expect(left.map(\.tail) == [lost[0].tail, lost[2].tail])
    #expect(left.map(\.dependency) == [nil, lost[0].tail])
    try replica.run("INSERT INTO tasks(id) VALUES ('three')")
    #expect(try sent(replica).last?.dependency == lost[2].tail)
  }

  @Test("an insert that may have arrived and its delete are sent as the delete")
  func deleteOfFailed() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    _ = try sent(replica)
    try fail(replica)
    try replica.run("DELETE FROM messages")
    #expect(try sent(replica).isEmpty)
    #expect(try states(replica) == ["a dirty deleted failed"])
    _ = try replica.file.uploads.retry(table: "messages", record: "a")
    #expect(try sent(replica).flatMap(\.operations).map(\.kind) == [.delete])
  }

  @Test("a retried delete behind a later write of its record does not change that write")
  func outOfOrder() {
    func operation(_ time: Int64, _ kind: OperationKind) -> SyncOperation {
      let time = HybridTimestamp(milliseconds: time)
      return SyncOperation(
        id: OperationID(UniqueID(timestamp: time, random: 1)),
        key: RecordKey(table: "t", record: "r"), kind: kind, time: time,
        columns: [Column("a", 1)], base: 0)
    }
    var merger = OperationMerger()
    for next in [operation(2, .insert), operation(1, .delete)] {
      merger.add(next, isConcurrent: true)
    }
    #expect(merger.operations.map(\.kind) == [.insert, .delete])
  }

  // MARK: Refused

  @Test("a table that becomes two-way is pulled from the start, and its failed changes are sent")
  func becomesTwoWay() throws {
    let replica = try outbox()
    let theirs = maker.change(1, "messages", "theirs", [Column("body", "y")])
    try replica.apply([theirs], head: 5)
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    try replica.file.track(["messages"])
    #expect(try replica.file.tables.tracked.hasReturning())
    try replica.file.directions.beginReturns()
    #expect(try replica.file.syncState().applied == 0)
    try replica.apply([theirs], head: 5)
    #expect(try replica.rows("SELECT id FROM messages ORDER BY id") == [["a"], ["theirs"]])
    #expect(try sent(replica).flatMap(\.operations).map(\.key.record) == ["a"])
    #expect(try states(replica).isEmpty)
  }

  @Test("a table that becomes upload-only drops its deferred changes")
  func becomesUploadOnly() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5))")
    try replica.file.track(["t"])
    try replica.apply([
      maker.change(1, "t", "a", [Column("n", 9)]), maker.change(2, "t", "b", [Column("n", 1)]),
    ])
    #expect(try replica.file.reports.status().toApply == 1)
    try replica.file.track(["t"], direction: .uploadOnly(automatic: false))
    #expect(try replica.file.reports.status().toApply == 0)
    try replica.apply([maker.change(3, "t", "a", [Column("n", 2)])])
    #expect(try replica.rows("SELECT id FROM t") == [["b"]])
  }

  @Test(
    "failed changes are sent when their table becomes automatic or is untracked",
    arguments: [true, false])
  func released(isUntracked: Bool) throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x')")
    try fail(replica)
    #expect(try sent(replica).isEmpty)
    if isUntracked {
      try replica.file.tracking.untrack("messages")
    } else {
      try replica.file.track(["messages"], direction: .uploadOnly(automatic: true))
    }
    #expect(try sent(replica).flatMap(\.operations).map(\.key.record) == ["a"])
  }
}
