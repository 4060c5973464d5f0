import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct CommitQueueTests {
  typealias Queue = CommitQueue<Int>

  static func packet(_ seed: UInt64, operations: Int = 1, bytes: Int = 100) -> IncomingPacket {
    IncomingPacket(.serviceSample(seed, operations: operations), byteCount: bytes)
  }

  @Test("a single packet is committed at once")
  func goesAtOnce() {
    var queue = Queue(bounds: .init())
    #expect(queue.add(Self.packet(1), ticket: 1).isEmpty)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [1])
    #expect(!queue.isIdle)
    queue.finishBatch(.plain)
    #expect(queue.isIdle)
    #expect(queue.waitingBytes == 0)
  }

  @Test("packets that arrive during a transaction share the next one")
  func gathers() {
    var queue = Queue(bounds: .init())
    #expect(queue.add(Self.packet(0), ticket: 0).isEmpty)
    #expect(queue.dequeueBatch(.plain).count == 1)
    for number in 1...5 {
      #expect(queue.add(Self.packet(UInt64(number)), ticket: number).isEmpty)
      #expect(queue.dequeueBatch(.plain).isEmpty, "one transaction at a time")
    }
    queue.finishBatch(.plain)
    #expect(queue.add(Self.packet(6), ticket: 6).isEmpty)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [1, 2, 3, 4, 5, 6])
  }

  @Test("after small packets of several devices, the next transaction waits for all of them")
  func waitsForReturns() throws {
    var queue = Queue(bounds: .init())
    func add(_ numbers: ClosedRange<Int>) {
      for number in numbers {
        #expect(queue.add(Self.packet(UInt64(number)), ticket: number).isEmpty)
      }
    }
    add(1...3)
    #expect(queue.dequeueBatch(.plain).count == 3)
    add(4...5)
    let wait = queue.finishBatch(.plain)
    let first = try #require(wait)
    #expect(queue.dequeueBatch(.plain).isEmpty, "three come back")
    add(6...7)
    #expect(queue.dequeueBatch(.plain).isEmpty)
    add(8...8)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [4, 5, 6, 7, 8])
    queue.endGathering(first)
    let nextWait = queue.finishBatch(.plain)
    let second = try #require(nextWait)
    #expect(!queue.isIdle, "the number of devices is kept")
    add(9...10)
    queue.endGathering(first)
    #expect(queue.dequeueBatch(.plain).isEmpty, "another wait has ended")
    queue.endGathering(second)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [9, 10])
    #expect(queue.finishBatch(.plain) == nil, "too few devices")
    #expect(queue.isIdle && queue.waitingBytes == 0)
  }

  @Test("no transaction waits after large packets, for more than fits, or for a search")
  func doesNotWait() throws {
    func expectNoWait(
      _ bounds: Queue.Bounds = .init(), first: [IncomingPacket], then: [IncomingPacket] = []
    ) {
      var queue = Queue(bounds: bounds)
      for packet in first { #expect(queue.add(packet, ticket: 0).isEmpty) }
      #expect(queue.dequeueBatch(.plain).count == first.count)
      for packet in then { #expect(queue.add(packet, ticket: 0).isEmpty) }
      #expect(queue.finishBatch(.plain) == nil)
    }
    let packets = (0..<6).map { Self.packet(UInt64($0)) }
    expectNoWait(first: (0..<6).map { Self.packet($0, operations: 100) })
    expectNoWait(.init(batchPackets: 6), first: packets, then: packets)
    expectNoWait(
      .init(batchOperations: 20), first: packets, then: [Self.packet(9, operations: 20)])
    expectNoWait(.init(batchBytes: 1_000), first: packets, then: [Self.packet(9, bytes: 1_000)])
    var maker = PacketMaker(9)
    let search = maker.packet([try maker.batch(where: "true", [Column("v", 1)])])
    expectNoWait(first: packets, then: [IncomingPacket(search, byteCount: 1)])
  }

  @Test("a packet with batch operations is committed alone, while other devices' packets continue")
  func alone() throws {
    var queue = Queue(bounds: .init())
    var makers = [PacketMaker(1), PacketMaker(2)]
    for number in 0..<8 {
      let packet =
        number % 4 == 0
        ? makers[0].packet([try makers[0].batch(where: "true", [Column("v", 1)])])
        : makers[number % 2].packet("a")
      #expect(queue.add(IncomingPacket(packet, byteCount: 1), ticket: number).isEmpty)
    }
    #expect(queue.dequeueBatch(.searching).map(\.ticket) == [0])
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [1, 3, 5, 7], "the other device's")
    #expect(queue.dequeueBatch(.searching).isEmpty, "one at a time")
    queue.finishBatch(.plain)
    #expect(queue.dequeueBatch(.plain).isEmpty, "a device's packets keep their order")
    queue.finishBatch(.searching)
    #expect(queue.dequeueBatch(.searching).isEmpty, "2 is before 4")
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [2])
    #expect(queue.dequeueBatch(.searching).isEmpty, "2 is under way")
    queue.finishBatch(.plain)
    #expect(queue.dequeueBatch(.searching).map(\.ticket) == [4])
    queue.finishBatch(.searching)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [6])
    queue.finishBatch(.plain)
    #expect(queue.isIdle && queue.waitingBytes == 0)
  }

  @Test(
    "a batch ends at its bounds of packets, operations and bytes",
    arguments: [
      (Queue.Bounds(batchPackets: 3), [3, 3, 1]),
      (Queue.Bounds(batchOperations: 20), [2, 2, 2, 1]),
      (Queue.Bounds(batchBytes: 450), [4, 3]),
      (Queue.Bounds(batchOperations: 1, batchBytes: 1), [1, 1, 1, 1, 1, 1, 1]),
    ])
  func bounds(_ bounds: Queue.Bounds, _ sizes: [Int]) {
    var queue = Queue(bounds: bounds)
    for number in 0..<7 {
      #expect(queue.add(Self.packet(UInt64(number), operations: 10), ticket: number).isEmpty)
    }
    var seen: [[Int]] = []
    while !queue.isIdle {
      seen.append(queue.dequeueBatch(.plain).map(\.ticket))
      if let wait = queue.finishBatch(.plain) { queue.endGathering(wait) }
    }
    #expect(seen.map(\.count) == sizes)
    #expect(seen.flatMap(\.self) == Array(0..<7), "none is lost, none overtakes")
    #expect(queue.waitingBytes == 0)
  }

  @Test("a full queue, by count or by bytes, refuses packets until some have left")
  func isFull() {
    var byCount = Queue(bounds: .init(waitingPackets: 2))
    #expect(byCount.add(Self.packet(1), ticket: 1).isEmpty)
    #expect(byCount.add(Self.packet(2), ticket: 2).isEmpty)
    #expect(byCount.add(Self.packet(3), ticket: 3).map(\.ticket) == [3])
    #expect(byCount.dequeueBatch(.plain).count == 2)
    #expect(byCount.add(Self.packet(3), ticket: 3).isEmpty)
    var byBytes = Queue(bounds: .init(waitingBytes: 250))
    #expect(byBytes.add(Self.packet(1, bytes: 200), ticket: 1).isEmpty)
    #expect(byBytes.add(Self.packet(2, bytes: 51), ticket: 2).map(\.ticket) == [2])
    #expect(byBytes.add(Self.packet(3, bytes: 50), ticket: 3).isEmpty)
    var single = Queue(bounds: .init(waitingBytes: 10))
    #expect(single.add(Self.packet(1, bytes: 200), ticket: 1).isEmpty, "one may always wait")
  }

  // MARK: Accounts

  private static func packet(
    _ seed: UInt64, of user: String, bytes: Int = 100
  ) throws -> IncomingPacket {
    IncomingPacket(
      .serviceSample(seed), byteCount: bytes, principal: try #require(Principal("owner:\(user)")))
  }

  @Test("a packet behind hundreds of another account goes with the next transaction")
  func turns() throws {
    var queue = Queue(bounds: .init(batchPackets: 4))
    for number in 0..<400 {
      #expect(queue.add(try Self.packet(UInt64(number), of: "ada"), ticket: number).isEmpty)
    }
    #expect(queue.add(try Self.packet(900, of: "eve"), ticket: 900).isEmpty)
    #expect(queue.add(try Self.packet(901, of: "eve"), ticket: 901).isEmpty)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [0, 900, 1, 901])
    if let wait = queue.finishBatch(.plain) { queue.endGathering(wait) }
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [2, 3, 4, 5])
    #expect(queue.waitingCount == 394 && queue.waitingBytes == 39_400)
  }

  @Test("the packets of a device keep their order among the turns")
  func order() throws {
    var queue = Queue(bounds: .init(batchPackets: 3))
    for ticket in 0..<4 {
      #expect(queue.add(try Self.packet(1, of: "ada"), ticket: ticket).isEmpty)
    }
    #expect(queue.add(try Self.packet(2, of: "eve"), ticket: 9).isEmpty)
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [0, 9, 1])
    if let wait = queue.finishBatch(.plain) { queue.endGathering(wait) }
    #expect(queue.dequeueBatch(.plain).map(\.ticket) == [2, 3])
  }

  @Test("a full queue has room for an account with little in it, by count and by bytes")
  func fullOfOne() throws {
    var byCount = Queue(bounds: .init(waitingPackets: 3))
    for ticket in 0..<3 {
      #expect(byCount.add(try Self.packet(UInt64(ticket), of: "ada"), ticket: ticket).isEmpty)
    }
    #expect(try byCount.add(Self.packet(9, of: "eve"), ticket: 9).map(\.ticket) == [2])
    #expect(byCount.dequeueBatch(.plain).map(\.ticket) == [0, 9, 1])
    var byBytes = Queue(bounds: .init(waitingBytes: 250))
    for ticket in 0..<2 {
      let packet = try Self.packet(UInt64(ticket), of: "ada", bytes: 120)
      #expect(byBytes.add(packet, ticket: ticket).isEmpty)
    }
    let small = try Self.packet(9, of: "eve", bytes: 50)
    #expect(byBytes.add(small, ticket: 9).map(\.ticket) == [1])
    #expect(byBytes.waitingBytes == 170 && byBytes.waitingCount == 2)
  }
}
