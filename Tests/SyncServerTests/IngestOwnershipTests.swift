import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// Members of a space that send under other members' device identifiers.
@Suite("Owners of devices in the ingest machine", .hangLimit)
struct IngestOwnershipTests {
  private static let victim = Principal("token:victim") ?? .anonymous
  private static let attacker = Principal("token:attacker") ?? .anonymous

  /// Returns the victim's responses, and the space in the end.
  private static func story(isAttacked: Bool) -> (answers: [IngestResult], space: IngestSpace) {
    var space = IngestSpace()
    var (own, forger) = (PacketMaker(1), PacketMaker(1))
    forger.milliseconds += 500
    let packets = (0..<12).map { own.packet("a\($0)", "b\($0)", continues: $0 % 5 == 2) }
    // Two of them arrive late, so others are buffered.
    let order = [0, 2, 3, 1, 4, 5, 8, 7, 6, 9, 10, 11]
    var answers: [IngestResult] = []
    for (step, index) in order.enumerated() {
      if isAttacked, step > 0 {
        let known = packets[order[step - 1]]
        for dependency in [nil, known.dependency, known.tail, packets[index].dependency] {
          for operations in [known.operations, [forger.operation(.delete, "a0")]] {
            let forged = Packet(
              device: own.device, dependency: dependency, operations: operations,
              continues: step % 2 == 0)
            #expect(space.send(forged, from: attacker).code == .deviceTaken)
          }
        }
        // Beside the victim's packet, in one transaction.
        let forged = Packet(
          device: own.device, dependency: packets[index].dependency,
          operations: [forger.operation(.delete, "a0")])
        let results = space.send([
          IncomingPacket(forged, byteCount: 9, principal: attacker),
          IncomingPacket(packets[index], byteCount: 100, principal: victim),
          IncomingPacket(forged, byteCount: 9, principal: attacker),
        ])
        #expect([results[0].code, results[2].code] == [.deviceTaken, .deviceTaken])
        answers.append(results[1])
      } else {
        answers.append(space.send(packets[index], from: victim))
      }
    }
    return (answers, space)
  }

  @Test("packets that others send under a device's name do not change its owner's results")
  func undisturbed() {
    let (calm, attacked) = (Self.story(isAttacked: false), Self.story(isAttacked: true))
    #expect(calm.answers == attacked.answers)
    #expect(calm.answers.last?.word == "applied")
    #expect(calm.space.records == attacked.space.records)
    #expect(calm.space.chains == attacked.space.chains)
    #expect(calm.space.state == attacked.space.state)
    #expect(calm.space.usage == attacked.space.usage)
    #expect(attacked.space.owners == [PacketMaker(1).device: Self.victim])
  }

  @Test("a packet of too many bytes of records under another's device drops nothing of it")
  func tooLarge() {
    var (space, own) = (IngestSpace(), PacketMaker(1))
    let packets = ["a", "b", "c"].map { own.packet($0) }
    #expect(space.send(packets[0], from: Self.victim).word == "applied")
    #expect(space.send(packets[2], from: Self.victim).word == "buffered")
    let forged = Packet(
      device: own.device, dependency: packets[0].tail,
      operations: [own.operation(.delete, "a")])
    space.lacksStates = true
    #expect(space.send(forged, from: Self.attacker).code == .deviceTaken)
    space.lacksStates = false
    #expect(space.buffered.map(\.key.tail) == [packets[2].tail])
    #expect(space.send(packets[1], from: Self.victim).released.count == 1)
  }

  @Test("an operation that claims to have seen a future sequence is refused, in each packet")
  func baseAhead() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    _ = space.send(maker.packet("a"))
    for base: SequenceNumber in [2, 3, .max] {
      var operations = [maker.operation(.insert, "b"), maker.operation(.update, "a")]
      operations[1].base = base
      let packet = Packet(device: maker.device, dependency: maker.tail, operations: operations)
      #expect(space.send(packet).code == .cursorAhead, "\(base)")
    }
    var fits = maker.operation(.update, "a")
    fits.base = 1
    #expect(space.send(maker.packet([fits])).word == "applied")
  }

  @Test("the nil identifier is the server's: a packet that uses it is malformed")
  func nilIdentifier() {
    let packet = """
      {"device":"00000000-0000-0000-0000-000000000000","operations":[{"id":"\
      0199c82c-c001-7000-800a-000000000001","table":"t","record":"r","kind":"delete","time":"\
      0199c82cc0010000"}]}
      """
    #expect(throws: MalformedMessage.self) {
      try Packet(decoding: Array(packet.utf8), limits: .standard)
    }
  }
}
