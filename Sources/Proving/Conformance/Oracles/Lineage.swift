import FerryProtocol

/// The points of the history contained in the final history, if the server was rolled back
/// meanwhile. Points learnt by a device while a hostile server answers prove nothing.
///
/// A re-uploaded operation may by chance get its former sequence, after other operations than
/// before. So a point counts as gone after it was lost once, whatever is there now.
struct Lineage {
  /// True if the server was restored from a backup.
  private(set) var wentBack = false
  private var gone = Set<Cursor.Anchor>()
  private var isDoubtful = false

  /// - Parameters:
  ///   - before: The history before the restore.
  ///   - survivors: The history after the restore.
  mutating func goBack(from before: [OperationID], to survivors: [OperationID]) {
    wentBack = true
    for (place, operation) in before.enumerated()
    where !survivors.indices.contains(place) || survivors[place] != operation {
      gone.insert(Cursor.Anchor(head: SequenceNumber(place + 1), operation: operation))
    }
  }

  /// Records answers of a hostile server to devices: each may believe that the server went back.
  mutating func doubt() { (wentBack, isDoubtful) = (true, true) }

  /// Returns `true` if a history, in order and without gap, has the anchor's operation in its
  /// place.
  func holds(_ anchor: Cursor.Anchor, in history: [HistoryEntry]) -> Bool {
    let place = Int(clamping: anchor.head) - 1
    let point = Cursor.Anchor(head: anchor.head, operation: anchor.operation)
    return !isDoubtful && !gone.contains(point) && history.indices.contains(place)
      && history[place].sequence == anchor.head && history[place].id == anchor.operation
  }
}
