import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The ingest machine's counts of each principal's usage.
@Suite("Quotas in the ingest machine", .hangLimit)
struct IngestUsageTests {
  private static let members = (0..<3).compactMap { Principal("token:\($0)") }

  /// Returns a space after packets of three principals with two devices each: complete, early,
  /// merged in one transaction, of inserts, updates and deletes.
  private static func busySpace(_ seed: UInt64) -> IngestSpace {
    var random = SeededGenerator(seed: seed)
    var space = IngestSpace()
    var makers = (0..<6).map { PacketMaker(UInt64($0) + 1) }
    var held: [IncomingPacket] = []
    for _ in 0..<60 {
      var batch: [IncomingPacket] = []
      for _ in 0..<(1 + random.below(3)) {
        let device = random.below(6)
        let packet = makers[device].packet(
          (0..<(1 + random.below(3))).map { _ in
            let kind: OperationKind = [.insert, .update, .update, .delete][random.below(4)]
            let text = String(repeating: "x", count: random.below(300))
            let columns =
              kind == .delete ? [] : [Column("c\(random.below(3))", .text(text))]
            return makers[device].operation(kind, "r\(random.below(8))", columns)
          })
        let incoming = IncomingPacket(
          packet, byteCount: 10 + random.below(50), principal: members[device / 2])
        if random.below(5) == 0 { held.append(incoming) } else { batch.append(incoming) }
      }
      if random.below(4) == 0 {
        batch += held
        held = []
      }
      _ = space.send(batch)
    }
    return space
  }

  @Test("the counted usage equals the stored content after any packets of several principals")
  func recount() {
    for seed in 0..<20 {
      let space = Self.busySpace(UInt64(seed))
      let living = space.records.values.filter(\.isAlive)
      #expect(space.total.records == Int64(living.count), "seed \(seed)")
      let bytes = living.reduce(0) { $0 + $1.stored().count }
      #expect(space.total.bytes == Int64(bytes), "seed \(seed)")
      #expect(space.total.devices == Int64(space.owners.count), "seed \(seed)")
      #expect(space.total.packets == Int64(space.buffered.count), "seed \(seed)")
      let waiting = space.buffered.reduce(0) { $0 + $1.byteCount }
      #expect(space.total.packetBytes == Int64(waiting), "seed \(seed)")
      for member in Self.members {
        let usage = space.usage[member] ?? Usage()
        let devices = space.owners.filter { $0.value == member }
        #expect(usage.devices == Int64(devices.count), "seed \(seed)")
        let buffered = space.buffered.filter { devices[$0.key.device] != nil }
        #expect(usage.packets == Int64(buffered.count), "seed \(seed)")
        let bufferedBytes = buffered.reduce(0) { $0 + $1.byteCount }
        #expect(usage.packetBytes == Int64(bufferedBytes), "seed \(seed)")
      }
      #expect(space.usage.keys.allSatisfy { Self.members.contains($0) }, "seed \(seed)")
    }
  }

  @Test("each principal of a shared transaction is charged for its own packets' growth")
  func sharedTransaction() throws {
    var (first, second) = (PacketMaker(1), PacketMaker(2))
    second.milliseconds += 1_000
    var space = IngestSpace()
    let large = first.packet([
      first.operation(.insert, "a", [Column("x", .text(String(repeating: "x", count: 9_000)))])
    ])
    let small = second.packet([second.operation(.update, "a", [Column("y", 1)])])
    let results = space.send(
      zip([large, small], Self.members).map {
        IncomingPacket($0, byteCount: 9, principal: $1)
      })
    #expect(results.map(\.word) == ["applied", "applied"])
    let charged = Self.members.prefix(2).map { space.usage[$0]?.bytes ?? 0 }
    #expect(charged[0] > 9_000 && charged[1] < 500)
    #expect(charged[0] + charged[1] == space.total.bytes)
  }

  @Test("a packet above the quota does not affect other packets of its database transaction")
  func oneTooLarge() {
    var (first, second) = (PacketMaker(1), PacketMaker(2))
    var space = IngestSpace()
    space.quotas.principalBytes = 1_000
    let text = Value.text(String(repeating: "x", count: 2_000))
    let results = space.send([
      IncomingPacket(
        first.packet([first.operation(.insert, "a", [Column("x", text)])]), byteCount: 9,
        principal: Self.members[0]),
      IncomingPacket(second.packet("b"), byteCount: 9, principal: Self.members[1]),
    ])
    #expect(results.map(\.word) == ["storage_quota", "applied"])
    #expect(space.usage[Self.members[0]] == nil && space.owners.count == 1)
  }

  @Test("a half of a space's quota is for principals that have little, and nobody exceeds it")
  func shares() {
    // A half of 192 is 96, a share 3.
    for (added, own, all, isAdmitted) in [
      (1, 0, 0, true), (6, 90, 90, true), (7, 90, 90, false), (7, 2, 90, true),
      (1, 3, 96, false), (1, 2, 96, true), (96, 0, 96, true), (97, 0, 96, false),
      (1, 0, 191, true), (1, 0, 192, false), (1, 0, 500, false),
    ] as [(Int64, Int64, Int64, Bool)] {
      #expect(
        Quotas.admits(added, own: own, all: all, limit: 192) == isAdmitted,
        "\(added) to \(own) of \(all)")
    }
    #expect(Quotas.admits(1, own: 0, all: 2, limit: 3))
    #expect(Quotas.admits(1, own: 5, all: .max / 4, limit: .max))
  }

  @Test("a too large record is named by the operation that wrote most to it, never by a delete")
  func culprit() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.limits.recordStateBytes = 2_000
    func column(_ name: String, _ count: Int) -> [Column] {
      [Column(name, .text(String(repeating: "x", count: count)))]
    }
    let operations = [
      maker.operation(.insert, "a", column("a", 700)),
      maker.operation(.update, "a", column("b", 1_200)),
      maker.operation(.update, "a", column("c", 10)),
    ]
    let result = space.send(maker.packet(operations))
    #expect(result.refusals.map(\.operation) == [operations[1].id])
    #expect(result.refusals.map(\.code) == [.recordTooLarge])
    // In one packet with a delete, no record is too large in the end.
    var other = PacketMaker(2)
    let whole = other.packet([
      other.operation(.insert, "b", column("a", 1_500)),
      other.operation(.update, "b", column("b", 1_500)), other.operation(.delete, "b"),
    ])
    #expect(space.send(whole).word == "applied")
  }
}
