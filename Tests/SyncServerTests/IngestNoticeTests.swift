import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// Devices that receive notices of values that did not stay, by the machine alone.
@Suite(.hangLimit)
struct IngestNoticeTests {
  @Test("the loser of a conflict gets a notice; without a loss there is none")
  func losers() throws {
    var (first, second) = (PacketMaker(1), PacketMaker(2))
    var space = IngestSpace()
    second.milliseconds += 1_000
    _ = space.send(first.packet([first.operation(.insert, "a", [Column("x", 1)])]))
    #expect(space.notices.isEmpty)
    let winner = second.operation(.update, "a", [Column("x", 2)])
    _ = space.send(second.packet([winner, second.operation(.update, "a", [Column("y", 2)])]))
    let row = try #require(space.notices.first)
    #expect(space.notices.count == 1 && row.device == first.device && row.sequence == 2)
    let notice = try Self.notice(row)
    #expect(notice.operation == winner.id && notice.key == winner.key && notice.sequence == 2)
    #expect(notice.conflicts == space.history[winner.id]?.outcome.conflicts)
  }

  @Test("devices that lose to one operation get separate notices, in their order")
  func several() throws {
    var makers = (1...4).map { PacketMaker(UInt64($0)) }
    var space = IngestSpace()
    for (index, column) in [(2, "x"), (0, "y"), (1, "z")] {
      makers[index].milliseconds += 100
      let insert = makers[index].operation(.insert, "a", [Column(column, .integer(Int64(index)))])
      _ = space.send(makers[index].packet([insert]))
    }
    makers[3].milliseconds += 1_000
    let early = HybridTimestamp(milliseconds: 1)
    let operation = makers[3].operation(
      .update, "a", [Column("x", 9), Column("y", 9), Column("z", 9)], times: ["z": early])
    _ = space.send(makers[3].packet([operation]))
    #expect(space.notices.map(\.device) == [0, 2, 3].map { makers[$0].device })
    #expect(space.notices.allSatisfy { $0.sequence == 4 })
    let notices = try space.notices.map { try Self.notice($0) }
    #expect(notices.map { $0.conflicts.map(\.column) } == [["y"], ["x"], ["z"]])
    #expect(notices.map { $0.conflicts.map(\.lost) } == [[0], [2], [9]])
  }

  @Test("a packet that is sent again creates no second notice")
  func duplicate() {
    var (first, second) = (PacketMaker(1), PacketMaker(2))
    var space = IngestSpace()
    _ = space.send(first.packet([first.operation(.insert, "a", [Column("x", 1)])]))
    second.milliseconds -= 1_000
    let packet = second.packet([second.operation(.update, "a", [Column("x", 2)])])
    #expect(space.send([packet, packet]).map(\.word) == ["applied", "duplicate"])
    _ = space.send(packet)
    #expect(space.notices.map(\.device) == [second.device])
  }

  @Test("a buffered packet creates no notice before it is applied")
  func buffered() {
    var (first, second) = (PacketMaker(1), PacketMaker(2))
    var space = IngestSpace()
    _ = space.send(first.packet([first.operation(.insert, "a", [Column("x", 1)])]))
    second.milliseconds += 1_000
    let head = second.packet([second.operation(.insert, "b")])
    let late = second.packet([second.operation(.update, "a", [Column("x", 2)])])
    #expect(space.send(late).word == "buffered")
    #expect(space.notices.isEmpty)
    _ = space.send(head)
    #expect(space.notices.map(\.sequence) == [3])
  }

  private static func notice(_ row: IngestEffects.NoticeRow) throws -> Notice {
    try decode(row.body) { (reader) throws(MalformedMessage) in
      try Notice(from: &reader, limits: .standard)
    }
  }
}
