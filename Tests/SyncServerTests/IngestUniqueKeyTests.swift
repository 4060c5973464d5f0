import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// Unique keys, by the machine alone.
@Suite(.hangLimit)
struct IngestUniqueKeyTests {
  private var space = IngestSpace()
  private var one = PacketMaker(1)
  private var two = PacketMaker(2)

  init() throws {
    space.schema = try SpaceSchema(
      decoding: Array(#"{"tables":{"t":{"unique":[["email"],["project","number"]]}}}"#.utf8),
      limits: .standard)
  }

  private static func email(_ value: Value) -> [Column] { [Column("email", value)] }

  private mutating func insert(_ record: String, _ columns: [Column]) -> IngestResult {
    space.send(one.packet([one.operation(.insert, record, columns)]))
  }

  @Test("a second record with a key's values is refused with the first record's name")
  mutating func taken() {
    #expect(insert("a", Self.email("x@y")).word == "applied")
    let operation = two.operation(.insert, "b", Self.email("x@y"))
    let result = space.send(two.packet([operation]))
    #expect(
      result.refusals == [
        Refusal(
          operation: operation.id, code: .uniqueTaken, detail: "record a has the same email",
          table: "t", record: "b", holder: "a")
      ])
    #expect(space.records[operation.key] == nil && space.holders.count == 1)
  }

  @Test("NULL and absent columns claim nothing, and a key of two columns needs both")
  mutating func nulls() {
    for (record, columns) in [
      ("a", Self.email(.null)), ("b", Self.email(.null)), ("c", []),
      ("d", [Column("project", "p")]), ("e", [Column("project", "p"), Column("number", .null)]),
      ("f", [Column("number", 1), Column("project", "p")]),
    ] {
      #expect(insert(record, columns).word == "applied", "\(record)")
    }
    #expect(space.holders.count == 1)
    let result = insert("g", [Column("project", "p"), Column("number", .real(1))])
    #expect(result.refusals.map(\.holder) == ["f"], "1 and 1.0 are one number")
    #expect(result.refusals.map(\.detail) == ["record f has the same project, number"])
  }

  @Test("only writes that may change a key's values concern its claims")
  mutating func concerned() {
    let keys: [[Name]] = [["email"], ["project", "number"]]
    let note = [Column("note", "long")]
    #expect(!two.operation(.update, "a", note).mayChange(keys))
    #expect(two.operation(.update, "a", note + [Column("number", 1)]).mayChange(keys))
    #expect(two.operation(.insert, "a", note).mayChange(keys))
    #expect(two.operation(.delete, "a").mayChange(keys))
    _ = insert("a", Self.email("x"))
    #expect(space.send(one.packet([one.operation(.update, "a", note)])).word == "applied")
    #expect(insert("b", Self.email("x")).refusals.map(\.holder) == ["a"])
  }

  @Test("a value is free after its change or its record's delete, and always for its own record")
  mutating func freed() {
    _ = insert("a", Self.email("x"))
    _ = space.send(one.packet([one.operation(.update, "a", Self.email("y"))]))
    #expect(insert("b", Self.email("x")).word == "applied")
    _ = space.send(one.packet([one.operation(.delete, "a")]))
    #expect(insert("c", Self.email("y")).word == "applied")
    #expect(insert("a", Self.email("z")).word == "applied")
    #expect(
      space.send(one.packet([one.operation(.update, "a", Self.email("z"))])).word == "applied")
    let holders = space.holders.map {
      "\(String(decoding: $0.key.value, as: UTF8.self)) \($0.value)"
    }
    #expect(holders.sorted() == [#"["x"] b"#, #"["y"] c"#, #"["z"] a"#])
  }

  @Test("two records can swap their values within a packet, in either order")
  mutating func swap() {
    _ = insert("a", Self.email("x"))
    _ = insert("b", Self.email("y"))
    two.milliseconds += 1_000
    let swap = two.packet([
      two.operation(.update, "a", Self.email("y")), two.operation(.update, "b", Self.email("x")),
    ])
    #expect(space.send(swap).word == "applied")
    let half = two.packet([two.operation(.update, "a", Self.email("x"))])
    #expect(space.send(half).refusals.map(\.holder) == ["b"])
  }

  @Test("if two records of one packet have the same values, the later one is refused by name")
  mutating func withinPacket() {
    let operations = [
      one.operation(.insert, "a", Self.email("x")), one.operation(.insert, "b", Self.email("x")),
      one.operation(.update, "b", [Column("title", "t")]),
    ]
    let result = space.send(one.packet(operations))
    #expect(result.refusals.map(\.operation) == [operations[1].id], "the one that wrote the key")
    #expect(result.refusals.map(\.holder) == ["a"])
    #expect(space.holders.isEmpty)
  }

  @Test("packets of one batch take values from each other in their order")
  mutating func withinBatch() {
    let first = one.packet([one.operation(.insert, "a", Self.email("x"))])
    let rival = two.packet([two.operation(.insert, "b", Self.email("x"))])
    let free = one.packet([one.operation(.update, "a", Self.email("y"))])
    #expect(
      space.send([first, rival, free]).map(\.word) == [
        "applied", "operation_refused", "applied",
      ])
    #expect(space.send(rival).word == "applied")
  }

  @Test("a write that loses claims nothing, and the value that wins stays claimed")
  mutating func loser() {
    _ = insert("a", Self.email("x"))
    two.milliseconds -= 10_000
    let late = two.packet([two.operation(.update, "a", Self.email("old"))])
    #expect(space.send(late).word == "applied")
    #expect(insert("b", Self.email("old")).word == "applied")
    #expect(insert("c", Self.email("x")).refusals.map(\.holder) == ["a"])
  }

  @Test("one look-up serves a batch, and tables without unique keys need none")
  mutating func lookUps() {
    let packets = (0..<50).map { number in
      one.packet([one.operation(.insert, "r\(number)", Self.email(.integer(Int64(number))))])
    }
    #expect(space.send(packets).allSatisfy { $0.word == "applied" })
    #expect(space.holderLookUps == 1)
    var plain = one.operation(.insert, "z", Self.email("z"))
    plain.key = RecordKey(table: "other", record: "z")
    _ = space.send(one.packet([plain]))
    #expect(space.holderLookUps == 1)
  }

  @Test("random writes never let two living records have the same values")
  mutating func random() {
    var generator = VaryingNumbers(seed: 42)
    var refused = 0
    for round in 0..<400 {
      let record = "r\(generator.below(6))"
      let kind = OperationKind.allCases[generator.below(3)]
      let columns = kind == .delete ? [] : Self.email(.integer(Int64(generator.below(5))))
      let isOne = generator.below(2) == 0
      let late = Int64(generator.below(20)) - 10
      let tail = isOne ? one.tail : two.tail
      let operation: SyncOperation
      if isOne {
        one.milliseconds += late
        operation = one.operation(kind, record, columns)
      } else {
        two.milliseconds += late
        operation = two.operation(kind, record, columns)
      }
      let device = isOne ? one.device : two.device
      let packet = Packet(device: device, dependency: tail, operations: [operation])
      let result = space.send(packet)
      if result.word == "applied" {
        if isOne { _ = one.packet([operation]) } else { _ = two.packet([operation]) }
      } else {
        refused += 1
      }
      let living = space.records.filter { $0.value.isAlive }
      let values = living.compactMap { $0.value.columns.first { $0.name == "email" }?.value }
      #expect(Set(values).count == values.count, "round \(round)")
      #expect(space.holders.count == values.count, "round \(round)")
    }
    #expect(refused > 10)
  }
}

/// Linear congruential numbers (Knuth's MMIX), enough to vary a test.
private struct VaryingNumbers {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func below(_ bound: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % bound
  }
}
