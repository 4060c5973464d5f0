import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Counters of rows re-uploaded to a server after it lost them.
@Suite(.hangLimit)
struct RescuedCounterTests {
  private let maker = PageMaker()
  private static let day: Int64 = 24 * 3_600_000

  /// Returns a replica with a counter of 12: 5 with the row and 3 of others, 4 of this device,
  /// confirmed by the server.
  private func counting() throws -> (ReplicaFixture, Packet) {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE polls(id TEXT PRIMARY KEY, title TEXT, votes INTEGER)")
    try replica.file.track(["polls"])
    let schema = maker.change(
      1, "ferry_schema", "schema",
      [
        Column("document", #"{"version":1,"tables":{"polls":{"columns":{"votes":"counter"}}}}"#),
        Column("version", 1),
      ])
    try replica.apply(
      [schema, maker.change(2, "polls", "p", [Column("title", "x"), Column("votes", 8)])])
    try replica.run("UPDATE polls SET votes = votes + 4")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 3))
    try replica.apply([], head: 3, tail: packet.tail)
    #expect(try replica.pending.isEmpty)
    return (replica, packet)
  }

  /// Lets the server lose all but the schema.
  private func loseAll(
    _ replica: ReplicaFixture, _ code: ProblemCode = .epochChanged, now: Int64 = 0
  ) throws {
    try ReplacingPull(replica.file).begin(Problem(code, "lost"))
    let page = maker.page([], head: 1, serverTime: now)
    _ = try replica.file.apply(last: page.body, page.head)
  }

  /// Returns the counter's value on a server that applies these.
  private func sum(_ operations: [SyncOperation]) throws -> Value? {
    let rules = TableRules(columns: ["votes": ColumnRules(policy: .counter)])
    var state = RecordState()
    var known = Set<OperationID>()
    for operation in operations where known.insert(operation.id).inserted {
      _ = state.merge(
        operation, stamp: Stamp(time: operation.time, device: maker.device),
        sequence: SequenceNumber(known.count), rules: rules)
    }
    #expect(state.isAlive)
    return state.columns.first { $0.name == "votes" }?.value
  }

  @Test("a re-uploaded row leaves its counter's increments to their authors")
  func leftToAuthors() throws {
    let (one, own) = try counting()
    let (two, theirs) = try counting()
    try loseAll(one)
    try loseAll(two)
    let (sentByOne, sentByTwo) = (try one.pending, try two.pending)
    #expect(sentByOne.first?.id == own.tail)
    #expect(sentByTwo.first?.id == theirs.tail)
    #expect(sentByOne.map(\.kind) == [.update, .insert])
    #expect(sentByOne.last?.columns == [Column("title", "x"), Column("votes", 0)])
    // The increments of both, and none twice, in either order.
    #expect(try sum(sentByOne + sentByTwo) == 4)
    var second = sentByTwo
    second[0].id = OperationID(UniqueID(high: 1, low: 2))
    #expect(try sum(sentByOne + second) == 8)
    #expect(try sum(second + sentByOne) == 8)
  }

  @Test("a part of a counter that no device sends is re-uploaded once, by any number of devices")
  func olderThanArchives() throws {
    let (one, _) = try counting()
    let (two, _) = try counting()
    let later = PacketChain.archiveAgeMax + Self.day
    try loseAll(one, now: later)
    try loseAll(two, now: later)
    let sent = try one.pending
    #expect(sent.map(\.kind) == [.update, .insert, .update])
    #expect(sent.last?.columns == [Column("votes", 8)])
    #expect(sent.last?.increments == ["votes"])
    #expect(try two.pending.last?.id == sent.last?.id)
    #expect(try sum(sent) == 12)
    #expect(try sum(sent + two.pending) == 12)
    // It travels as it is, not merged with anything.
    #expect(try one.freeze().flatMap(\.operations).last?.id == sent.last?.id)
  }

  @Test("a server restored from a copy leaves counters to their authors, at any time")
  func copyFoundLate() throws {
    let (replica, _) = try counting()
    try loseAll(replica, .historyLost, now: PacketChain.archiveAgeMax + Self.day)
    #expect(try replica.pending.last?.columns == [Column("title", "x"), Column("votes", 0)])
  }

  @Test("marks of the cursor's places are a day apart, and are removed when they are useless")
  func marks() throws {
    let (replica, _) = try counting()
    for day in 1...40 {
      for hour in Int64(0)...1 {
        try replica.apply(
          [], head: SequenceNumber(3 + day), serverTime: Int64(day) * Self.day + hour * 3_600_000)
      }
    }
    let marks = try replica.file.connection.prepare("SELECT at, applied FROM ferry_marks").rows {
      ($0.int64(0) / Self.day, $0.int64(1))
    }
    #expect(marks.map(\.0) == Array(26...40).map(Int64.init))
    #expect(marks.allSatisfy { $0.1 == $0.0 + 3 })
  }

  @Test("the rest of a counter is the part that its device does not send again")
  func remainder() {
    let clock = OperationID(UniqueID(high: 5, low: 5))
    func own(_ kind: OperationKind, _ column: Column, adds: Bool) -> SyncOperation {
      var operation = SyncOperation(
        id: clock, key: RecordKey(table: "polls", record: "p"), kind: kind,
        time: HybridTimestamp(milliseconds: 9), columns: [column], base: 0)
      if adds { operation.increments = [column.name] }
      return operation
    }
    func left(_ value: Value, _ pending: [SyncOperation]) -> Int64 {
      RescuedCounter.remainder(of: Column("votes", value), pending: pending)
    }
    let add = own(.update, Column("votes", 3), adds: true)
    let other = own(.update, Column("title", "y"), adds: false)
    #expect(left(10, []) == 10)
    #expect(left(10, [add, other, add]) == 4)
    #expect(left(.integer(.min), [add]) == .max - 2)
    #expect(left(.null, [add]) == 0)
    #expect(left("ten", []) == 0)
    // A value set by the user belongs to the user.
    #expect(left(10, [add, own(.update, Column("votes", 7), adds: false)]) == 0)
    let key = RecordKey(table: "polls", record: "p")
    let id = RescuedCounter.identifier(of: "votes", in: key)
    #expect(id == RescuedCounter.identifier(of: "votes", in: key))
    #expect(id != RescuedCounter.identifier(of: "likes", in: key))
    #expect(id.value.timestamp == .rescue)
  }
}
