import FerryProtocol

/// A space's history as far as it takes to tell whether it is the one that a cursor was given in
/// (SPEC.md §18).
struct KnownHistory {
  let epoch: Epoch
  let head: SequenceNumber
  /// Operations before this one may be gone.
  let floor: SequenceNumber
  /// Where the timeline of the cursor's anchor ended, `.max` where it has not; `nil` where it is not
  /// known here, or was not looked for: only of an anchor before the floor it tells anything.
  let timelineEnd: SequenceNumber?

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
    guard let anchor = cursor.anchor, !PlantedFault.anchorNotChecked.isPlanted else { return nil }
    return anchor.head >= floor ? lost(anchor, found: place) : left(anchor)
  }

  /// What was at the anchor is not kept any more; which timelines led there is.
  private func left(_ anchor: Cursor.Anchor) -> Problem? {
    guard let timeline = anchor.timeline, anchor.head > timelineEnd ?? -1 else { return nil }
    let why = timelineEnd.map { "was left at \($0) here" } ?? "is not known here"
    return Problem(
      .lostAndExpired,
      "place \(anchor.head) was reached on timeline \(timeline), which \(why): this server lost what it "
        + "had, and history is kept from \(floor) on")
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

extension Cursor {
  /// The timeline of its anchor, where nothing else may tell any more which history it is of.
  func timeline(before floor: SequenceNumber) -> Timeline? {
    anchor.flatMap { $0.head < floor ? $0.timeline : nil }
  }
}
