import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// Operations that can never be applied, by the machine alone.
@Suite(.hangLimit)
struct IngestRefusalTests {
  private static func schema(_ json: String) throws -> SpaceSchema {
    try SpaceSchema(decoding: Array(json.utf8), limits: .standard)
  }

  private static func space(_ json: String) throws -> IngestSpace {
    var space = IngestSpace()
    space.schema = try schema(json)
    return space
  }

  // MARK: Packets

  @Test("a refusal names all operations that can never be applied, and nothing is stored")
  func allNamed() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    _ = space.send(maker.packet("before"))
    let before = (space.state, space.chains, space.records)
    var bad = [maker.operation(.insert, "x"), maker.operation(.delete, "y")]
    bad[0].key = RecordKey(table: "ferry_schema", record: "x")
    bad[1].key = RecordKey(table: "Sqlite_master", record: "y")
    let good = maker.operation(.insert, "good", [Column("v", 1)])
    let result = space.send(maker.packet([bad[0], good, bad[1]]))
    #expect(result.code == .operationRefused)
    #expect(result.refusals.map(\.operation) == bad.map(\.id))
    #expect(result.refusals.map(\.code) == [.reservedTable, .reservedTable])
    #expect(result.refusals.map(\.table) == ["ferry_schema", "Sqlite_master"])
    #expect(result.refusals.map(\.record) == ["x", "y"])
    #expect((space.state, space.chains) == (before.0, before.1))
    #expect(space.records == before.2)
  }

  @Test("a refusal names as many operations as an answer can hold, in their order")
  func manyNamed() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.limits.pageBytes = 20_000
    let bad = (0..<40).map { number in
      var operation = maker.operation()
      operation.key = RecordKey(
        table: "ferry_x", record: String(repeating: "\(number % 10)", count: 300))
      return operation
    }
    let refusals = space.send(maker.packet(bad)).refusals
    #expect(refusals.count > 5 && refusals.count < bad.count)
    #expect(refusals.map(\.operation) == bad.prefix(refusals.count).map(\.id))
    #expect(Problem(.operationRefused, "", refusals: refusals).encoded().count < 20_000)
    space.limits.pageBytes = 1
    #expect(
      space.send(Packet(device: maker.device, dependency: nil, operations: bad)).refusals.count == 1
    )
  }

  @Test("a refusal leaves the chain unchanged: the packet without the operation is applied")
  func chainStands() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    let first = maker.packet("a")
    _ = space.send(first)
    var bad = maker.operation()
    bad.key = RecordKey(table: "ferry_x", record: "x")
    let good = maker.operation(.insert, "good", [Column("v", 1)])
    #expect(space.send(maker.packet([bad, good])).code == .operationRefused)
    let again = Packet(device: maker.device, dependency: first.tail, operations: [good])
    #expect(space.send(again).word == "applied")
    #expect(space.rows.map(\.sequence) == [1, 2])
  }

  @Test("a refused transaction of several packets is refused whole, in any order of its packets")
  func wholeRun() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
      for isTogether in [false, true] {
        var maker = PacketMaker(1)
        var bad = maker.operation()
        bad.key = RecordKey(table: "ferry_x", record: "x")
        var worse = maker.operation()
        worse.key = RecordKey(table: "ferry_y", record: "y")
        let parts = [
          maker.packet([bad], continues: true), maker.packet("b", continues: true),
          maker.packet([worse]),
        ]
        var space = IngestSpace()
        let sent = order.map { parts[$0] }
        let results = isTogether ? space.send(sent) : sent.map { space.send($0) }
        let refused = isTogether ? results : Array(results.suffix(1))
        for result in refused {
          #expect(result.code == .operationRefused, "\(order)")
          #expect(result.refusals.map(\.operation) == [bad.id, worse.id], "\(order)")
        }
        #expect(results.dropLast(refused.count).allSatisfy { $0.word == "buffered" })
        #expect(space.buffered.isEmpty && space.rows.isEmpty && space.chains.isEmpty)
      }
    }
  }

  @Test("a buffered packet that is released and can never be applied is dropped")
  func releasedAndRefused() {
    var maker = PacketMaker(1)
    var bad = maker.operation()
    let first = maker.packet("a")
    let second = maker.packet("b")
    bad.key = RecordKey(table: "ferry_x", record: "x")
    let third = maker.packet([bad])
    let fourth = maker.packet("d")
    var space = IngestSpace()
    #expect(
      space.send([second, third, fourth]).map(\.word) == ["buffered", "buffered", "buffered"])
    let result = space.send(first)
    #expect(result.word == "applied")
    #expect(result.released.map(\.tail) == [second.tail])
    #expect(space.buffered.isEmpty, "what waits for a packet that was refused is cut anew")
    #expect(space.chains[maker.device]?.tail == second.tail)
    #expect(space.send(third).refusals.map(\.code) == [.reservedTable])
  }

  @Test("followers of a refused packet in its batch are refused with it; other packets are applied")
  func followers() {
    var maker = PacketMaker(1)
    var other = PacketMaker(2)
    var bad = maker.operation()
    bad.key = RecordKey(table: "ferry_x", record: "x")
    let packets = [
      maker.packet([bad]), other.packet("o"), maker.packet("b"), maker.packet("c"),
      other.packet("p"),
    ]
    for order in [[0, 1, 2, 3, 4], [3, 2, 1, 4, 0]] {
      var space = IngestSpace()
      let results = space.send(order.map { packets[$0] })
      let words = zip(order, results).sorted { $0.0 < $1.0 }.map(\.1.word)
      #expect(
        words == [
          "operation_refused", "applied", "operation_refused", "operation_refused", "applied",
        ], "\(order)")
      #expect(results.flatMap(\.refusals).allSatisfy { $0.operation == bad.id })
      #expect(space.buffered.isEmpty && space.chains[maker.device] == nil)
    }
  }

  @Test("a buffered follower that is sent again with its refused predecessor is refused too")
  func bufferedFollower() {
    var maker = PacketMaker(1)
    var bad = maker.operation()
    bad.key = RecordKey(table: "ferry_x", record: "x")
    let packets = [maker.packet([bad]), maker.packet("b"), maker.packet("c")]
    var space = IngestSpace()
    #expect(space.send(packets[1]).word == "buffered")
    #expect(space.send(packets).allSatisfy { $0.word == "operation_refused" })
    #expect(space.buffered.isEmpty && space.rows.isEmpty)
    // A packet waiting for something else is kept when it comes with a refused packet.
    var stranger = PacketMaker(1)
    _ = stranger.packet("p", "q", "r", "s", "t")
    let other = stranger.packet("u")
    #expect(space.send([packets[0], other]).map(\.word) == ["operation_refused", "buffered"])
    #expect(space.buffered.map(\.key.tail) == [other.tail])
  }

  @Test("refusals of many devices in one batch do not affect the rest of the batch")
  func manyRefusals() {
    var packets: [Packet] = []
    for number in 1...20 {
      var maker = PacketMaker(UInt64(number))
      var operations = [maker.operation(.insert, "r\(number)", [Column("v", 1)])]
      if number.isMultiple(of: 3) { operations[0].key = RecordKey(table: "ferry_", record: "r") }
      packets.append(maker.packet(operations))
    }
    var space = IngestSpace()
    let words = space.send(packets).map(\.word)
    #expect(
      words == (1...20).map { $0.isMultiple(of: 3) ? "operation_refused" : "applied" })
    var plain = IngestSpace()
    _ = plain.send(packets.indices.filter { !($0 + 1).isMultiple(of: 3) }.map { packets[$0] })
    #expect(space.rows == plain.rows && space.records == plain.records)
  }

  @Test("an operation that is already in the history is not checked again")
  func knownIsNotJudged() throws {
    var maker = PacketMaker(1)
    let packet = maker.packet("a")
    var space = IngestSpace()
    _ = space.send(packet)
    space.schema = try Self.schema(#"{"tables":{"t":{"write":"admin"}}}"#)
    #expect(space.send(packet).word == "duplicate")
    #expect(space.send(maker.packet("b")).refusals.map(\.code) == [.forbiddenTable])
  }

  // MARK: Checks

  struct Write: Sendable, CustomTestStringConvertible {
    let kind: OperationKind
    let columns: [Column]
    let fault: String?
    var testDescription: String { "\(kind) \(columns.map(\.name)): \(fault ?? "allowed")" }
  }

  @Test(
    "types and required columns are checked",
    arguments: [
      Write(kind: .insert, columns: [Column("due", 5), Column("note", 1)], fault: nil),
      Write(kind: .insert, columns: [Column("due", 5), Column("name", "x")], fault: nil),
      Write(kind: .insert, columns: [Column("name", "x")], fault: "column due is required"),
      Write(kind: .insert, columns: [Column("due", .null)], fault: "is required and is NULL"),
      Write(
        kind: .insert, columns: [Column("due", "5")],
        fault: "due has the type integer, but the value is text"),
      Write(
        kind: .insert, columns: [Column("due", 5.5)],
        fault: "due has the type integer, but the value is real"),
      Write(kind: .update, columns: [Column("name", "x")], fault: nil),
      Write(kind: .update, columns: [Column("name", .null)], fault: nil),
      Write(kind: .update, columns: [Column("due", .null)], fault: "is required and is NULL"),
      Write(
        kind: .update, columns: [Column("name", .blob([1]))],
        fault: "has the type text, but the value is blob"),
      Write(kind: .update, columns: [Column("weight", 3)], fault: nil),
      Write(
        kind: .update, columns: [Column("weight", "3")],
        fault: "has the type real, but the value is text"),
      Write(kind: .delete, columns: [], fault: nil),
    ])
  func columns(write: Write) throws {
    var space = try Self.space(
      """
      {"tables":{"t":{"columns":{"due":{"type":"integer","required":true},
      "name":{"type":"text"},"weight":{"type":"real"}}}}}
      """)
    var maker = PacketMaker(1)
    let result = space.send(maker.packet([maker.operation(write.kind, "r", write.columns)]))
    if let fault = write.fault {
      #expect(result.refusals.map(\.code) == [.schemaViolation])
      #expect(result.refusals[0].detail.contains(fault), "\(result.refusals[0].detail)")
    } else {
      #expect(result.word == "applied")
    }
  }

  @Test("a table for admins refuses writers, even if an admin's packet releases theirs")
  func roles() throws {
    let json = #"{"tables":{"t":{"write":"admin"}}}"#
    var maker = PacketMaker(1)
    let first = maker.packet("a")
    let second = maker.packet("b")
    var space = try Self.space(json)
    #expect(space.send(first).refusals.map(\.code) == [.forbiddenTable])
    #expect(space.send(second).word == "buffered", "nobody knows yet whether it may be applied")
    #expect(space.send(first, role: .admin).released == [])
    #expect(space.rows.count == 1)
    #expect(space.send(second, role: .admin).word == "applied")
  }

  @Test("a client below the space's minimum protocol version is asked to upgrade")
  func upgrade() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.state.minimumProtocol = 3
    let packet = maker.packet("a")
    #expect(space.send([packet], version: 2).map(\.word) == ["upgrade_required"])
    #expect(space.send([packet], version: 3).map(\.word) == ["applied"])
  }
}
