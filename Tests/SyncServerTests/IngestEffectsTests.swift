import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// Buffered, refused and written packets, by the machine alone.
@Suite(.hangLimit)
struct IngestEffectsTests {
  @Test("bounds count the packets buffered after a batch, not those that pass through")
  func boundsAfterBatch() {
    var maker = PacketMaker(1)
    let packets = (0..<150).map { maker.packet("r\($0)") }
    var space = IngestSpace()
    #expect(space.send(packets.reversed()).allSatisfy { $0.word == "applied" })
    let late = (150..<260).map { maker.packet("r\($0)") }
    let words = space.send(Array(late.dropFirst())).map(\.word)
    #expect(words.filter { $0 == "buffered" }.count == 100)
    #expect(words.suffix(9).allSatisfy { $0 == "buffer_full" })
    #expect(space.buffered.count == 100)
  }

  @Test("buffered bytes are bounded like buffered packets")
  func byteBound() {
    var maker = PacketMaker(1)
    let packets = (0..<4).map { maker.packet("r\($0)") }
    var space = IngestSpace()
    space.limits.bufferedBytes = 1_000
    #expect(
      space.send([packets[1], packets[2]], byteCount: 500).map(\.word) == ["buffered", "buffered"])
    #expect(space.send([packets[3]], byteCount: 1).map(\.word) == ["buffer_full"])
    #expect(space.send([packets[0]], byteCount: 5_000).map(\.word) == ["applied"])
  }

  @Test("a transaction larger than the buffer is refused with its reason")
  func transactionBound() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.limits.bufferedPackets = 3
    let parts = (0..<5).map { maker.packet("r\($0)", continues: $0 < 4) }
    #expect(parts.map { space.send($0).word }.suffix(2) == ["buffer_full", "buffer_full"])
  }

  @Test("the refusal of one packet does not affect the others of its batch")
  func refusalAlone() {
    var maker = PacketMaker(1)
    var other = PacketMaker(2)
    var reserved = maker.operation()
    reserved.key = RecordKey(table: "SQLITE_master", record: "x")
    var space = IngestSpace()
    let results = space.send([maker.packet([reserved]), other.packet("a"), maker.packet("b")])
    #expect(results.map(\.word) == ["operation_refused", "applied", "operation_refused"])
    #expect(space.rows.map(\.sequence) == [1])
  }

  @Test("a timestamp ahead of the limit becomes the next reading of the space's clock")
  func clamps() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    let limit = space.now + space.limits.clockSkewMax
    maker.milliseconds = limit - 1
    let onLimit = maker.operation(.insert, "a")
    maker.milliseconds = limit + 500_000
    let early = HybridTimestamp(milliseconds: limit - 50)
    let ahead = maker.operation(
      .update, "a", [Column("x", 1), Column("y", 1)], times: ["x": early, "y": onLimit.time])
    let further = maker.operation(.update, "a", [Column("z", 1)])
    _ = space.send(maker.packet([onLimit, ahead, further]))
    let clamp = HybridTimestamp(milliseconds: limit)
    #expect(space.rows.map(\.time) == [clamp, clamp.next, clamp.next.next])
    #expect(space.state.clock == clamp.next.next)
    let times = space.rows[1].times.map { String(decoding: $0, as: UTF8.self) }
    #expect(times == "{\"x\":\"\(early)\",\"y\":\"\(clamp)\"}")
    let columns = space.records[ahead.key]?.columns.map(\.stamp.time)
    #expect(columns == [early, clamp, clamp.next.next])
    space.now -= 3_600_000
    _ = space.send(maker.packet([maker.operation(.update, "a")]))
    #expect(space.rows.last?.time == clamp.next.next.next)
  }

  @Test("clamping makes no time later, and the history and the state have the same time")
  func clampsDownOnly() {
    var maker = PacketMaker(1)
    var other = PacketMaker(2)
    var space = IngestSpace()
    let limit = space.now + space.limits.clockSkewMax
    maker.milliseconds = limit + 500_000
    _ = space.send(maker.packet([maker.operation(.insert, "a")]))
    // The server's clock went back: the limit is an hour before the space's clock.
    space.now -= 3_600_000
    other.milliseconds = limit - 1_800_000
    let ahead = other.operation(.insert, "b", [Column("x", 1)])
    _ = space.send(other.packet([ahead]))
    #expect(space.rows.last?.time == ahead.time)
    #expect(space.records[ahead.key]?.inserted?.stamp.time == ahead.time)
    #expect(space.records[ahead.key]?.columns.map(\.stamp.time) == [ahead.time])
  }

  @Test("the history keeps an outcome only for operations that lost")
  func history() {
    var maker = PacketMaker(1)
    var other = PacketMaker(2)
    other.milliseconds -= 1_000
    var space = IngestSpace()
    _ = space.send(maker.packet([maker.operation(.insert, "a", [Column("x", "new")])]))
    _ = space.send(other.packet([other.operation(.update, "a", [Column("x", "old")])]))
    _ = space.send(maker.packet([maker.operation(.delete, "a")]))
    #expect(space.rows.map { $0.outcome != nil } == [false, true, false])
    #expect(space.rows.map { $0.data.map(text) } == [nil, #"{"x":"old"}"#, nil])
    let outcome = space.history[space.rows[1].id]?.outcome
    #expect(outcome?.isOverruled == true && outcome?.conflicts.map(\.lost) == ["old"])
  }

  @Test("the columns of an insert that creates a record are kept once")
  func keptOnce() {
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    var space = IngestSpace()
    func send(_ maker: inout PacketMaker, _ operations: [SyncOperation]) {
      #expect(space.send(maker.packet(operations)).word == "applied")
    }
    send(&maker, [maker.operation(.insert, "a", [Column("x", 1), Column("y", 2)])])
    send(&other, [other.operation(.update, "a", [Column("x", 3)])])
    send(&maker, [maker.operation(.update, "a", [Column("y", 4)])])
    // An update before the insert: the insert did not create all of the state.
    send(&other, [other.operation(.update, "b", [Column("x", 5)])])
    send(&maker, [maker.operation(.insert, "b", [Column("x", 6)])])
    // Both in one packet.
    send(
      &maker, [maker.operation(.insert, "c", [Column("x", 7)]), maker.operation(.delete, "c")])
    #expect(
      space.rows.map { $0.data.map(text) } == [
        nil, #"{"x":3}"#, #"{"y":4}"#, #"{"x":5}"#, #"{"x":6}"#, nil, nil,
      ])
    #expect(
      space.rows.map { $0.former.map(text) } == [
        nil, #"{"x":1,"y":2}"#, nil, nil, nil, nil, #"{"x":7}"#,
      ])
  }

  @Test("operations that change nothing do not copy the columns of an insert")
  func changesNothing() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    _ = space.send(maker.packet([maker.operation(.insert, "a", [Column("x", 1)])]))
    _ = space.send(maker.packet((0..<5).map { _ in maker.operation(.update, "a") }))
    _ = space.send(maker.packet([maker.operation(.update, "a", [Column("x", 2)])]))
    #expect(
      space.rows.map { $0.former.map(text) } == [nil, nil, nil, nil, nil, nil, #"{"x":1}"#])
  }

  @Test("a device whose entries were taken for new in vain is remembered, and no other")
  func mistaken() {
    let (first, second) = (PacketMaker(1).device, PacketMaker(2).device)
    func packet(_ device: DeviceID) -> IncomingPacket {
      IncomingPacket(Packet(device: device, dependency: nil, operations: []), byteCount: 1)
    }
    let devices = MistakenDevices()
    #expect(!devices.concern([packet(first)], in: 1))
    devices.record([packet(first)], in: 1)
    #expect(devices.concern([packet(second), packet(first)], in: 1))
    #expect(!devices.concern([packet(second)], in: 1) && !devices.concern([packet(first)], in: 2))
    for number in 3..<10_003 { devices.record([packet(PacketMaker(UInt64(number)).device)], in: 1) }
    #expect(!devices.concern([packet(first)], in: 1), "the memory is bounded")
  }

  private func text(_ json: [UInt8]) -> String { String(decoding: json, as: UTF8.self) }

  @Test("an operation without effect leaves no record behind")
  func emptyUpdate() {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    let packet = maker.packet([maker.operation(.update, "a"), maker.operation(.update, "b")])
    #expect(space.send(packet).word == "applied")
    #expect(space.records.isEmpty && space.rows.count == 2)
  }

  @Test("a batch without changes writes nothing")
  func nothingToWrite() throws {
    var maker = PacketMaker(1)
    let packet = maker.packet("a")
    var space = IngestSpace()
    _ = space.send(packet)
    let incoming = [IncomingPacket(packet, byteCount: 1)]
    let context = space.context(for: [packet])
    let effects = try Ingest.apply(Ingest.plan(incoming, in: context), to: incoming, in: context)
    #expect(effects.isEmpty)
    #expect(effects.batch.head == 1)
  }

  @Test("a chain keeps its last 100 tails")
  func recentTails() {
    var chain = DeviceChain(tail: OperationID(UniqueID(high: 0, low: 0)))
    for number in 1...250 { chain.append(OperationID(UniqueID(high: 0, low: UInt64(number)))) }
    #expect(chain.recent.count == DeviceChain.recentCount)
    #expect(chain.recent.last == chain.tail)
    #expect(chain.recent.first?.value.low == 151)
  }
}
