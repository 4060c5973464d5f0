import FerryProtocol

/// Which points of the history are in the one that there is at the end, where the server was set
/// back to an earlier copy meanwhile.
///
/// An operation that is given back may by chance come to the place that it had, behind others than
/// before. So a point that was lost once counts as gone, whatever is there now.
struct Lineage {
  /// Whether the server was set back.
  private(set) var wentBack = false
  private var gone = Set<Cursor.Anchor>()

  /// - Parameters:
  ///   - before: the history that there was.
  ///   - survivors: the history that there is now.
  mutating func goBack(from before: [OperationID], to survivors: [OperationID]) {
    wentBack = true
    for (place, operation) in before.enumerated()
    where !survivors.indices.contains(place) || survivors[place] != operation {
      gone.insert(Cursor.Anchor(head: SequenceNumber(place + 1), operation: operation))
    }
  }

  /// Whether a history, in its order and without gap, has the anchor's operation in its place.
  func holds(_ anchor: Cursor.Anchor, in history: [HistoryEntry]) -> Bool {
    let place = Int(clamping: anchor.head) - 1
    let point = Cursor.Anchor(head: anchor.head, operation: anchor.operation)
    return !gone.contains(point) && history.indices.contains(place)
      && history[place].sequence == anchor.head && history[place].id == anchor.operation
  }
}
