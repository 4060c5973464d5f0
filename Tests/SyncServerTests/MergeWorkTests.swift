import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The work that merges of a packet cost, by the machine alone.
@Suite("The work of merges", .hangLimit)
struct MergeWorkTests {
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

  private mutating func work(_ operations: [SyncOperation]) throws -> Int {
    var context = IngestContext(space: space.state, now: 0, limits: .standard)
    (context.schema, context.records) = (space.schema, space.records)
    var work = try #require(MergeWork(context))
    work.add(two.packet(operations))
    return work.bytes
  }

  @Test("each operation on a set reads all of it, also of one that the packet has made")
  mutating func sets() throws {
    let large = [Column("tags", .text(String(repeating: "x", count: 1_000)))]
    let small = [Column("tags", .text("y"))]
    let insert = one.operation(.insert, "r", large)
    let updates = (0..<10).map { _ in one.operation(.update, "r", small) }
    #expect(try work([insert] + updates) > 10_000)
    #expect(space.send(one.packet([insert])).word == "applied")
    #expect(try work(updates) > 10_000)
    #expect(try work((0..<10).map { _ in one.operation(.update, "r", [Column("n", 1)]) }) == 0)
  }

  @Test("texts are read several times, and keys only if one of their columns is written")
  mutating func texts() throws {
    let text = Value.text(String(repeating: "x", count: 1_000))
    #expect(try work([one.operation(.update, "r", [Column("body", text)])]) >= 16_000)
    let keyed = one.operation(.insert, "r", [Column("a", text), Column("b", 1)])
    #expect(space.send(one.packet([keyed])).word == "applied")
    #expect(try work([one.operation(.update, "r", [Column("b", 2)])]) >= 1_000)
    #expect(try work([one.operation(.update, "r", [Column("c", text)])]) == 0)
  }
}
