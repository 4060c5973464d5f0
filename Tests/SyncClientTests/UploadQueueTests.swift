import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Which operations of upload-only tables leave the queue and return to it (SPEC.md §17): the queue
/// in, places out.
@Suite("Operations of upload-only tables that failed", .hangLimit)
struct UploadQueueTests {
  private static func operation(
    _ order: Int64, in group: Int64, _ table: Name, _ record: Name
  ) -> UploadQueue.Operation {
    UploadQueue.Operation(
      order: order, group: group, key: RecordKey(table: table, record: record))
  }

  @Test("operations fail that the sync has reached and the server has not confirmed")
  func reached() {
    let queue = UploadQueue((1...5).map { Self.operation($0, in: $0, "logs", "r\($0)") })
    #expect(queue.failed(in: 2...4, of: ["logs"]) == [2, 3, 4])
  }

  @Test("a transaction that also wrote to another table does not fail")
  func mixed() {
    let queue = UploadQueue([
      Self.operation(1, in: 1, "logs", "a"), Self.operation(2, in: 1, "notes", "n"),
      Self.operation(3, in: 2, "logs", "b"), Self.operation(4, in: 2, "reports", "c"),
    ])
    #expect(queue.failed(in: 1...4, of: ["logs", "reports"]) == [3, 4])
    #expect(queue.failed(in: 1...4, of: ["logs"]) == [])
  }

  @Test("later operations on a failed record wait with their transactions, and so on")
  func followers() {
    let queue = UploadQueue([
      Self.operation(1, in: 1, "logs", "other"),
      Self.operation(2, in: 2, "logs", "b"), Self.operation(3, in: 2, "logs", "a"),
      Self.operation(4, in: 3, "logs", "b"), Self.operation(5, in: 3, "logs", "c"),
      Self.operation(6, in: 4, "logs", "c"), Self.operation(7, in: 5, "logs", "d"),
    ])
    let failed: Set<RecordKey> = [RecordKey(table: "logs", record: "a")]
    #expect(queue.followers(of: failed, after: 0, of: ["logs"]) == [2, 3, 4, 5, 6])
  }

  @Test("an operation before another one waits if that one's transaction wrote to its record")
  func followersBefore() {
    let queue = UploadQueue([
      Self.operation(1, in: 1, "logs", "b"), Self.operation(2, in: 2, "logs", "a"),
      Self.operation(3, in: 2, "logs", "b"),
    ])
    let failed: Set<RecordKey> = [RecordKey(table: "logs", record: "a")]
    #expect(queue.followers(of: failed, after: 0, of: ["logs"]) == [1, 2, 3])
  }

  @Test("batches on one table neither wait with each other nor return together")
  func batches() {
    let queue = UploadQueue([
      Self.operation(1, in: 1, "logs", "a"), Self.operation(2, in: 1, "logs", ""),
      Self.operation(3, in: 2, "logs", ""), Self.operation(4, in: 3, "logs", "a"),
    ])
    let failed: Set<RecordKey> = [RecordKey(table: "logs", record: "a")]
    #expect(queue.followers(of: failed, after: 0, of: ["logs"]) == [1, 2, 4])
    let batch: Set<RecordKey> = [RecordKey(table: "logs", record: "")]
    #expect(queue.followers(of: batch, after: 0, of: ["logs"]) == [])
    #expect(queue.returning { $0.order == 2 } == [1, 2, 4])
    #expect(queue.returning { $0.order == 3 } == [3])
  }

  @Test("an operation in a packet, or with another table, does not wait")
  func others() {
    let queue = UploadQueue([
      Self.operation(1, in: 1, "logs", "a"), Self.operation(2, in: 2, "logs", "a"),
      Self.operation(3, in: 2, "notes", "n"), Self.operation(4, in: 3, "logs", "a"),
    ])
    let failed: Set<RecordKey> = [RecordKey(table: "logs", record: "a")]
    #expect(queue.followers(of: failed, after: 1, of: ["logs"]) == [4])
  }

  @Test("operations return with their transactions and all others on the same records")
  func returning() {
    let queue = UploadQueue([
      Self.operation(1, in: 1, "logs", "a"), Self.operation(2, in: 1, "logs", "b"),
      Self.operation(5, in: 2, "logs", "b"), Self.operation(6, in: 3, "logs", "c"),
      Self.operation(7, in: 2, "logs", "d"),
    ])
    #expect(queue.returning { $0.key.record == "a" } == [1, 2, 5, 7])
    #expect(queue.returning { $0.key.record == "c" } == [6])
    #expect(queue.returning { $0.key.record == "e" } == [])
  }
}

/// Packets that lost operations (SPEC.md §17): their remaining operations in, changes out.
@Suite("Gaps in packets", .hangLimit)
struct PacketGapsTests {
  private static func id(_ number: UInt64) -> OperationID {
    OperationID(UniqueID(high: 1, low: number))
  }

  private static func packet(
    _ number: Int64, after dependency: UInt64?, _ operations: [UInt64]
  ) -> PacketGaps.Packet {
    PacketGaps.Packet(
      number: number, dependency: dependency.map(id), operations: operations.map(id))
  }

  @Test("the chain skips lost operations, and packets of which nothing is left")
  func skips() {
    let gaps = PacketGaps(in: [
      Self.packet(3, after: 9, [10]), Self.packet(4, after: 12, []),
      Self.packet(5, after: 14, [15, 16]),
    ])
    #expect(
      gaps.changes == [
        .replace(3, dependency: Self.id(9), tail: Self.id(10), operations: 1), .remove(4),
        .replace(5, dependency: Self.id(10), tail: Self.id(16), operations: 2),
      ])
    #expect(gaps.tail == Self.id(16))
  }

  @Test("the chain ends before the first packet if nothing is left")
  func nothingLeft() {
    let gaps = PacketGaps(in: [Self.packet(3, after: 9, []), Self.packet(4, after: 12, [])])
    #expect(gaps.changes == [.remove(3), .remove(4)])
    #expect(gaps.tail == Self.id(9))
    #expect(PacketGaps(in: [Self.packet(1, after: nil, [])]).tail == nil)
  }
}
