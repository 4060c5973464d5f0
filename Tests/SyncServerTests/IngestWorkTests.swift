import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The work of decisions about packets, by the machine alone.
@Suite("The work of a decision", .hangLimit)
struct IngestWorkTests {
  private var space = IngestSpace()
  private var one = PacketMaker(1)
  private var two = PacketMaker(2)

  init() throws {
    space.schema = try SpaceSchema(
      decoding: Array(
        #"""
        {"tables":{"t":{"columns":{"tags":{"policy":"set-union"},"body":{"policy":"text-merge"}},
          "unique":[["a","b"]]}}}
        """#.utf8), limits: .standard)
  }

  private func counted(_ packets: [Packet], matching: [RecordKey] = []) -> IngestWork {
    var context = IngestContext(space: space.state, now: 0, limits: .standard)
    (context.schema, context.records) = (space.schema, space.records)
    for (key, state) in space.records { context.recordBytes[key] = state.stored().count }
    for operation in packets.flatMap(\.operations) where operation.batch != nil {
      context.matches[operation.id] = matching
    }
    var work = IngestWork(context, upTo: 1 << 20)
    for packet in packets { work.add(packet) }
    return work
  }

  private mutating func work(_ operations: [SyncOperation]) -> Int {
    counted([two.packet(operations)]).read
  }

  @Test("each operation on a set reads all of it, also of one that the packet has made")
  mutating func sets() throws {
    let large = [Column("tags", .text(String(repeating: "x", count: 1_000)))]
    let small = [Column("tags", .text("y"))]
    let insert = one.operation(.insert, "r", large)
    let updates = (0..<10).map { _ in one.operation(.update, "r", small) }
    #expect(work([insert] + updates) > 10_000)
    #expect(space.send(one.packet([insert])).word == "applied")
    #expect(work(updates) > 10_000)
    #expect(work((0..<10).map { _ in one.operation(.update, "r", [Column("n", 1)]) }) == 0)
  }

  @Test("texts are read several times, and keys only if one of their columns is written")
  mutating func texts() throws {
    let text = Value.text(String(repeating: "x", count: 1_000))
    var update = one.operation(.update, "r", [Column("body", text)])
    update.originals = [Column("body", "known")]
    #expect(work([update]) >= 16_000)
    let keyed = one.operation(.insert, "r", [Column("a", text), Column("b", 1)])
    #expect(space.send(one.packet([keyed])).word == "applied")
    #expect(work([one.operation(.update, "r", [Column("b", 2)])]) >= 1_000)
    #expect(work([one.operation(.update, "r", [Column("c", text)])]) == 0)
  }

  @Test("a text that replaces the known one is not merged, and one of many lines costs more")
  mutating func edits() throws {
    func text(_ mark: String) -> Value { .text((0..<500).map { "\(mark)\($0)\n" }.joined()) }
    let insert = one.operation(.insert, "r", [Column("body", text("a"))])
    #expect(space.send(one.packet([insert])).word == "applied")
    for (original, expected) in [("a", 0..<10_000), ("c", 300_000..<500_000)] {
      var update = two.operation(.update, "r", [Column("body", text("b"))])
      update.originals = [Column("body", text(original))]
      #expect(expected.contains(work([update])))
    }
  }

  @Test("the effects of a batch read as updates do, and so do those on records of its packet")
  mutating func batches() throws {
    let large = [Column("tags", .text(String(repeating: "x", count: 1_000)))]
    let insert = one.operation(.insert, "r", large)
    #expect(space.send(one.packet([insert])).word == "applied")
    let batches = try (0..<5).map { _ in try two.batch(where: "n = 1", [Column("tags", "y")]) }
    #expect(work(batches) < 1_000)
    #expect(counted([two.packet(batches)], matching: [insert.key]).read > 5_000)
    #expect(work([two.operation(.update, "r", [Column("n", 1)])] + batches) > 5_000)
  }

  @Test("a record is encoded once for each packet that touches it")
  mutating func encodings() throws {
    let text = Value.text(String(repeating: "x", count: 1_000))
    let insert = one.packet([one.operation(.insert, "r", [Column("c", text)])])
    #expect(space.send(insert).word == "applied")
    let bytes = try #require(space.records.values.first).stored().count
    let updates = (0..<6).map { _ in two.operation(.update, "r", [Column("n", 1)]) }
    let together = counted([two.packet(Array(updates[..<3]))]).encoded
    #expect((bytes..<2 * bytes).contains(together))
    let apart = updates[3...].map { two.packet([$0]) }
    #expect((3 * bytes..<4 * bytes).contains(counted(apart).encoded))
  }
}
