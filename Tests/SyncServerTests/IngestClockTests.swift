import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// A write whose author has seen a value is later than this value, whatever the clocks of devices
/// and servers show (SPEC.md §6).
@Suite("Wrong clocks", .hangLimit)
struct IngestClockTests {
  private static let minute: Int64 = 60_000

  /// A device with a separate clock that writes to one record.
  private struct Writer {
    var maker: PacketMaker
    var clock = HybridClock()
    var wall: Int64
    var base: SequenceNumber = 0

    init(_ number: UInt64, wall: Int64) {
      (maker, self.wall) = (PacketMaker(number), wall)
    }

    /// Pulls everything.
    mutating func look(at space: IngestSpace) {
      base = space.state.head
      for state in space.records.values {
        let stamps = [state.inserted?.stamp, state.deleted?.stamp].compactMap { $0 }
        for stamp in stamps + state.columns.map(\.stamp) { clock.observe(stamp.time) }
      }
    }

    mutating func write(_ kind: OperationKind, _ columns: [Column] = []) -> Packet {
      var operation = maker.operation(kind, "r", columns)
      operation.time = clock.tick(wall: wall)
      operation.base = base
      return maker.packet([operation])
    }
  }

  private func record(_ space: IngestSpace) throws -> RecordState {
    try #require(space.records[RecordKey(table: "t", record: "r")])
  }

  @Test(
    "an edit and a delete by an author who had seen the value win with any clock of the server",
    arguments: [-30, -120, -3_600, -86_400, -31_536_000, 31_536_000])
  func stepped(seconds: Int64) throws {
    var space = IngestSpace()
    var (first, second) = (Writer(1, wall: space.now), Writer(2, wall: space.now))
    _ = space.send(first.write(.insert, [Column("x", 1)]))
    // The clock of the next node. The second device corrects its clock by it.
    space.now += seconds * 1_000
    second.wall = space.now
    second.look(at: space)
    #expect(space.send(second.write(.update, [Column("x", 2)])).receipt?.outcomes == [.applied])
    #expect(try record(space).columns.map(\.value) == [2])
    second.look(at: space)
    #expect(space.send(second.write(.delete)).receipt?.outcomes == [.applied])
    #expect(try !record(space).isAlive)
  }

  @Test("devices can edit the rows that they have seen of a server a year ahead")
  func yearAhead() throws {
    var space = IngestSpace()
    let year = 525_600 * Self.minute
    space.now += year
    var first = Writer(1, wall: space.now)
    _ = space.send(first.write(.insert, [Column("x", 1)]))
    space.now -= year
    for round in 0..<3 {
      var other = Writer(UInt64(round + 2), wall: space.now)
      other.look(at: space)
      let value = Value.integer(Int64(round + 2))
      let result = space.send(other.write(.update, [Column("x", value)]))
      #expect(result.receipt?.outcomes == [.applied])
      #expect(try record(space).columns.map(\.value) == [value])
    }
  }

  @Test("the server's own writes are later than all earlier writes of devices")
  func serverWrites() {
    var state = SpaceState(epoch: Epoch(7))
    let far = HybridTimestamp(milliseconds: 5_000_000)
    #expect(state.admit(far, until: far) == far)
    #expect(state.tick(wall: 1_000) == far.next)
    #expect(state.tick(wall: 6_000_000) == HybridTimestamp(milliseconds: 6_000_000))
    #expect(state.admit(far, until: .zero) == far, "a time that is not ahead stays as it is")
  }

  @Test(
    "a clock reading succeeds at every time of every clock", arguments: [Int64.min, -1, 0, .max])
  func extremes(now: Int64) {
    var space = IngestSpace()
    space.now = now
    var writer = Writer(1, wall: .max)
    for round in 0..<3 {
      let packet = writer.write(.update, [Column("x", .integer(Int64(round)))])
      #expect(space.send(packet).word == "applied")
      let columns = space.records[RecordKey(table: "t", record: "r")]?.columns.map(\.value)
      #expect(columns == [.integer(Int64(round))])
    }
  }

  @Test("a random writer's values never lose to values that the writer had seen")
  func byChance() throws {
    var random = Chance()
    for _ in 0..<200 {
      var space = IngestSpace()
      var writers = (1...3).map { Writer(UInt64($0), wall: space.now) }
      _ = space.send(writers[0].write(.insert, [Column("x", 0)]))
      for round in 1...30 {
        let steps: [Int64] = [0, 1, 2_000, 120_000, 3_600_000, 86_400_000, 31_536_000_000]
        let size = steps[Int.random(in: 0..<steps.count, using: &random)]
        if Bool.random(using: &random) { space.now += Bool.random(using: &random) ? size : -size }
        let index = Int.random(in: 0..<3, using: &random)
        writers[index].wall = space.now + (Bool.random(using: &random) ? size : -size)
        let sees = Bool.random(using: &random)
        if sees { writers[index].look(at: space) }
        let value = Value.integer(Int64(round))
        let before = try record(space)
        _ = space.send(writers[index].write(.update, [Column("x", value)]))
        let after = try record(space)
        if sees { #expect(after.columns.map(\.value) == [value], "round \(round)") }
        #expect(after.columns[0].stamp >= before.columns[0].stamp)
        #expect(after.columns[0].stamp.time <= space.state.clock)
      }
    }
  }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
private struct Chance: RandomNumberGenerator {
  private var state: UInt64 = 13

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
