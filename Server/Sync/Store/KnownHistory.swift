import FerryProtocol

/// The part of a space's history that shows if a cursor belongs to it (SPEC.md §18).
struct KnownHistory {
  let epoch: Epoch
  let head: SequenceNumber
  /// Operations before this one may be gone.
  let retentionHorizon: SequenceNumber
  /// The end of the timeline of the cursor's anchor. `.max` if the timeline goes on, `nil` if it is
  /// unknown here or was not looked up. It matters only for an anchor before the retention horizon.
  let timelineEnd: SequenceNumber?

  /// Returns the reason if the history is another one than the cursor's; `nil` if it is the same,
  /// as far as can be decided.
  ///
  /// - Parameter place: The place of the anchor's operation in the history; `nil` if it is not
  ///   there, or there is no anchor.
  func fault(of cursor: Cursor, anchored place: HistoryPlace?) -> Problem? {
    guard cursor.epoch == epoch else {
      return Problem(
        .epochChanged, "the cursor is of epoch \(cursor.epoch), but the space is in epoch \(epoch)")
    }
    let known = max(cursor.received, cursor.anchor?.head ?? 0)
    guard known <= head else {
      return Problem(.cursorAhead, "the cursor is at \(known), but the space's head is \(head)")
    }
    // The operation at the retention horizon is kept, those before it are not.
    guard let anchor = cursor.anchor else { return nil }
    return anchor.head >= retentionHorizon ? lost(anchor, found: place) : left(anchor)
  }

  /// Returns the problem of an anchor whose timeline does not lead here. The operation at the
  /// anchor is pruned, but the timelines to it are stored.
  private func left(_ anchor: Cursor.Anchor) -> Problem? {
    guard let timeline = anchor.timeline, anchor.head > timelineEnd ?? -1 else { return nil }
    let why = timelineEnd.map { "ends at \($0) here" } ?? "is unknown here"
    return Problem(
      .lostAndExpired,
      "the cursor's timeline \(timeline) reached \(anchor.head), but \(why): this server lost "
        + "operations, and its history begins at \(retentionHorizon)")
  }

  private func lost(_ anchor: Cursor.Anchor, found: HistoryPlace?) -> Problem? {
    guard let found, found.sequence == anchor.head else {
      return Problem(
        .historyLost,
        "operation \(anchor.operation) is not at \(anchor.head): this server lost operations")
    }
    if anchor.historyHash == found.historyHash { return nil }
    return Problem(
      .historyLost,
      "the operations before \(anchor.operation) at \(anchor.head) have changed: this server "
        + "lost operations")
  }
}

/// The place of an operation in the history.
struct HistoryPlace {
  let sequence: SequenceNumber
  /// The history hash after it.
  let historyHash: UInt64
}

extension Cursor {
  /// Returns the timeline of the anchor, if only the timeline can still identify the history.
  func timeline(before retentionHorizon: SequenceNumber) -> Timeline? {
    anchor.flatMap { $0.head < retentionHorizon ? $0.timeline : nil }
  }
}
