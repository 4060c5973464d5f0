import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// The order of a device's packets, by the machine alone.
@Suite(.hangLimit)
struct IngestChainTests {
  /// Returns every list of the numbers below `count`, and every way to cut it into batches.
  private static func arrivals(_ count: Int) -> [[[Int]]] {
    func orders(_ rest: [Int]) -> [[Int]] {
      if rest.isEmpty { return [[]] }
      return rest.flatMap { first in orders(rest.filter { $0 != first }).map { [first] + $0 } }
    }
    return orders(Array(0..<count)).flatMap { order in
      (0..<1 << (count - 1)).map { cuts in
        order.enumerated().reduce(into: [[Int]]()) { batches, place in
          if place.offset == 0 || cuts >> (place.offset - 1) & 1 == 1 { batches.append([]) }
          batches[batches.count - 1].append(place.element)
        }
      }
    }
  }

  @Test("5 packets in all 120 orders, cut into batches in all 16 ways, are applied in chain order")
  func everyOrder() {
    var maker = PacketMaker(1)
    let packets = [
      maker.packet("a"), maker.packet("b", "c"), maker.packet("d", continues: true),
      maker.packet("e", continues: true), maker.packet("f"),
    ]
    let arrivals = Self.arrivals(5)
    #expect(arrivals.count == 120 * 16)
    for batches in arrivals {
      var space = IngestSpace()
      var sequences: [OperationID: ClosedRange<SequenceNumber>?] = [:]
      for batch in batches {
        for result in space.send(batch.map { packets[$0] }) {
          for receipt in [result.receipt].compactMap({ $0 }) + result.released
          where receipt.status == .applied {
            #expect(sequences.updateValue(receipt.sequences, forKey: receipt.tail) == nil)
          }
        }
      }
      let found = packets.map { $0.tail.flatMap { sequences[$0] ?? nil } }
      #expect(found == [1...1, 2...3, 4...4, 5...5, 6...6], "in \(batches)")
      #expect(space.buffered.isEmpty && space.state.head == 6, "in \(batches)")
      #expect(space.chains[maker.device]?.operations == 6)
    }
  }

  @Test("an unfinished transaction is never applied, in any order of its parts")
  func unfinished() {
    var maker = PacketMaker(1)
    let parts = [
      maker.packet("a", continues: true), maker.packet("b", continues: true),
      maker.packet("c", continues: true),
    ]
    for batches in Self.arrivals(3) {
      var space = IngestSpace()
      for batch in batches {
        #expect(space.send(batch.map { parts[$0] }).allSatisfy { $0.word == "buffered" })
      }
      #expect(space.rows.isEmpty && space.buffered.count == 3)
    }
  }

  /// The result of a packet of device 1 that depends on `dependency` and brings these operations.
  /// The history has [a1, a2] and [a3] of device 1 and [b1] of device 2.
  struct Placement: Sendable, CustomTestStringConvertible {
    let dependency: String?
    let operations: [String]
    let word: String
    var testDescription: String { "\(operations) after \(dependency ?? "nothing"): \(word)" }
  }

  @Test(
    "a packet's place in its chain decides its answer",
    arguments: [
      Placement(dependency: "a3", operations: ["n1"], word: "applied"),
      Placement(dependency: "a3", operations: ["n1", "n2"], word: "applied"),
      Placement(dependency: nil, operations: ["a1", "a2"], word: "duplicate"),
      Placement(dependency: "a2", operations: ["a3"], word: "duplicate"),
      Placement(dependency: "unknown", operations: ["a3"], word: "buffered"),
      Placement(dependency: nil, operations: ["a1"], word: "duplicate"),
      Placement(dependency: nil, operations: ["n1"], word: "device_forked"),
      Placement(dependency: "a1", operations: ["n1"], word: "device_forked"),
      Placement(dependency: "a2", operations: ["a3", "n1"], word: "device_forked"),
      Placement(dependency: "unknown", operations: ["n1"], word: "buffered"),
      Placement(dependency: "unknown", operations: ["a3", "n1"], word: "buffered"),
      Placement(dependency: "b1", operations: ["n1"], word: "device_forked"),
      Placement(dependency: "b1", operations: ["a3"], word: "duplicate"),
      Placement(dependency: "unknown", operations: ["b1"], word: "buffered"),
      Placement(dependency: "a3", operations: ["b1"], word: "duplicate"),
      Placement(dependency: "a3", operations: ["b1", "n1"], word: "applied"),
    ])
  func placement(place: Placement) {
    var first = PacketMaker(1)
    var second = PacketMaker(2)
    let one = first.packet("a1", "a2")
    let two = first.packet("a3")
    let other = second.packet("b1")
    var known: [String: SyncOperation] = [:]
    for operation in one.operations + two.operations + other.operations
      + first.packet("n1", "n2").operations + PacketMaker.stranger.operations
    {
      known[operation.key.record.text] = operation
    }
    var space = IngestSpace()
    _ = space.send([one, two, other])
    let packet = Packet(
      device: first.device, dependency: place.dependency.flatMap { known[$0]?.id },
      operations: place.operations.compactMap { known[$0] })
    let result = space.send(packet)
    #expect(result.word == place.word)
    #expect(
      result.receipt.map { $0.status == .buffered || $0.outcomes.count == packet.operations.count }
        ?? true)
    #expect(space.send(packet).word == (place.word == "applied" ? "duplicate" : place.word))
  }

  @Test("a new device's packet waits until its dependency is part of the device's own chain")
  func newDevice() throws {
    var former = PacketMaker(2)
    let known = former.packet("b1")
    var space = IngestSpace()
    _ = space.send(known)
    let device = PacketMaker(1).device
    let later = Packet(
      device: device, dependency: known.tail, operations: PacketMaker.stranger.operations)
    #expect(space.send(later).word == "buffered")
    let first = Packet(device: device, dependency: nil, operations: known.operations)
    let answer = space.send(first)
    #expect(answer.word == "duplicate" && answer.released.map(\.status) == [.applied])
    #expect(space.send(later).word == "duplicate")
  }

  @Test("a packet of known operations extends the chain if it is the next link")
  func knownLink() {
    var first = PacketMaker(1)
    let packet = first.packet("a")
    var space = IngestSpace()
    _ = space.send(packet)
    let again = Packet(
      device: PacketMaker(2).device, dependency: nil, operations: packet.operations)
    #expect(space.send(again).word == "duplicate")
    #expect(space.chains[again.device]?.tail == packet.tail)
    #expect(space.chains[again.device]?.operations == 0)
    #expect(space.state.head == 1)
  }

  @Test("a transaction that a copy has already sent waits for no packet, in any order")
  func knownTransaction() {
    var maker = PacketMaker(1)
    let parts = [
      maker.packet("a", continues: true), maker.packet("b", continues: true), maker.packet("c"),
    ]
    let copy = Packet(
      device: PacketMaker(2).device, dependency: nil, operations: parts.flatMap(\.operations))
    for batches in Self.arrivals(3) {
      // The copy's packet comes before these, or after they came once without the last one.
      for isLate in [false, true] {
        var space = IngestSpace()
        if isLate { _ = space.send(Array(parts[..<2])) }
        #expect(space.send(copy).word == "applied")
        for batch in batches { _ = space.send(batch.map { parts[$0] }) }
        #expect(space.send(parts).map(\.word) == ["duplicate", "duplicate", "duplicate"])
        #expect(space.buffered.isEmpty && space.state.head == 3)
        #expect(space.chains[maker.device]?.tail == parts[2].tail)
      }
    }
  }

  @Test("packets that depend on each other in a circle stay buffered")
  func circle() {
    var maker = PacketMaker(1)
    var first = maker.packet("a", continues: true)
    var second = maker.packet("b", continues: true)
    first.dependency = second.tail
    second.dependency = first.tail
    var own = maker.packet("c")
    own.dependency = own.tail
    var space = IngestSpace()
    #expect(space.send([first, second, own]).map(\.word) == ["buffered", "buffered", "buffered"])
  }

  @Test("bodies of buffered packets are read only when the packets are released")
  func missing() {
    var maker = PacketMaker(1)
    let packets = [maker.packet("a"), maker.packet("b"), maker.packet("c"), maker.packet("d")]
    var space = IngestSpace()
    _ = space.send([packets[1], packets[3]])
    #expect(space.bodiesLoaded == 0)
    #expect(
      Ingest.plan([IncomingPacket(packets[0], byteCount: 1)], in: space.context(for: packets))
        .missing.map(\.tail) == [packets[1].tail])
    #expect(space.send(packets[0]).released.map(\.tail) == [packets[1].tail])
    #expect(space.bodiesLoaded == 1)
  }

  @Test("a packet that is cut differently replaces the buffered packet with the same tail")
  func recut() {
    var maker = PacketMaker(1)
    let first = maker.packet("a")
    let second = maker.packet("b")
    let third = maker.packet("c")
    var space = IngestSpace()
    #expect(space.send(third).word == "buffered")
    let joined = Packet(
      device: maker.device, dependency: first.tail,
      operations: second.operations + third.operations)
    #expect(space.send(joined).word == "buffered")
    #expect(space.buffered.count == 1)
    #expect(space.send(first).released.map(\.sequences) == [2...3])
  }
}

extension PacketMaker {
  /// Holds an operation unknown to every space, on record `unknown`.
  fileprivate static var stranger: Packet {
    var maker = PacketMaker(9)
    return maker.packet("unknown")
  }
}
