import FerryProtocol

/// A space's history as far as it takes to tell whether it is the one that a cursor was given in
/// (SPEC.md §18).
struct KnownHistory {
  let epoch: Epoch
  let head: SequenceNumber
  /// Operations before this one may be gone.
  let floor: SequenceNumber

  /// Why the history is another one than the cursor's; `nil` where it is the same, as far as can be
  /// told.
  ///
  /// - Parameter place: where the operation of the cursor's anchor is in the history; `nil` where it
  ///   is not, or there is no anchor.
  func fault(of cursor: Cursor, anchored place: HistoryPlace?) -> Problem? {
    guard cursor.epoch == epoch else {
      return Problem(
        .epochChanged, "the cursor is of epoch \(cursor.epoch), the space is in epoch \(epoch)")
    }
    let known = max(cursor.received, cursor.anchor?.head ?? 0)
    guard known <= head else {
      return Problem(.cursorAhead, "the cursor knows of \(known), the space's head is \(head)")
    }
    // The operation at the floor is kept, those before it are not.
    guard let anchor = cursor.anchor, anchor.head >= floor,
      !PlantedFault.anchorNotChecked.isPlanted
    else { return nil }
    return lost(anchor, found: place)
  }

  private func lost(_ anchor: Cursor.Anchor, found: HistoryPlace?) -> Problem? {
    guard let found, found.sequence == anchor.head else {
      return Problem(
        .historyLost,
        "operation \(anchor.operation) is not at \(anchor.head): this server lost what it had")
    }
    // Cursors and operations from before there were prints are told by the operation alone.
    guard let known = anchor.print, let print = found.print, known != print else { return nil }
    return Problem(
      .historyLost,
      "operation \(anchor.operation) is at \(anchor.head) behind others than before: this server "
        + "lost what it had")
  }
}

/// Where an operation is in the history.
struct HistoryPlace {
  let sequence: SequenceNumber
  /// The running print after it; `nil` of an operation from before there were prints.
  let print: UInt64?
}
