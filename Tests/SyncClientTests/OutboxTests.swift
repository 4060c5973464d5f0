import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The rules for a device's packets: event in, packets and cursor out (SPEC.md §4, §5).
@Suite("The outbox", .hangLimit)
struct OutboxTests {
  /// A ledger whose operations all have these bases.
  private struct Ledger: OutboxLedger {
    var lowest: SequenceNumber?
    var lowestMet: SequenceNumber?

    func lowestBase(in orders: ClosedRange<Int64>, metOnly: Bool) -> SequenceNumber? {
      metOnly ? lowestMet : lowest
    }
  }

  private static let epoch = PageMaker().epoch

  private static func tail(_ number: Int64) -> OperationID {
    OperationID(UniqueID(high: 1, low: UInt64(number)))
  }

  /// Returns the packet with this number, of two operations.
  private static func packet(
    _ number: Int64, _ state: FrozenPacket.State = .frozen, last: SequenceNumber? = nil,
    isInChain: Bool = false, hasMet: Bool = false, continues: Bool = false
  ) -> FrozenPacket {
    var packet = FrozenPacket(
      number: number, dependency: number > 1 ? tail(number - 1) : nil, tail: tail(number),
      orders: number * 2 - 1...number * 2, isMerged: true, continues: continues, operations: 2,
      schema: 0)
    (packet.state, packet.last) = (state, last)
    (packet.isInChain, packet.hasMet) = (isInChain, hasMet)
    return packet
  }

  private static func outbox(
    _ packets: [FrozenPacket], applied: SequenceNumber = 10, received: SequenceNumber? = nil
  ) -> Outbox {
    Outbox(
      packets,
      SyncState(
        epoch: epoch, applied: applied, received: received ?? applied, head: applied,
        clockOffset: 0, lastSync: nil, anchor: PageMaker.anchor(at: applied), replacement: nil,
        began: nil))
  }

  private static func receipt(
    _ number: Int64, at first: SequenceNumber, _ status: PacketReceipt.Status = .applied
  ) -> PacketReceipt {
    PacketReceipt(
      tail: tail(number), status: status, sequences: first...first + 1,
      outcomes: [.applied, .applied],
      historyHashBefore: PageMaker.historyHash(at: first - 1),
      historyHash: PageMaker.historyHash(at: first + 1),
      timeline: PageMaker.timeline(at: first + 1))
  }

  private static func answer(
    _ receipts: PacketReceipt..., head: SequenceNumber = 20
  ) -> PacketAnswer {
    PacketAnswer(
      receipt: receipts[0], released: Array(receipts.dropFirst()), epoch: epoch, head: head,
      serverTime: 0)
  }

  // MARK: Receipts

  @Test("a receipt confirms its packet, and those that it released, once")
  func confirmed() throws {
    var outbox = Self.outbox([Self.packet(1), Self.packet(2, .buffered), Self.packet(3)])
    let answer = Self.answer(Self.receipt(1, at: 11), Self.receipt(2, at: 13), head: 14)
    #expect(try outbox.apply(answer, Ledger()).map(\.packet.number) == [1, 2])
    #expect(outbox.open.map(\.number) == [3])
    #expect(outbox.packets.map(\.isInChain) == [true, true, false])
    #expect(outbox.state.head == 14)
    #expect(try outbox.apply(answer, Ledger()).isEmpty)
  }

  @Test("a receipt for no packet of this file changes nothing")
  func foreignReceipt() throws {
    var outbox = Self.outbox([Self.packet(1)])
    let before = outbox.packets
    #expect(try outbox.apply(Self.answer(Self.receipt(9, at: 11)), Ledger()).isEmpty)
    #expect(outbox.packets == before && outbox.state.applied == 10)
  }

  @Test("a buffered packet stays open")
  func buffered() throws {
    var outbox = Self.outbox([Self.packet(1)])
    let receipt = PacketReceipt(tail: Self.tail(1), status: .buffered)
    #expect(try outbox.apply(Self.answer(receipt), Ledger()).isEmpty)
    #expect(outbox.open.map(\.state) == [.buffered])
  }

  @Test(
    "own packets move the cursor if nothing of others is between them, in them, or staged",
    arguments: [
      (false, nil, 11, 12), (true, nil, 11, 10), (false, 15, 11, 10), (false, nil, 12, 10),
    ] as [(Bool, SequenceNumber?, SequenceNumber, SequenceNumber)])
  func advance(
    hasMet: Bool, received: SequenceNumber?, first: SequenceNumber, applied: SequenceNumber
  ) throws {
    var outbox = Self.outbox([Self.packet(1, hasMet: hasMet)], received: received)
    _ = try outbox.apply(Self.answer(Self.receipt(1, at: first)), Ledger(lowest: 10))
    #expect(outbox.state.applied == applied)
    #expect(outbox.coveredOrder == (applied == 12 ? 2 : nil))
    #expect(!outbox.isPulledAgain)
  }

  @Test("a packet in the history behind the cursor moves it back to where its operations were made")
  func behind() throws {
    var outbox = Self.outbox([Self.packet(1)])
    let answer = Self.answer(Self.receipt(1, at: 7, .duplicate))
    _ = try outbox.apply(answer, Ledger(lowest: 4))
    #expect(outbox.state.applied == 4 && outbox.state.received == 4 && outbox.isPulledAgain)
    #expect(outbox.state.replacement == nil)
    #expect(!outbox.packets[0].isClean && !outbox.packets[0].isInChain)

    var fromStart = Self.outbox([Self.packet(1)])
    _ = try fromStart.apply(answer, Ledger(lowest: 0))
    #expect(fromStart.state.applied == 0 && fromStart.state.replacement == .removing)

    var uploadOnly = Self.outbox([Self.packet(1)])
    _ = try uploadOnly.apply(answer, Ledger(lowest: nil))
    #expect(uploadOnly.state.applied == 10, "no operation of it receives others' changes")
  }

  @Test(
    "the archive takes confirmed packets that the cursor has passed, up to the first other one",
    arguments: [
      ([], nil), ([packet(1, .acknowledged, last: 11)], nil), ([packet(1)], nil),
      ([packet(1, .acknowledged, last: 10)], 2),
      ([packet(1, .acknowledged, last: 9), packet(2, .acknowledged, last: 10), packet(3)], 4),
      ([packet(1, .acknowledged, last: 9), packet(2), packet(3, .acknowledged, last: 10)], 2),
      ([packet(1, .acknowledged, last: 9), packet(2, .acknowledged, last: 11)], 2),
    ] as [([FrozenPacket], Int64?)])
  func covered(packets: [FrozenPacket], order: Int64?) {
    #expect(Self.outbox(packets).coveredOrder == order)
  }

  // MARK: The chain

  @Test("a named tail confirms everything through it, at a place that is not known")
  func confirmThrough() throws {
    var outbox = Self.outbox([
      Self.packet(1, .acknowledged, last: 9), Self.packet(2, .buffered), Self.packet(3),
    ])
    #expect(try !outbox.confirm(through: Self.tail(2), head: 15, Ledger(lowest: 1)))
    #expect(outbox.packets.map(\.state) == [.acknowledged, .acknowledged, .frozen])
    #expect(outbox.packets.map(\.last) == [9, 15, nil])
    #expect(outbox.packets.map(\.isInChain) == [true, true, false])
    #expect(outbox.packets[1].first == nil)
    #expect(try !outbox.confirm(through: Self.tail(9), head: 15, Ledger()), "it is not kept here")
  }

  @Test("a named tail corrects a place past the head that a receipt has named")
  func correctedPlace() throws {
    var outbox = Self.outbox([
      Self.packet(1, .acknowledged, last: 9), Self.packet(2, .acknowledged, last: 40, hasMet: true),
      Self.packet(3, .acknowledged, last: 50),
    ])
    #expect(try outbox.confirm(through: Self.tail(2), head: 15, Ledger(lowest: 1, lowestMet: 6)))
    #expect(outbox.packets.map(\.last) == [9, 15, 50])
    #expect(outbox.state.applied == 6)
    #expect(try !outbox.confirm(through: Self.tail(2), head: 15, Ledger(lowest: 1, lowestMet: 6)))
  }

  @Test("a tail that confirms operations which met others' changes moves the cursor back")
  func confirmMet() throws {
    var outbox = Self.outbox([Self.packet(1), Self.packet(2, hasMet: true)])
    let ledger = Ledger(lowest: 1, lowestMet: 6)
    #expect(try !outbox.confirm(through: Self.tail(1), head: 15, ledger))
    #expect(try outbox.confirm(through: Self.tail(2), head: 15, ledger))
    #expect(outbox.state.applied == 6)
  }

  @Test("confirmed packets that the server lost are opened again, with no place")
  func sendAgain() {
    var outbox = Self.outbox([
      Self.packet(1, .acknowledged, last: 9, isInChain: true),
      Self.packet(2, .acknowledged, last: 11, isInChain: true), Self.packet(3, .buffered),
    ])
    outbox.sendAgain(after: 1)
    #expect(outbox.packets.map(\.state) == [.acknowledged, .frozen, .buffered])
    #expect(outbox.packets[1] == Self.packet(2))
  }

  @Test("a device that leaves its identifier keeps what its chain on the server has")
  func leave() throws {
    var outbox = Self.outbox([
      Self.packet(1, .buffered), Self.packet(2, .acknowledged, isInChain: true), Self.packet(3),
      Self.packet(4, .acknowledged, last: 20),
    ])
    let kept = try outbox.leaveIdentity(Ledger())
    #expect(kept.map(\.number) == [3, 4])
    #expect(outbox.packets[0].state == .acknowledged && outbox.packets[0].last == 10)
    outbox.beginChain(with: kept)
    #expect(outbox.packets[2...].map(\.state) == [.frozen, .frozen])
    #expect(outbox.packets[2...].map(\.dependency) == [nil, Self.tail(3)])
    #expect(outbox.packets[3].last == nil)
  }

  @Test(
    "a device that leaves its identifier sends packets again that only a receipt has confirmed",
    arguments: [
      ([packet(1, .acknowledged, last: 9), packet(2)], [1, 2]),
      ([packet(1, .acknowledged, last: 9, isInChain: true), packet(2)], [2]),
      ([packet(1, .acknowledged, last: 9)], [1]),
      ([packet(1, .acknowledged, last: 9, isInChain: true)], []),
    ] as [([FrozenPacket], [Int64])])
  func leaveAll(packets: [FrozenPacket], kept: [Int64]) throws {
    var outbox = Self.outbox(packets)
    #expect(try outbox.leaveIdentity(Ledger()).map(\.number) == kept)
  }

  @Test("only a page, or a history hash past the cursor, shows that a packet is in the chain")
  func proof() throws {
    let hashed = Self.receipt(1, at: 11)
    let behind = Self.receipt(1, at: 9)
    let bare = PacketReceipt(
      tail: Self.tail(1), status: .applied, sequences: 11...12, outcomes: [.applied, .applied])
    let placeless = PacketReceipt(
      tail: Self.tail(1), status: .duplicate, outcomes: [.applied, .applied])
    for (receipt, isProof) in [
      (hashed, true), (behind, false), (bare, false), (placeless, false),
    ] {
      var outbox = Self.outbox([Self.packet(1)])
      _ = try outbox.apply(Self.answer(receipt), Ledger(lowest: 10))
      #expect(outbox.packets[0].state == .acknowledged)
      #expect(outbox.packets[0].isInChain == isProof)
      _ = try outbox.confirm(through: Self.tail(1), head: 20, Ledger())
      #expect(outbox.packets[0].isInChain)
    }
  }

  @Test("after a refusal, earlier packets stay and parts of the same transaction are cut again")
  func cut() throws {
    func cut(
      _ packets: [FrozenPacket], from index: Int
    ) throws -> (kept: [FrozenPacket], first: FrozenPacket) {
      var outbox = Self.outbox(packets)
      return try outbox.cut(from: packets[index], Ledger())
    }
    let packets = [
      Self.packet(1, .acknowledged, isInChain: true), Self.packet(2),
      Self.packet(3, continues: true), Self.packet(4, continues: true), Self.packet(5),
    ]
    let last = try cut(packets, from: 4)
    #expect(last.kept.map(\.number) == [2] && last.first.number == 3)
    let middle = try cut(packets, from: 2)
    #expect(middle.kept.map(\.number) == [2] && middle.first.number == 3)
    let first = try cut(packets, from: 1)
    #expect(first.kept.isEmpty && first.first.number == 2)
    let claimed = try cut([Self.packet(1, .acknowledged)] + packets[1...], from: 1)
    #expect(claimed.kept.map(\.number) == [1], "only a receipt has confirmed it")
  }

  @Test(
    "a chain that restarts after a refusal has no gap: packets before one in the chain stay out",
    arguments: [
      ([packet(1, .acknowledged, last: 9), packet(2)], nil, [1, 2]),
      ([packet(1, .acknowledged, last: 9), packet(2)], 2, []),
      ([packet(1), packet(2, .acknowledged, last: 9)], 2, []),
      ([packet(1, .acknowledged, last: 9), packet(2, .acknowledged, last: 9)], 1, [2]),
    ] as [([FrozenPacket], Int?, [Int64])])
  func cutAfterChain(packets: [FrozenPacket], inChain: Int?, kept: [Int64]) throws {
    var packets = packets
    if let inChain {
      packets[inChain - 1].state = .acknowledged
      (packets[inChain - 1].last, packets[inChain - 1].isInChain) = (9, true)
    }
    let refused = Self.packet(3)
    var outbox = Self.outbox(packets + [refused])
    let cut = try outbox.cut(from: refused, Ledger())
    #expect(cut.kept.map(\.number) == kept && cut.first == refused)
    for packet in outbox.packets where !kept.contains(packet.number) && packet != refused {
      #expect(packet.state == .acknowledged && packet.isInChain)
    }
    outbox.beginChain(with: cut.kept)
    #expect(outbox.open.map(\.number) == kept + [3])
  }
}
