import FerryConformance
import FerryProtocol

/// Draws the receipts of a hostile server for packets that it drops or spoils.
struct FalseReceipts {
  private var random: SeededRandom
  /// True if it claims to buffer packets.
  private let buffers: Bool

  init(random: SeededRandom, buffers: Bool) { (self.random, self.buffers) = (random, buffers) }

  /// Returns the answer to a dropped packet, with a description.
  ///
  /// - Parameters:
  ///   - head: of the honest server.
  ///   - known: the last operations of the packets sent by the device.
  mutating func answer(
    for packet: Packet, at head: PageHead, _ known: [OperationID]
  ) -> (PacketAnswer, String) {
    let count = SequenceNumber(packet.operations.count)
    let next = head.head + 1...head.head + max(1, count)
    let behind = max(1, head.head - count + 1)...max(1, head.head - count + 1) + max(0, count - 1)
    let done = [Outcome](repeating: .applied, count: packet.operations.count)
    let tail = packet.tail ?? OperationID(UniqueID(high: 0, low: 0))
    var answer = PacketAnswer(
      receipt: PacketReceipt(tail: tail, status: .applied, outcomes: done), epoch: head.epoch,
      head: head.head, serverTime: time(head.serverTime))
    let lie: String
    switch random.below(10) {
    case 0, 1:
      answer.receipt = PacketReceipt(
        tail: tail, status: .applied, sequences: next, outcomes: done,
        historyHashBefore: head.cursor.anchor?.historyHash ?? HistoryHash.empty,
        historyHash: random.next(), timeline: head.cursor.anchor?.timeline)
      answer.head = next.upperBound
      lie = "applied at \(next), with a history hash"
    case 2: lie = "applied without places"
    case 3:
      answer.receipt = PacketReceipt(tail: tail, status: .duplicate, outcomes: done)
      lie = "a duplicate without places"
    case 4:
      answer.receipt = PacketReceipt(
        tail: tail, status: random.chance(1, in: 2) ? .applied : .duplicate, sequences: behind,
        outcomes: done, historyHashBefore: random.next(), historyHash: random.next())
      answer.head = max(head.head, behind.upperBound)
      lie = "\(answer.receipt.status) at \(behind), behind the head"
    case 5:
      answer.receipt = PacketReceipt(tail: OperationID(id()), status: .applied, outcomes: done)
      lie = "applied, of another packet"
    case 6 where buffers:
      answer.receipt = PacketReceipt(tail: tail, status: .buffered)
      lie = "buffered"
    case 7:
      answer.receipt = PacketReceipt(
        tail: tail, status: .applied,
        outcomes: done.map { _ in Outcome(isOverruled: true) })
      lie = "applied and overruled"
    case 8:
      let others = known.suffix(3).map {
        PacketReceipt(tail: $0, status: .applied, outcomes: done)
      }
      answer.released = others + [answer.receipt]
      lie = "applied, with the receipts of other packets"
    default: return (spoil(answer), "another number of results")
    }
    return (answer, lie)
  }

  /// Returns an answer with fewer or more results, or with none.
  mutating func spoil(_ answer: PacketAnswer) -> PacketAnswer {
    var answer = answer
    let receipt = answer.receipt
    var outcomes = receipt.outcomes
    switch random.below(4) {
    case 0: outcomes = []
    case 1: outcomes.append(.applied)
    case 2: outcomes += outcomes + [.applied]
    default: outcomes = Array(outcomes.dropLast())
    }
    answer.receipt = PacketReceipt(
      tail: receipt.tail, status: receipt.status, sequences: receipt.sequences,
      outcomes: outcomes, historyHashBefore: receipt.historyHashBefore,
      historyHash: receipt.historyHash, timeline: receipt.timeline)
    return answer
  }

  private mutating func id() -> UniqueID { UniqueID(timestamp: .zero, random: random.next()) }

  private mutating func time(_ right: Int64) -> Int64 {
    switch random.below(8) {
    case 0: 0
    case 1: Limits.wallTimeMax
    default: right
    }
  }
}
