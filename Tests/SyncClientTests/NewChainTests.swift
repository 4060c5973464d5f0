import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Whatever name a packet is sent under, it has the operations of the time it was frozen.
@Suite("Packets of a restarted chain", .hangLimit)
struct NewChainTests {
  private let maker = PageMaker()

  /// Returns an insert and an update of one record, each in a separate packet.
  private func insertedAndEdited() throws -> (ReplicaFixture, [Packet]) {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title, done) VALUES ('a', 'one', 1)")
    _ = try replica.freeze()
    try replica.run("UPDATE tasks SET title = 'two' WHERE id = 'a'")
    return (replica, try replica.freeze())
  }

  /// Returns the same operations, whatever their authors had seen.
  private func contents(_ packets: [Packet]) -> [[SyncOperation]] {
    packets.map { packet in
      packet.operations.map { operation in
        var operation = operation
        operation.base = 0
        return operation
      }
    }
  }

  private func expectAnewAsBefore(_ replica: ReplicaFixture, _ packets: [Packet]) throws {
    try replica.run("UPDATE tasks SET title = 'three' WHERE id = 'a'")
    let again = try replica.freeze()
    // The server may know the update, and not the insert: merged into it, the insert would never
    // come.
    #expect(contents(again.dropLast()) == contents(packets))
    #expect(again.last?.operations.map(\.kind) == [.update])
    #expect(again.map(\.dependency) == [nil] + again.dropLast().map(\.tail))
    #expect(Set(again.map(\.device)).count == 1 && again[0].device != packets[0].device)
  }

  @Test("a restarted chain contains operations that the server lost as they were sent")
  func lost() throws {
    let (replica, packets) = try insertedAndEdited()
    for (place, packet) in packets.enumerated() {
      _ = try replica.file.chain.receive(replica.receipt(packet, first: SequenceNumber(place + 1)))
    }
    #expect(try replica.pending.isEmpty)
    try ReplacingPull(replica.file).begin(Problem(.epochChanged, "new"))
    let page = maker.page([], head: 0)
    _ = try replica.file.apply(last: page.body, page.head)
    try expectAnewAsBefore(replica, packets)
  }

  @Test("a restarted chain contains operations that a copy may have displaced as they were sent")
  func displaced() throws {
    let (replica, packets) = try insertedAndEdited()
    for (packet, place) in zip(packets, [5, 7] as [SequenceNumber]) {
      _ = try replica.file.chain.receive(replica.receipt(packet, first: place))
    }
    try replica.apply([], head: 4, tail: OperationID(UniqueID(high: 9, low: 9)))
    try expectAnewAsBefore(replica, packets)
  }

  @Test("a restarted chain contains operations that a copy may have sent as they were frozen")
  func copied() throws {
    let (replica, packets) = try insertedAndEdited()
    try replica.file.chain.renewIdentity()
    try expectAnewAsBefore(replica, packets)
  }

  @Test("a restarted chain keeps a re-uploaded row separate from sent operations on it")
  func rescued() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    let sent = try replica.freeze()
    _ = try replica.file.chain.receive(replica.receipt(sent[0], first: 2))
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    let page = maker.page([], head: 0)
    _ = try replica.file.apply(last: page.body, page.head)
    let again = try replica.freeze()
    #expect(contents(again.dropLast()) == contents(sent))
    #expect(again.last?.operations.map(\.kind) == [.insert])
    #expect(again.last?.operations.map(\.time.milliseconds) == [1])
  }

  @Test("a chain that restarts after a refusal has no packets behind a gap")
  func refused() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    func freeze(_ record: String) throws -> Packet {
      try replica.run("INSERT INTO tasks(id, title) VALUES (?, 'new')", [.text(record)])
      return try #require(try replica.freeze().last)
    }
    // A copy has sent the first packet.
    _ = try freeze("a")
    try replica.file.chain.renewIdentity()
    let copied = try #require(try replica.freeze().first)
    _ = try replica.file.chain.receive(replica.receipt(copied, first: 1, status: .duplicate))
    _ = try replica.file.chain.receive(replica.receipt(freeze("b"), first: 5))
    _ = try freeze("c")
    let refused = try #require(try replica.file.packets.open().last)
    try replica.file.chain.reopen(packet: refused.number)
    let again = try replica.freeze()
    #expect(again.map(\.dependency) == [nil])
    #expect(again.map { $0.operations.map(\.key.record) } == [["c"]])
  }

  private func schema(_ columns: String) -> Change {
    let document = #"{"version":1,"tables":{"tasks":{"columns":\#(columns)}}}"#
    return maker.change(
      1, "ferry_schema", "schema", [Column("document", .text(document)), Column("version", 1)])
  }

  @Test(
    "a restarted chain keeps operations separate that were separate, even without their bases",
    arguments: ["ask", "text-merge", "server-wins", "client-wins"])
  func apart(policy: String) throws {
    let replica = try ReplicaFixture.withTasks()
    let page = [
      schema(#"{"title":"\#(policy)"}"#), maker.change(2, "tasks", "a", [Column("title", "one")]),
    ]
    try replica.apply(page)
    try replica.run("UPDATE tasks SET title = 'two' WHERE id = 'a'")
    try replica.apply([], head: 5)
    try replica.run("UPDATE tasks SET title = 'three' WHERE id = 'a'")
    let sent = try replica.freeze()
    #expect(sent.map { $0.operations.map(\.base) } == [[2, 5]])
    for _ in 0..<2 {
      try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
      let again = maker.page(page, head: 2)
      _ = try replica.file.apply(last: again.body, again.head)
      #expect(try replica.pending.map(\.base) == [0, 0])
      #expect(try contents(replica.freeze()) == contents(sent))
      #expect(
        try replica.file.operations.markConcurrent(RecordKey(table: "tasks", record: "a")).count
          == 2)
    }
  }

  @Test("a row that is re-uploaded repeatedly stays separate from an edit of it")
  func reuploadedAgain() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([
      schema(#"{"title":"ask"}"#), maker.change(2, "tasks", "a", [Column("title", "theirs")]),
    ])
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    let page = maker.page([schema(#"{"title":"ask"}"#)], head: 1)
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    _ = try replica.file.apply(last: page.body, page.head)
    let sent = try replica.freeze()
    #expect(sent.map { $0.operations.map(\.kind) } == [[.update, .insert]])
    _ = try replica.file.chain.receive(replica.receipt(sent[0], first: 2))
    // The server is restored from the same backup once more.
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    _ = try replica.file.apply(last: page.body, page.head)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('b', 'new')")
    let again = try replica.freeze()
    #expect(contents([again[0]]) == contents(sent))
    #expect(again.map(\.dependency) == [nil, sent[0].tail])
    for packet in again {
      #expect(try replica.file.chain.receive(replica.receipt(packet, first: 2)).count == 1)
    }
    #expect(try replica.file.queue.count() == 0)
  }

  @Test("a packet is merged by the schema that it was frozen with, even if its version is reused")
  func otherSchema() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([schema("{}")])
    try replica.run("INSERT INTO tasks(id, title, done) VALUES ('a', 'one', 1)")
    try replica.run("UPDATE tasks SET title = 'two' WHERE id = 'a'")
    let sent = try replica.freeze()
    #expect(sent.map { $0.operations.map(\.kind) } == [[.insert]])
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    let page = maker.page([schema(#"{"done":"counter"}"#)], head: 1)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try contents(replica.freeze()) == contents(sent))
    #expect(
      try replica.file.tables.schemas.current().rules(for: "tasks").policy(of: "done") == .counter)
  }

  @Test("a packet that differs from its frozen content is never sent")
  func damaged() throws {
    let (replica, _) = try insertedAndEdited()
    try replica.file.connection.execute("UPDATE ferry_packets SET operations = operations + 1")
    #expect(throws: ReplicaError.self) { try replica.freeze() }
  }

  @Test("a re-uploaded row keeps the user's pending value against an older remote one")
  func shielded() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([maker.change(1, "tasks", "a", [Column("title", "theirs")])])
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    _ = try replica.freeze()
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    let page = maker.page([], head: 0)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try replica.pending.map(\.kind) == [.update, .insert])
    // Another device re-uploads the row with the values it knows.
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("title", "theirs"), Column("done", 3)], at: 2)],
      head: 1)
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["mine", 3]])
  }
}
