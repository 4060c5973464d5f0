import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// The ingest machine after history has been pruned.
@Suite("Packets after pruning", .hangLimit)
struct IngestPrunedTests {
  /// Returns a space in which a device has written some packets, all pruned but the last operation.
  static func pruned(packets: Int) -> (IngestSpace, PacketMaker, [Packet]) {
    var (space, maker) = (IngestSpace(), PacketMaker(1))
    var sent: [Packet] = []
    for number in 0..<packets {
      sent.append(maker.packet("a\(number)", "b\(number)"))
      _ = space.send(sent[number])
    }
    space.prune()
    return (space, maker, sent)
  }

  @Test("a pruned packet is a duplicate, overruled for its author and without sequences")
  func duplicate() throws {
    var (space, _, sent) = Self.pruned(packets: 3)
    let head = space.state.head
    let receipt = try #require(space.send(sent[0]).receipt)
    #expect(receipt.status == .duplicate)
    #expect(receipt.outcomes == [Outcome(isOverruled: true), Outcome(isOverruled: true)])
    #expect(receipt.sequences == nil)
    #expect(space.state.head == head)
  }

  @Test("effects of a batch that is applied again have new identifiers")
  func batchAgain() throws {
    var (space, maker) = (IngestSpace(), PacketMaker(1))
    _ = space.send(maker.packet("a", "b"))
    let batch = try maker.batch(where: "true", [Column("w", 1)])
    _ = space.send(maker.packet([batch]))
    space.prune()
    let kept = space.rows.filter { $0.sequence >= space.state.retentionHorizon }.map(\.id)
    #expect(kept.count == 1)
    let copy = Packet(device: PacketMaker(2).device, dependency: nil, operations: [batch])
    #expect(space.send(copy).word == "applied")
    let ids = space.rows.filter { $0.sequence >= space.state.retentionHorizon }.map(\.id)
    #expect(ids.count == 4 && Set(ids).count == 4)
  }

  @Test("an operation made at the retention horizon or later never counts as pruned")
  func newOperation() {
    var (space, maker, sent) = Self.pruned(packets: 3)
    var copy = sent[1].operations
    copy[0] = maker.operation(.insert, "mine", [Column("v", 1)])
    copy[0].base = space.state.retentionHorizon
    let packet = Packet(
      device: maker.device, dependency: sent[1].dependency, operations: copy)
    #expect(space.send(packet).word == "device_forked")
  }

  @Test("a packet with a pruned packet's tail and a later operation is a fork")
  func laterOperation() {
    var (space, maker, sent) = Self.pruned(packets: 3)
    let mine = maker.operation(.insert, "mine", [Column("v", 1)])
    let packet = Packet(
      device: maker.device, dependency: sent[1].dependency,
      operations: [mine, sent[1].operations[1]])
    #expect(space.send(packet).word == "device_forked")
  }

  @Test("another packet in a pruned packet's place is a fork")
  func otherTail() {
    var (space, maker, sent) = Self.pruned(packets: 3)
    let packet = Packet(
      device: maker.device, dependency: sent[0].tail,
      operations: [maker.operation(.insert, "mine", [Column("v", 1)])])
    #expect(space.send(packet).word == "device_forked")
  }

  @Test("only a chain that has forgotten packets treats an unknown dependency as a forgotten one")
  func forgotten() {
    let unknown = OperationID(UniqueID(high: 1, low: 0))
    for (packets, word) in [
      (DeviceChain.recentCount - 1, "buffered"), (DeviceChain.recentCount, "device_forked"),
    ] {
      var (space, maker, _) = Self.pruned(packets: packets)
      let packet = Packet(
        device: maker.device, dependency: unknown,
        operations: [maker.operation(.insert, "mine", [Column("v", 1)])])
      #expect(space.send(packet).word == word, "\(packets) packets")
    }
  }

  @Test("a packet is buffered if its dependency is later than the remembered chain")
  func early() {
    var (space, maker, _) = Self.pruned(packets: 120)
    _ = maker.packet("on its way")
    #expect(space.send(maker.packet("early")).word == "buffered")
  }
}
