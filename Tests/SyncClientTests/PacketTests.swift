import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Merging and cutting packets", .hangLimit)
struct PacketTests {
  private func operation(
    _ number: UInt64, _ kind: OperationKind, _ record: String = "r", _ columns: [Column] = []
  ) -> SyncOperation {
    let time = HybridTimestamp(rawValue: number << 16)
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: 1)),
      key: RecordKey(table: "t", record: record), kind: kind, time: time, columns: columns,
      base: SequenceNumber(number))
  }

  private func merged(_ operations: [SyncOperation], isConcurrent: Bool = false) -> [SyncOperation]
  {
    var merger = OperationMerger()
    for operation in operations { merger.add(operation, isConcurrent: isConcurrent) }
    #expect(merger.count == merger.operations.count)
    return merger.operations
  }

  @Test("operations on one record merge into as few as have the same meaning")
  func mergeTable() {
    let table: [([OperationKind], [OperationKind])] = [
      ([.insert, .update], [.insert]), ([.update, .update, .update], [.update]),
      ([.insert, .delete], []), ([.insert, .update, .delete], []), ([.update, .delete], [.delete]),
      ([.delete, .insert], [.delete, .insert]), ([.delete, .insert, .update], [.delete, .insert]),
      ([.delete, .insert, .delete], [.delete]), ([.insert, .delete, .insert], [.insert]),
    ]
    for (kinds, expected) in table {
      let operations = kinds.enumerated().map { operation(UInt64($0 + 1), $1) }
      #expect(merged(operations).map(\.kind) == expected, "\(kinds)")
    }
  }

  @Test("an insert and its delete merge into a delete if the server has reported the record")
  func mergeMet() {
    let table: [([OperationKind], [OperationKind])] = [
      ([.insert, .delete], [.delete]), ([.insert, .update, .delete], [.delete]),
      ([.delete, .insert, .delete], [.delete, .delete]), ([.insert, .update], [.insert]),
      ([.insert, .delete, .insert], [.delete, .insert]),
    ]
    for (kinds, expected) in table {
      let operations = kinds.enumerated().map { operation(UInt64($0 + 1), $1) }
      #expect(merged(operations, isConcurrent: true).map(\.kind) == expected, "\(kinds)")
    }
  }

  @Test("a re-uploaded row merges into a later write to it, with earlier times")
  func mergedRescue() {
    let update = operation(9, .update, "r", [Column("a", 9)])
    let other = operation(10, .insert, "s")
    let rescued = operation(1, .insert, "r", [Column("a", 9), Column("b", 1)])
    let result = merged([update, other, rescued])
    #expect(result.map(\.id) == [update.id, other.id])
    #expect(result[0].kind == .insert)
    #expect(Set(result[0].columns.map(\.name)) == ["a", "b"])
    #expect(result[0].time(of: "a") == update.time)
    #expect(result[0].time(of: "b") == rescued.time)
    #expect(result[0].base == 1)
  }

  @Test("a merged operation keeps each column's own time, the later id and the earlier base")
  func mergedTimes() {
    let first = operation(1, .update, "r", [Column("a", 1), Column("b", 1)])
    let second = operation(2, .update, "r", [Column("b", 2)])
    let result = merged([first, second])
    #expect(result.count == 1)
    #expect(result[0].id == second.id)
    #expect(result[0].base == 1)
    #expect(result[0].columns == [Column("a", 1), Column("b", 2)])
    #expect(result[0].time(of: "a") == first.time)
    #expect(result[0].time(of: "b") == second.time)
  }

  @Test("identifiers ascend in a packet, so the tail is the newest operation")
  func ascending() {
    let result = merged([
      operation(1, .insert, "a"), operation(2, .insert, "b"), operation(3, .update, "a"),
    ])
    #expect(result.map(\.key.record) == ["b", "a"])
    #expect(zip(result, result.dropFirst()).allSatisfy { $0.id < $1.id })
  }

  @Test("a transaction is never split between packets that could be applied separately")
  func wholeGroups() throws {
    let replica = try ReplicaFixture.withTasks()
    for group in 0..<3 {
      let values = (0..<600).map { "('g\(group)-\($0)')" }.joined(separator: ",")
      try replica.run("INSERT INTO tasks(id) VALUES \(values)")
    }
    let packets = try replica.freeze()
    #expect(packets.map(\.operations.count) == [600, 600, 600])
    #expect(packets.allSatisfy { !$0.continues })
    #expect(packets[0].dependency == nil)
    #expect(packets[1].dependency == packets[0].tail)
    #expect(packets[2].dependency == packets[1].tail)
  }

  @Test("a transaction larger than a packet is sent in several packets that continue")
  func largeGroup() throws {
    let replica = try ReplicaFixture.withTasks()
    let values = (0..<2_500).map { "('r\($0)')" }.joined(separator: ",")
    try replica.run("INSERT INTO tasks(id) VALUES \(values)")
    try replica.run("INSERT INTO tasks(id) VALUES ('after')")
    let packets = try replica.freeze()
    #expect(packets.map(\.operations.count) == [1_000, 1_000, 500, 1])
    #expect(packets.map(\.continues) == [true, true, false, false])
  }

  @Test("repeated edits of one record are sent as one operation")
  func repeatedEdits() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    for number in 1...5_000 { try replica.run("UPDATE tasks SET done = \(number)") }
    let packets = try replica.freeze()
    #expect(packets.count == 1)
    #expect(packets[0].operations.count == 1)
    #expect(packets[0].operations[0].columns.contains(Column("done", 5_000)))
  }

  @Test("edits that are together too large for one operation stay separate")
  func largeEdits() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, a, b, c, d, e)")
    try replica.file.track(["t"])
    try replica.run("INSERT INTO t(id) VALUES ('r')")
    for name in ["a", "b", "c", "d", "e"] {
      try replica.run("UPDATE t SET \(name) = zeroblob(1000000)")
    }
    let packets = try replica.freeze(limit: 10)
    #expect(packets.allSatisfy { $0.encoded().count <= Limits.standard.messageBytes })
    #expect(
      packets.flatMap(\.operations).allSatisfy { operation in
        operation.columns.reduce(0) { $0 + $1.value.byteCount } <= Limits.standard.operationBytes
      })
    for packet in packets {
      _ = try Packet(decoding: packet.encoded(), limits: .standard)
    }
  }

  @Test("a packet is frozen: later edits do not change its bytes and are new operations")
  func frozen() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks VALUES ('a', 'one', 0)")
    let before = try replica.freeze()[0].encoded()
    try replica.run("UPDATE tasks SET title = 'two'")
    try replica.reopen()
    let packets = try replica.freeze()
    #expect(packets[0].encoded() == before)
    #expect(packets.count == 2)
    _ = try replica.file.chain.receive(replica.receipt(packets[0], first: 1))
    #expect(try replica.pending.map(\.kind).last == .update)
    #expect(try replica.file.queue.count() == 1)
  }

  @Test("operations that cancel each other out are not sent at all")
  func cancelledOut() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    try replica.run("DELETE FROM tasks")
    #expect(try replica.freeze().isEmpty)
    #expect(try replica.file.queue.count() == 0)
  }

  @Test("no operation gets the place of a removed one, also within one transaction")
  func placesOfRemoved() throws {
    let replica = try ReplicaFixture.withTasks()
    func newest() throws -> Value? {
      try replica.rows("SELECT max(seq) FROM ferry_operations").first?.first
    }
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    try replica.run("DELETE FROM tasks")
    #expect(try replica.freeze().isEmpty)
    try replica.run("INSERT INTO tasks(id) VALUES ('b')")
    #expect(try newest() == .integer(3))
    _ = try replica.file.write { database in
      try database.execute("SAVEPOINT one")
      try database.execute("INSERT INTO tasks(id) VALUES ('c')")
      try replica.file.queue.forget(1...9)
      try database.execute("INSERT INTO tasks(id) VALUES ('d')")
    }
    #expect(try newest() == .integer(5))
  }

  @Test("own packets that follow the cursor move it, so they are not pulled")
  func advancesOverOwn() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 10)
    for name in ["a", "b", "c"] {
      try replica.run("INSERT INTO tasks(id) VALUES ('\(name)')")
      try replica.file.chain.freeze(limit: 10)
    }
    let packets = try replica.freeze()
    #expect(packets.count == 3)
    _ = try replica.file.chain.receive(replica.receipt(packets[1], first: 12))
    #expect(try replica.file.syncState().applied == 10)
    _ = try replica.file.chain.receive(replica.receipt(packets[0], first: 11))
    #expect(try replica.file.syncState().applied == 12)
    // Another device's change is between: the rest has to be pulled.
    _ = try replica.file.chain.receive(replica.receipt(packets[2], first: 14))
    #expect(try replica.file.syncState().applied == 12)
    #expect(try replica.file.queue.count() == 0)
    #expect(try replica.pending.map(\.key.record) == ["c"])
  }

  @Test("an own packet is pulled if other devices wrote its records meanwhile")
  func metIsPulled() throws {
    for isFrozen in [false, true] {
      let replica = try ReplicaFixture.withTasks()
      try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
      if isFrozen { _ = try replica.freeze() }
      try replica.apply([PageMaker().change(1, "tasks", "a", [Column("title", "theirs")])])
      let packet = try replica.freeze()[0]
      _ = try replica.file.chain.receive(replica.receipt(packet, first: 2))
      #expect(try replica.file.syncState().applied == 1)
      #expect(try replica.pending.map(\.kind) == [.insert])
    }
  }

  @Test("an overruled operation does not count as the server's state")
  func overruledIsPulled() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 1)
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    let packet = try replica.freeze()[0]
    let stamp = Stamp(time: .zero, device: packet.device)
    let lost = Outcome(
      conflicts: [Conflict(column: "title", lost: "x", loser: stamp, winner: stamp)],
      isOverruled: true)
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 2, outcomes: [lost]))
    #expect(try replica.file.syncState().applied == 1)
    let noted = try replica.file.conflicts.newest(10, own: replica.file.ownNames())
    #expect(noted.map(\.conflict.lost) == ["x"])
  }

  @Test("a record is fetched if the server overruled an operation on it without a conflict")
  func unexplained() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a'), ('b')")
    let packet = try replica.freeze()[0]
    let outcomes = [Outcome(), Outcome(isOverruled: true)]
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 1, outcomes: outcomes))
    #expect(try replica.file.refreshes.next() == [RecordKey(table: "tasks", record: "b")])
  }

  @Test("a row that this device alone may have is not fetched, and stays")
  func unrecorded() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    let packet = try replica.freeze()[0]
    try replica.file.unrecordedWrites.mark("tasks")
    _ = try replica.file.chain.receive(
      replica.receipt(packet, first: 1, outcomes: [Outcome(isOverruled: true)]))
    #expect(try replica.file.refreshes.isEmpty())
  }

  @Test("the next pull replaces a lost acknowledgement")
  func lostAnswer() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    let packet = try replica.freeze()[0]
    try replica.run("UPDATE tasks SET title = 'later'")
    try replica.apply(
      [PageMaker().change(1, "tasks", "a", [Column("title", nil)])], tail: packet.tail)
    #expect(try replica.pending.map(\.kind) == [.update])
    #expect(try replica.rows("SELECT title FROM tasks") == [["later"]])
    #expect(try replica.freeze()[0].dependency == packet.tail)
  }

  @Test("a copied replica takes a new name and sends only its unconfirmed operations again")
  func newIdentity() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    let first = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(first, first: 1))
    try replica.run("INSERT INTO tasks(id) VALUES ('b')")
    let second = try replica.freeze()[0]
    try replica.file.chain.renewIdentity()
    let again = try replica.freeze()
    #expect(again.map { $0.operations.map(\.id) } == [second.operations.map(\.id)])
    #expect(again[0].device != second.device)
    #expect(again[0].dependency == nil)
  }

  @Test("a delete that hides a remote write is sent, even under a new name")
  func newIdentitySendsDelete() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
    _ = try replica.freeze()
    try replica.run("DELETE FROM tasks")
    try replica.apply([PageMaker().change(1, "tasks", "a", [Column("title", "theirs")])])
    #expect(try replica.rows("SELECT id FROM tasks").isEmpty)
    try replica.file.chain.renewIdentity()
    #expect(try replica.freeze().flatMap(\.operations).map(\.kind) == [.insert, .delete])
  }

  @Test("operations that a copy has already sent shield nothing: the cursor goes back to them")
  func sentByCopy() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 5)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'mine')")
    let packet = try replica.freeze()[0]
    // The copy's insert took place 6, clamped since this clock is ahead; a later edit took 7.
    let later = PageMaker().change(7, "tasks", "a", [Column("title", "theirs")])
    try replica.apply([later], head: 7)
    #expect(try replica.rows("SELECT title FROM tasks") == [["mine"]])
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 6, status: .duplicate))
    #expect(try replica.file.syncState().applied == 5)
    try replica.apply([later], head: 7)
    #expect(try replica.rows("SELECT title FROM tasks") == [["theirs"]])
    #expect(try replica.pending.isEmpty)
  }
}
