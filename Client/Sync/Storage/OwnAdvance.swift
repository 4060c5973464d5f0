import FerryProtocol

/// How far a device's own confirmed packets lead its cursor, each following the one before
/// without anybody else's change between (SPEC.md §5).
struct OwnAdvance {
  /// Where the cursor may be.
  private(set) var applied: SequenceNumber
  /// What the cursor is known again by there.
  private(set) var anchor: Cursor.Anchor?

  init(applied: SequenceNumber, anchor: Cursor.Anchor?) {
    self.applied = applied
    self.anchor = anchor
  }

  /// Takes the next packet in the order of places; passes it by where the cursor may not move.
  ///
  /// A server that was set back may have given a packet the place after the cursor in another
  /// history: so past the anchor a packet counts only where the history before it is the one that
  /// this device knows, by the running print.
  mutating func take(_ packet: PacketRow) {
    let isOverOthers = PlantedFault.cursorOverOthers.isPlanted
    guard let sequences = packet.sequences, packet.isClean,
      sequences.lowerBound == applied + 1 || isOverOthers && sequences.lowerBound > applied
    else { return }
    if let anchor, sequences.upperBound <= anchor.head {
      applied = sequences.upperBound
      return
    }
    guard let prints = packet.prints, prints.before == print || isOverOthers else { return }
    applied = sequences.upperBound
    anchor = Cursor.Anchor(
      head: applied, operation: packet.tail, print: prints.after, timeline: prints.timeline)
  }

  /// The running print of the history that this device knows, at ``applied``; `nil` where it does
  /// not know it.
  private var print: UInt64? {
    guard let anchor else { return applied == 0 ? HistoryPrint.empty : nil }
    return anchor.head == applied ? anchor.print : nil
  }
}
