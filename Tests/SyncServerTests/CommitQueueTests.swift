import FerryProtocol
import TestSupport
import Testing

@testable import SyncServer

@Suite(.hangLimit)
struct CommitQueueTests {
  typealias Queue = CommitQueue<Int>

  static func packet(_ seed: UInt64, operations: Int = 1, bytes: Int = 100) -> IncomingPacket {
    IncomingPacket(.serviceSample(seed, operations: operations), byteCount: bytes)
  }

  @Test("a packet that comes alone goes at once")
  func goesAtOnce() {
    var queue = Queue(bounds: .init())
    #expect(queue.add(Self.packet(1), ticket: 1) == true)
    #expect(queue.takeBatch().map(\.ticket) == [1])
    #expect(queue.isCommitting)
    queue.finishBatch()
    #expect(queue.isIdle)
    #expect(queue.waitingBytes == 0)
  }

  @Test("packets that come while a transaction is under way go together in the next")
  func gathers() {
    var queue = Queue(bounds: .init())
    #expect(queue.add(Self.packet(0), ticket: 0) == true)
    #expect(queue.takeBatch().count == 1)
    for number in 1...5 {
      #expect(queue.add(Self.packet(UInt64(number)), ticket: number) == true)
      #expect(queue.takeBatch().isEmpty, "one transaction at a time")
    }
    queue.finishBatch()
    #expect(queue.takeBatch().map(\.ticket) == [1, 2, 3, 4, 5])
  }

  @Test("a packet with batch operations goes alone, in its turn")
  func alone() throws {
    var queue = Queue(bounds: .init())
    var maker = PacketMaker(1)
    for number in 0..<6 {
      let packet =
        number == 0 || number == 3
        ? maker.packet([try maker.batch(where: "true", [Column("v", 1)])]) : maker.packet("a")
      #expect(queue.add(IncomingPacket(packet, byteCount: 1), ticket: number) == true)
    }
    var batches: [[Int]] = []
    while !queue.isIdle {
      batches.append(queue.takeBatch().map(\.ticket))
      queue.finishBatch()
    }
    #expect(batches == [[0], [1, 2], [3], [4, 5]])
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
      #expect(queue.add(Self.packet(UInt64(number), operations: 10), ticket: number) == true)
    }
    var seen: [[Int]] = []
    while !queue.isIdle {
      seen.append(queue.takeBatch().map(\.ticket))
      queue.finishBatch()
    }
    #expect(seen.map(\.count) == sizes)
    #expect(seen.flatMap(\.self) == Array(0..<7), "none is lost, none overtakes")
    #expect(queue.waitingBytes == 0)
  }

  @Test("a full queue takes no more, by count and by bytes, until some have gone")
  func isFull() {
    var byCount = Queue(bounds: .init(waitingPackets: 2))
    #expect(byCount.add(Self.packet(1), ticket: 1) == true)
    #expect(byCount.add(Self.packet(2), ticket: 2) == true)
    #expect(byCount.add(Self.packet(3), ticket: 3) == false)
    #expect(byCount.takeBatch().count == 2)
    #expect(byCount.add(Self.packet(3), ticket: 3) == true)
    var byBytes = Queue(bounds: .init(waitingBytes: 250))
    #expect(byBytes.add(Self.packet(1, bytes: 200), ticket: 1) == true)
    #expect(byBytes.add(Self.packet(2, bytes: 51), ticket: 2) == false)
    #expect(byBytes.add(Self.packet(3, bytes: 50), ticket: 3) == true)
    var single = Queue(bounds: .init(waitingBytes: 10))
    #expect(single.add(Self.packet(1, bytes: 200), ticket: 1) == true, "one may always wait")
  }
}
