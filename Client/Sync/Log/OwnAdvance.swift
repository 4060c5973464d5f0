import FerryProtocol

/// How far a device's own confirmed packets advance the cursor. Each packet follows the one before
/// it without another device's change between them (SPEC.md §5).
struct OwnAdvance {
  /// The furthest possible place of the cursor.
  private(set) var applied: SequenceNumber
  /// The anchor of a cursor at this place.
  private(set) var anchor: Cursor.Anchor?

  init(applied: SequenceNumber, anchor: Cursor.Anchor?) {
    self.applied = applied
    self.anchor = anchor
  }

  /// Advances over the next packet in the order of places; skips it if the cursor may not move.
  ///
  /// A rolled-back server may have given a packet the place after the cursor in another history. So
  /// past the anchor a packet counts only if the history hash before it equals the hash known to
  /// this device.
  mutating func advance(_ packet: FrozenPacket) {
    guard let first = packet.first, let last = packet.last, packet.isClean,
      first == applied + 1
    else { return }
    if let anchor, last <= anchor.head {
      applied = max(first, last)
      return
    }
    guard let before = packet.hashBefore, let after = packet.hashAfter, before == historyHash
    else { return }
    applied = max(first, last)
    anchor = Cursor.Anchor(
      head: applied, operation: packet.tail, historyHash: after, timeline: packet.timeline)
  }

  /// The history hash known to this device, at ``applied``; `nil` if the device does not know it.
  private var historyHash: UInt64? {
    guard let anchor else { return applied == 0 ? HistoryHash.empty : nil }
    return anchor.head == applied ? anchor.historyHash : nil
  }
}
