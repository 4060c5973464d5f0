import FerryProtocol

/// An ``Outbox``'s questions about the operations of packets.
protocol OutboxLedger {
  /// Returns the lowest base of the operations at these places that receive others' changes; `nil`
  /// without any.
  ///
  /// - Parameter metOnly: true to count only operations with a received change of their record.
  func lowestBase(in orders: ClosedRange<Int64>, metOnly: Bool) throws -> SequenceNumber?
}

/// The packets after a device's cursor, and the rules for receipts, losses and new identifiers
/// (SPEC.md §4, §5, §18).
///
/// A pure machine. The storage loads it, applies one event, and stores the changes.
struct Outbox: Equatable {
  /// The packets in the order of their numbers.
  private(set) var packets: [FrozenPacket]
  private(set) var state: SyncState
  /// True after the cursor moved back: staged pages are obsolete.
  private(set) var isPulledAgain = false

  init(_ packets: [FrozenPacket], _ state: SyncState) {
    (self.packets, self.state) = (packets, state)
  }

  /// The packets not confirmed by the server.
  var open: [FrozenPacket] { packets.filter { $0.state != .acknowledged } }

  // MARK: Receipts

  /// Applies the receipts of one answer.
  ///
  /// - Returns: The receipts that newly confirm a packet, each with the packet.
  /// - Throws: ``ReplicaError/unexpectedAnswer(status:_:)`` for a receipt that cannot belong to its
  ///   packet; then nothing is confirmed.
  mutating func apply(
    _ answer: PacketAnswer, _ ledger: some OutboxLedger
  ) throws -> [(receipt: PacketReceipt, packet: FrozenPacket)] {
    var confirmed: [(receipt: PacketReceipt, packet: FrozenPacket)] = []
    for receipt in [answer.receipt] + answer.released {
      guard let packet = packets.first(where: { $0.tail == receipt.tail }) else { continue }
      if let fault = packet.fault(in: receipt, head: answer.head) {
        throw ReplicaError.unexpectedAnswer(status: 200, fault)
      }
    }
    for receipt in [answer.receipt] + answer.released {
      guard
        let index = packets.firstIndex(where: {
          $0.tail == receipt.tail && $0.state != .acknowledged
        })
      else { continue }
      packets[index].apply(receipt, head: answer.head, after: state.applied)
      if receipt.status == .buffered { continue }
      confirmed.append((receipt, packets[index]))
      try pullAgain(index, receipt, ledger)
    }
    state.head = max(state.head, answer.head)
    advanceOverOwn(answer.epoch)
    return confirmed
  }

  /// Moves the cursor back to the place it had at the time of a packet's operations. A copy of this
  /// file may have sent them, to places behind the cursor. While the device pulled them, own
  /// operations still shielded the records. The next pull fetches the server's values.
  private mutating func pullAgain(
    _ index: Int, _ receipt: PacketReceipt, _ ledger: some OutboxLedger
  ) throws {
    if let sequences = receipt.sequences, sequences.lowerBound > state.applied { return }
    let base = try ledger.lowestBase(in: packets[index].orders, metOnly: false)
    if goBack(to: base) { packets[index].isClean = false }
  }

  /// Moves the cursor over this device's confirmed packets if no other device's change is between
  /// them. The replica then equals the server and need not pull own operations. The cursor stays if
  /// the server had changes of the same records.
  private mutating func advanceOverOwn(_ epoch: Epoch) {
    guard state.epoch == epoch, state.received == state.applied else { return }
    let own = packets.filter { $0.state == .acknowledged && $0.first != nil && !$0.hasMet }
    var advance = OwnAdvance(applied: state.applied, anchor: state.anchor)
    for packet in own.sorted(by: { $0.first ?? 0 < $1.first ?? 0 }) { advance.advance(packet) }
    guard advance.applied > state.applied else { return }
    (state.applied, state.received) = (advance.applied, advance.applied)
    state.anchor = advance.anchor
  }

  /// The last place in the queue for the archive: the server has confirmed everything up to it, and
  /// the cursor has passed it. Until then, operations shield the user's values from older pages.
  var coveredOrder: Int64? {
    var order: Int64?
    for packet in packets {
      guard packet.state == .acknowledged else { break }
      guard let last = packet.last else { continue }
      if last > state.applied { break }
      order = packet.orders.upperBound
    }
    return order
  }

  // MARK: The chain as a page names it

  /// Confirms everything up to an operation: it is in the history, even if the answer was lost on
  /// the way.
  ///
  /// - Parameter head: a head with the operation in the history.
  /// - Returns: True if the cursor had to go back. Unknown places may be behind the cursor, from a
  ///   copy of this file. Then changes that came while the operations were pending must be pulled
  ///   again.
  mutating func confirm(
    through tail: OperationID, head: SequenceNumber, _ ledger: some OutboxLedger
  ) throws -> Bool {
    guard let end = packets.firstIndex(where: { $0.tail == tail }) else { return false }
    let base = try confirm(packets.startIndex...end, head, ledger)
    for index in packets.startIndex...end { packets[index].isInChain = true }
    return goBack(to: base)
  }

  /// Confirms the open ones of these packets at unknown places. Returns the lowest base of their
  /// operations on records with a received change.
  ///
  /// A receipt lied if it named a place past this head, although the server has the packet at this
  /// head. The packet's operations would shield their records from pages that contain them.
  private mutating func confirm(
    _ indices: ClosedRange<Int>, _ head: SequenceNumber, _ ledger: some OutboxLedger
  ) throws -> SequenceNumber? {
    var lowest: SequenceNumber?
    for index in indices
    where packets[index].state != .acknowledged || packets[index].last ?? 0 > head {
      if packets[index].hasMet,
        let base = try ledger.lowestBase(in: packets[index].orders, metOnly: true)
      {
        lowest = min(lowest ?? base, base)
      }
      packets[index].state = .acknowledged
      (packets[index].first, packets[index].last) = (nil, head)
      packets[index].isClean = false
    }
    return lowest
  }

  /// Opens the confirmed packets after one of them again: the server has lost them.
  mutating func sendAgain(after number: Int64) {
    for index in packets.indices
    where packets[index].number > number && packets[index].state == .acknowledged {
      packets[index].reopen()
    }
  }

  // MARK: A new chain

  /// Confirms the packets that the server must have, before the device chooses another identifier.
  /// Returns the packets at the start of the new chain.
  mutating func leaveIdentity(_ ledger: some OutboxLedger) throws -> [FrozenPacket] {
    Array(packets[try confirmChain(before: packets.endIndex, ledger)...])
  }

  /// Confirms the packets up to the last one in this device's chain. Returns the index of the next
  /// packet: nothing from there on is known to be in the history.
  ///
  /// A packet before one in this device's chain is in the history as well. This does not hold for a
  /// packet of a copy: the copy may have omitted the one before. A packet confirmed only by a
  /// receipt is sent again: no page of the new identifier could contradict this receipt.
  ///
  /// - Parameter end: the index after the packets that may be in the chain.
  private mutating func confirmChain(before end: Int, _ ledger: some OutboxLedger) throws -> Int {
    let isProved = { (packet: FrozenPacket) in packet.isInChain && packet.state == .acknowledged }
    guard let last = packets[..<end].lastIndex(where: isProved) else { return packets.startIndex }
    goBack(to: try confirm(packets.startIndex...last, state.head, ledger))
    for index in packets.startIndex...last { packets[index].isInChain = true }
    return last + 1
  }

  /// Starts a chain with some of the packets, in their order and unchanged. Others are no part of
  /// it.
  mutating func beginChain(with kept: [FrozenPacket]) {
    var dependency: OperationID?
    for packet in kept {
      guard let index = packets.firstIndex(where: { $0.number == packet.number }) else { continue }
      packets[index].reopen()
      packets[index].dependency = dependency
      dependency = packet.tail
    }
  }

  /// Returns the packets at the start of a new chain after a packet was refused, and the first
  /// packet to cut again.
  ///
  /// Open packets before the refused one stay unchanged: the server may have applied them, and
  /// recognises their operations only in their merged form. So do packets confirmed only by a
  /// receipt. Both follow the last packet in this device's chain: the new chain has no gap, because
  /// a page names only the chain's end. The server has dropped the first parts of the refused
  /// packet's transaction, so they are cut again as well.
  mutating func cut(
    from refused: FrozenPacket, _ ledger: some OutboxLedger
  ) throws -> (kept: [FrozenPacket], first: FrozenPacket) {
    let end = packets.firstIndex { $0.number >= refused.number } ?? packets.endIndex
    var kept = Array(packets[try confirmChain(before: end, ledger)..<end])
    var first = refused
    while let part = kept.last, part.continues, part.state != .acknowledged {
      first = kept.removeLast()
    }
    return (kept, first)
  }

  // MARK: The cursor

  /// Moves the cursor back, if the place is before it.
  @discardableResult
  private mutating func goBack(to place: SequenceNumber?) -> Bool {
    guard let place, place < state.applied else { return false }
    state.goBack(to: place)
    isPulledAgain = true
    return true
  }
}

extension FrozenPacket {
  /// Returns the reason why a receipt cannot be of this packet; `nil` if it can.
  func fault(in receipt: PacketReceipt, head: SequenceNumber) -> String? {
    if receipt.status == .buffered { return nil }
    guard receipt.outcomes.count == operations else {
      return
        "a receipt with \(receipt.outcomes.count.grouped) results for \(operations.counted("operation"))"
    }
    guard let last = receipt.sequences?.upperBound, last > head else { return nil }
    return "a receipt for change \(last), with a head of \(head)"
  }

  /// Applies the server's receipt.
  ///
  /// - Parameters:
  ///   - head: the head of the answer.
  ///   - applied: the cursor. A history hash at a place past it is proof: with this hash as the
  ///     anchor, the next request shows a lie.
  fileprivate mutating func apply(
    _ receipt: PacketReceipt, head: SequenceNumber, after applied: SequenceNumber
  ) {
    let isConfirmed = receipt.status != .buffered
    state = isConfirmed ? .acknowledged : .buffered
    first = receipt.sequences?.lowerBound
    last = receipt.sequences?.upperBound ?? head
    // Only the server knows the effect of a batch.
    isClean =
      isConfirmed && !receipt.outcomes.contains { $0.isOverruled || $0.records != nil }
    isInChain =
      receipt.status == .applied && receipt.historyHash != nil && (first ?? 0) > applied
    // After a batch's effects, the packet's last operation is not at the packet's last place.
    let placed = (receipt.outcomes.last?.records ?? 0) == 0 ? receipt : nil
    (hashBefore, hashAfter) = (placed?.historyHashBefore, placed?.historyHash)
    timeline = placed?.timeline
  }
}
