import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The advance of a cursor by a device's own confirmed packets, and the limits of this advance.
@Suite("The cursor over own packets", .hangLimit)
struct OwnAdvanceTests {
  /// Returns a replica at 10, and the replica's packets, each of one insert.
  private func replica(packets count: Int) throws -> (ReplicaFixture, [Packet]) {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 10)
    for index in 0..<count {
      try replica.run("INSERT INTO tasks(id) VALUES ('t\(index)')")
      try replica.file.chain.freeze(limit: 10)
    }
    return (replica, try replica.freeze())
  }

  /// Returns the server's response, with other history hashes.
  private func answer(
    _ packet: Packet, at first: SequenceNumber, in replica: ReplicaFixture, before: UInt64?,
    after: UInt64?
  ) throws -> PacketAnswer {
    var answer = try replica.receipt(packet, first: first)
    (answer.receipt.historyHashBefore, answer.receipt.historyHash) = (before, after)
    return answer
  }

  @Test("an own packet anchors the cursor with the hash and timeline of its receipt")
  func anchors() throws {
    let (replica, packets) = try replica(packets: 10)
    #expect(try replica.file.syncState().anchor == PageMaker.anchor(at: 10))
    for (index, packet) in packets.enumerated() {
      _ = try replica.file.chain.receive(replica.receipt(packet, first: 11 + Int64(index)))
    }
    let state = try replica.file.syncState()
    #expect(state.applied == 20 && state.received == 20)
    #expect(
      state.anchor
        == Cursor.Anchor(
          head: 20, operation: try #require(packets[9].tail),
          historyHash: PageMaker.historyHash(at: 20),
          timeline: PageMaker.timeline(at: 20)))
    #expect(PageMaker.timeline(at: 20) != PageMaker.timeline(at: 10))
    try replica.reopen()
    #expect(try replica.file.syncState().cursor == state.cursor)
  }

  @Test("the cursor stays if a packet entered a history that is not known here")
  func otherHistory() throws {
    let (replica, packets) = try replica(packets: 2)
    let (before, after) = (PageMaker.historyHash(at: 10) ^ 1, PageMaker.historyHash(at: 11) ^ 1)
    _ = try replica.file.chain.receive(
      answer(packets[0], at: 11, in: replica, before: before, after: after))
    #expect(try replica.file.syncState().cursor?.applied == 10)
    #expect(try replica.file.syncState().anchor == PageMaker.anchor(at: 10))
    // The operations after it there lead no further.
    _ = try replica.file.chain.receive(
      answer(packets[1], at: 12, in: replica, before: after, after: after ^ 2))
    #expect(try replica.file.syncState().applied == 10)
    #expect(try replica.pending.count == 2, "they shield what the user wrote until they are pulled")
  }

  @Test("a packet without hashes does not move the cursor, nor do the packets after it")
  func noHistoryHash() throws {
    for (before, after) in [(nil, nil), (PageMaker.historyHash(at: 10), nil), (nil, UInt64(5))] {
      let (replica, packets) = try replica(packets: 2)
      _ = try replica.file.chain.receive(
        answer(packets[0], at: 11, in: replica, before: before, after: after))
      _ = try replica.file.chain.receive(replica.receipt(packets[1], first: 12))
      #expect(try replica.file.syncState().applied == 10)
      try replica.apply([], head: 12)
      #expect(try replica.file.syncState().applied == 12)
      #expect(try replica.pending.isEmpty)
    }
  }

  @Test("own packets do not move a cursor if its anchor has no hash")
  func oldCursor() throws {
    let (replica, packets) = try replica(packets: 1)
    try replica.file.connection.execute("UPDATE ferry_replica SET anchor_history_hash = NULL")
    _ = try replica.file.chain.receive(replica.receipt(packets[0], first: 11))
    #expect(try replica.file.syncState().applied == 10)
  }

  @Test("within the anchored history the anchor stays, and own packets need no hash")
  func withinAnchor() throws {
    let (replica, packets) = try replica(packets: 3)
    try replica.file.state.goBack(to: 7)
    for (packet, first) in zip(packets, [8, 9, 10] as [SequenceNumber]) {
      _ = try replica.file.chain.receive(
        answer(packet, at: first, in: replica, before: nil, after: nil))
    }
    let state = try replica.file.syncState()
    #expect(state.applied == 10)
    #expect(state.anchor == PageMaker.anchor(at: 10))
  }

  @Test("in an empty space, the first packet moves the cursor")
  func emptySpace() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 1))
    #expect(try replica.file.syncState().anchor?.historyHash == PageMaker.historyHash(at: 1))
    #expect(try replica.file.syncState().applied == 1)
  }

  @Test(
    "the anchor's hash and timeline are kept with staged pages, and removed by a full pull")
  func kept() throws {
    let replica = try ReplicaFixture.withTasks()
    let page = PageMaker().page(
      [PageMaker().change(1, "tasks", "a", [])], head: 5, more: true)
    try replica.file.incoming.stage(page.body, page.head, changes: 1)
    #expect(try replica.file.syncState().cursor == page.head.cursor)
    #expect(try replica.file.syncState().anchor?.historyHash == PageMaker.historyHash(at: 5))
    #expect(try replica.file.syncState().anchor?.timeline == PageMaker.timeline(at: 5))
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "gone"))
    #expect(
      try replica.rows("SELECT anchor_history_hash, anchor_timeline FROM ferry_replica") == [
        [nil, nil]
      ])
  }
}
