import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A replica whose page shows a restore from a backup, of the server or of the replica itself.
@Suite("Servers and replicas restored from a backup", .hangLimit)
struct SetBackTests {
  private let maker = PageMaker()

  /// Returns a replica with two confirmed packets, the first of them behind the cursor.
  func confirmed() throws -> (ReplicaFixture, [Packet]) {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    let first = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(first, first: 1))
    try replica.run("INSERT INTO tasks(id, title) VALUES ('b', 'two')")
    let second = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(second, first: 3))
    return (replica, [first, second])
  }

  @Test("packets after the tail that a page names are sent again, unchanged except for their base")
  func tailWentBack() throws {
    let (replica, packets) = try confirmed()
    #expect(try replica.pending.map(\.key.record) == ["b"])
    try replica.apply([], head: 1, tail: packets[0].tail)
    let again = try replica.freeze()
    #expect(again.map(\.tail) == [packets[1].tail])
    #expect(again.map(\.dependency) == [packets[0].tail])
    #expect(again.flatMap(\.operations).map(\.columns) == packets[1].operations.map(\.columns))
    #expect(again.flatMap(\.operations).allSatisfy { $0.base <= 1 })
    #expect(try replica.file.reports.status().lastRecovery?.event == "restored")
  }

  @Test("archived packets are sent again if the cursor was refused")
  func archiveIsSentAgain() throws {
    let (replica, packets) = try confirmed()
    try replica.apply([], head: 3, tail: packets[1].tail)
    #expect(try replica.pending.isEmpty)
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("title", "one")])], head: 1, tail: packets[0].tail)
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["b"]])
    #expect(try replica.freeze().flatMap(\.operations).map(\.id) == packets[1].operations.map(\.id))
  }

  @Test("a server that does not know the device gets everything once, in a new chain")
  func unknownDevice() throws {
    let (replica, packets) = try confirmed()
    let old = try replica.file.identity().device
    try ReplacingPull(replica.file).begin(Problem(.epochChanged, "new"))
    let page = maker.page([], head: 0)
    _ = try replica.file.apply(last: page.body, page.head)
    let again = try replica.freeze()
    #expect(again.first?.dependency == nil)
    #expect(again.flatMap(\.operations).map(\.id) == packets.flatMap(\.operations).map(\.id))
    #expect(try replica.file.identity().device != old)
    // The new name's first pages name no tail either: nothing is sent a third time.
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try replica.file.packets.open().count == again.count)
  }

  @Test(
    "a packet that no page has named is sent again if the cursor was refused for lost history",
    arguments: [ProblemCode.historyLost, .lostAndExpired])
  func firstPacket(code: ProblemCode) throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 1))
    #expect(try replica.pending.isEmpty)
    try ReplacingPull(replica.file).begin(Problem(code, "lost"))
    let page = maker.page([], head: 0)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try replica.freeze().flatMap(\.operations).map(\.id) == packet.operations.map(\.id))
  }

  @Test("records that the server lost are inserted again with the earliest time")
  func rescued() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "theirs")]),
      maker.change(2, "tasks", "b", [Column("title", "also theirs")]),
    ])
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply([maker.deletion(1, "tasks", "b")], head: 1)
    #expect(try replica.rows("SELECT id, title FROM tasks") == [["a", "mine"]])
    let pending = try replica.pending
    #expect(pending.map(\.kind) == [.update, .insert])
    #expect(pending.map(\.key.record) == ["a", "a"])
    #expect(pending[1].time < pending[0].time)
    #expect(pending[1].time.milliseconds == 1)
    // The clock does not go back.
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'new')")
    #expect(try replica.pending[2].time > pending[0].time)
  }

  @Test("a re-uploaded row that is deleted before it was sent is deleted on the server")
  func rescuedAndDeleted() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply([], head: 0)
    try replica.run("DELETE FROM tasks WHERE id = 'a'")
    // Another device may have re-uploaded the row meanwhile.
    #expect(try replica.freeze().flatMap(\.operations).map(\.kind) == [.delete])
  }

  @Test("rows that were lost together are re-uploaded in one transaction")
  func rescuedTogether() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    try replica.file.track(["notes"])
    let count = Limits.standard.operationsPerPacket
    try replica.apply(
      (0...count).map { maker.change(SequenceNumber($0 + 1), "tasks", "t\($0)", []) }
        + [maker.change(SequenceNumber(count + 2), "notes", "n", [Column("body", "x")])])
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply([], head: 0)
    let pending = try replica.file.queue.oldest(100_000)
    #expect(pending.count == count + 2)
    #expect(Set(pending.map(\.group)).count == 1)
  }

  @Test("packets after the oldest archived one are sent again to a server restored to before them")
  func trimmedArchive() throws {
    let (replica, packets) = try confirmed()
    // The second packet is archived now, and the first is too old.
    replica.clock.now += PacketChain.archiveAgeMax + 1
    try replica.apply(
      [], head: 3, tail: packets[1].tail, serverTime: PacketChain.archiveAgeMax + 1)
    #expect(try replica.file.connection.count("SELECT count(*) FROM ferry_archive") == 1)
    let name = try replica.file.identity().device
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("title", "one")])], head: 1, tail: packets[0].tail)
    let again = try replica.freeze()
    #expect(again.map(\.tail) == [packets[1].tail])
    #expect(again.map(\.dependency) == [packets[0].tail])
    #expect(try replica.file.identity().device == name)
  }

  @Test(
    "operations claim no knowledge of a lost history",
    arguments: [ProblemCode.historyLost, .lostAndExpired])
  func lowerBases(code: ProblemCode) throws {
    let (replica, packets) = try confirmed()
    try replica.apply([], head: 9, tail: packets[1].tail)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'new')")
    #expect(try replica.pending.map(\.base) == [9])
    try ReplacingPull(replica.file).begin(Problem(code, "lost"))
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("title", "one")])], head: 5, tail: packets[0].tail)
    #expect(try replica.pending.map(\.base) == [0, 0], "one of the archive, and the new one")
  }

  @Test("a column that the server lost is cleared, even in a row inserted here")
  func lostColumn() throws {
    let (replica, packets) = try confirmed()
    try replica.run("ALTER TABLE tasks ADD COLUMN tag TEXT")
    try replica.apply(
      [maker.change(4, "tasks", "b", [Column("tag", "theirs")], inserts: false)],
      tail: packets[1].tail)
    #expect(try replica.rows("SELECT tag FROM tasks WHERE id = 'b'") == [["theirs"]])
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    // The server does not know this device's name: the device sends the insert again.
    let page = maker.page(
      [
        maker.change(1, "tasks", "a", [Column("title", "one")]),
        maker.change(3, "tasks", "b", [Column("title", "two")]),
      ], head: 3)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(
      try replica.rows("SELECT id, title, tag FROM tasks ORDER BY id")
        == [["a", "one", .null], ["b", "two", .null]])
  }

  @Test("after an expired cursor, rows that the list does not contain are removed")
  func expired() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      maker.change(1, "tasks", "a", [Column("title", "x")]),
      maker.change(2, "tasks", "b", [Column("title", "y")]),
    ])
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'mine')")
    try replica.run("UPDATE tasks SET title = 'lost with its record' WHERE id = 'b'")
    try ReplacingPull(replica.file).begin(Problem(.cursorExpired, "old"))
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[3]])
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "x")])], head: 9)
    #expect(try replica.rows("SELECT id FROM tasks ORDER BY id") == [["a"], ["c"]])
    #expect(try replica.pending.map(\.key.record) == ["c", "b"])
    #expect(try replica.file.syncState().replacement == nil)
  }

  @Test(
    "an unknown tail means that a copy has written: the next packet has a new name")
  func unknownTail() throws {
    let (replica, _) = try confirmed()
    let old = try replica.file.identity().device
    let foreign = OperationID(UniqueID(high: 9, low: 9))
    try replica.apply([], head: 9, tail: foreign)
    #expect(try replica.file.identity().device != old)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'new')")
    let next = try replica.freeze()
    #expect(next.first?.dependency == nil)
    // The copy may have displaced operations after the cursor: they are sent again.
    #expect(next.flatMap(\.operations).map(\.key.record) == ["b", "c"])
  }
}

extension SetBackTests {
  @Test("operations that a copy of this file has sent, and only those, do not count as lost")
  func knownFromCopy() throws {
    let (replica, packets) = try threePackets()
    _ = try replica.file.chain.receive(replica.receipt(packets[1], first: 2, status: .duplicate))
    let name = try replica.file.identity().device
    // The server has no chain of this name: the operations came in the copy's.
    let page = PageMaker().page([], head: 3)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try replica.file.identity().device == name)
    #expect(try replica.freeze().map(\.tail) == [packets[0].tail, packets[2].tail])
  }

  @Test("a packet known only as a duplicate is sent again to a server restored to before it")
  func duplicateLost() throws {
    let (replica, packets) = try threePackets()
    _ = try replica.file.chain.receive(replica.receipt(packets[0], first: 1))
    _ = try replica.file.chain.receive(replica.receipt(packets[1], first: 2, status: .duplicate))
    // The cursor was never so far: only the tail shows it.
    try replica.apply([], head: 1, tail: packets[0].tail)
    let again = try replica.freeze()
    #expect(again.map(\.tail) == [packets[1].tail, packets[2].tail])
    #expect(again.first?.dependency == packets[0].tail)
  }

  @Test(
    "packets confirmed under an earlier name are sent again, even if the newer name is known")
  func earlierNameLost() throws {
    let (replica, packets) = try confirmed()
    // A copy has written; the following packets are a chain of another name.
    try replica.apply([], head: 9, tail: OperationID(UniqueID(high: 9, low: 9)))
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'new')")
    let next = try replica.freeze()
    #expect(try replica.file.connection.count("SELECT count(*) FROM ferry_archived_packets") == 1)
    // The new name's first packet came to the server after a restore from an empty backup.
    try ReplacingPull(replica.file).begin(Problem(.cursorAhead, "lost"))
    let changes = next.flatMap(\.operations).enumerated().map { place, operation in
      maker.change(
        SequenceNumber(place + 1), "tasks", operation.key.record, operation.columns)
    }
    try replica.apply(changes, head: SequenceNumber(changes.count), tail: next[0].tail)
    let again = try replica.freeze()
    #expect(again.first?.device != next[0].device)
    #expect(
      again.flatMap(\.operations).map(\.id)
        == packets[0].operations.map(\.id) + next.flatMap(\.operations).map(\.id))
    #expect(try replica.file.connection.count("SELECT count(*) FROM ferry_archived_packets") == 0)
  }

  @Test("a chain is sent again if the server lost it, even if its first packet was a duplicate")
  func duplicateChainLost() throws {
    let (replica, packets) = try threePackets()
    _ = try replica.file.chain.receive(replica.receipt(packets[0], first: 1, status: .duplicate))
    let name = try replica.file.identity().device
    let page = PageMaker().page([], head: 0)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try replica.file.identity().device != name)
    #expect(try replica.freeze().flatMap(\.operations).map(\.key.record) == ["a", "b", "c"])
  }

  @Test("packets that a server lost and a copy's chain replaced are sent again")
  func displacedByCopy() throws {
    let (replica, packets) = try confirmed()
    // The cursor is before both, so the server serves it.
    try replica.apply([], head: 2, tail: OperationID(UniqueID(high: 9, low: 9)))
    let again = try replica.freeze()
    #expect(again.flatMap(\.operations).map(\.id) == packets[1].operations.map(\.id))
    #expect(again.first?.dependency == nil)
    #expect(again.first?.device != packets[1].device)
    #expect(try replica.file.queue.hasUnsent())
  }

  @Test("only the re-uploaded rows that the server refuses leave their transaction")
  func rescuedAndRefused() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply(
      ["a", "b", "c"].map { maker.change(1, "tasks", $0, [Column("title", "theirs")]) })
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply([], head: 0)
    let packet = try replica.freeze()[0]
    let refusal = Refusal(
      operation: packet.operations[1].id, code: .uniqueTaken, detail: "no", table: "tasks",
      record: "b")
    let number = try replica.file.packets.open()[0].number
    #expect(try replica.file.refusedOperations.remove(from: number, [refusal]) == 1)
    #expect(try replica.freeze().flatMap(\.operations).map(\.key.record) == ["a", "c"])
  }

  @Test("a list that re-uploads lost rows continues to do so if its cursor expires")
  func expiredWhileRescuing() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try ReplacingPull(replica.file).begin(Problem(.cursorExpired, "old"))
    try replica.apply([], head: 0)
    #expect(try replica.rows("SELECT id FROM tasks") == [["a"]])
    #expect(try replica.pending.map(\.kind) == [.insert])
  }
}

extension SetBackTests {
  /// Returns a replica with three packets of one insert each, on their way.
  private func threePackets() throws -> (ReplicaFixture, [Packet]) {
    let replica = try ReplicaFixture.withTasks()
    var packets: [Packet] = []
    for record in ["a", "b", "c"] {
      try replica.run("INSERT INTO tasks(id, title) VALUES ('\(record)', 'x')")
      packets = try replica.freeze()
    }
    return (replica, packets)
  }

  @Test("later packets that a copy has sent do not confirm earlier ones")
  func copyLeftOut() throws {
    let (replica, packets) = try threePackets()
    _ = try replica.file.chain.receive(replica.receipt(packets[2], first: 5, status: .duplicate))
    try replica.file.chain.renewIdentity()
    let again = try replica.freeze()
    #expect(again.flatMap(\.operations).map(\.key.record) == ["a", "b", "c"])
  }

  @Test("after a refusal the remaining packets are sent in a new chain")
  func chainAfterRefusal() throws {
    let (replica, packets) = try threePackets()
    let refused = packets[1].operations[0]
    let number = try replica.file.packets.open()[1].number
    let refusal = Refusal(
      operation: refused.id, code: .schemaViolation, detail: "no", table: "tasks", record: "b")
    #expect(try replica.file.refusedOperations.remove(from: number, [refusal]) == 1)
    let open = try replica.freeze()
    #expect(open.flatMap(\.operations).map(\.key.record) == ["a", "c"])
    #expect(open.map(\.dependency) == [nil, open[0].tail])
    #expect(open.allSatisfy { $0.device != packets[2].device })
    #expect(try replica.file.quarantine.oldest(9).map(\.refused) == [[refused.id]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["b"])
  }

  @Test("packets that may have been applied before a refused one are sent again without merging")
  func frozenBeforeRefusal() throws {
    let (replica, packets) = try threePackets()
    try replica.run("UPDATE tasks SET title = 'y' WHERE id IN ('a', 'b')")
    let edits = try #require(try replica.freeze().last)
    let row = try #require(try replica.file.packets.open().last)
    // The response reports the earlier ones as applied; their own responses were lost.
    let refusal = Refusal(
      operation: edits.operations[1].id, code: .schemaViolation, detail: "no", table: "tasks",
      record: "b")
    #expect(try replica.file.refusedOperations.remove(from: row.number, [refusal]) == 2)
    try replica.run("UPDATE tasks SET title = 'z'")
    let again = try replica.freeze()
    #expect(again.prefix(3).map(\.operations) == packets.map(\.operations))
    #expect(again.map(\.dependency) == [nil] + again.dropLast().map(\.tail))
    #expect(Set(again.map(\.device)).count == 1 && again[0].device != packets[0].device)
    #expect(again[3].operations.map(\.kind) == [.update, .update, .update])
  }

  @Test("the first parts of a refused transaction are cut again with the rest of it")
  func partsBeforeRefusal() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'x')")
    let first = try replica.freeze()
    let text = String(repeating: "t", count: 600_000)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('b', ?1), ('c', ?1)", [.text(text)])
    let open = try replica.freeze()
    #expect(open.map(\.continues) == [false, true, false])
    let number = try #require(try replica.file.packets.open().last).number
    try replica.file.chain.reopen(packet: number)
    #expect(try replica.file.packets.open().count == 1)
    #expect(try replica.freeze().prefix(1).map(\.operations) == first.map(\.operations))
  }
}
