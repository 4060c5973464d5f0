import FerryProtocol

/// Which points of the history are in the one that there is at the end, where the server was set
/// back to an earlier copy meanwhile.
///
/// An operation that is given back may by chance come to the place that it had, behind others than
/// before. So a point that was seen before the server went back behind it counts as gone, whatever
/// is there now.
struct Lineage {
  /// Whether the server was set back.
  private(set) var wentBack = false
  private var seen = Set<Cursor.Anchor>()
  private var gone = Set<Cursor.Anchor>()

  /// Notes where a replica stands.
  mutating func see(_ evidence: ReplicaEvidence) {
    if let anchor = evidence.anchor { seen.insert(anchor) }
  }

  /// - Parameter survivors: how many operations the history has now.
  mutating func goBack(survivors: Int) {
    wentBack = true
    gone.formUnion(seen.lazy.filter { $0.head > survivors })
    seen = []
  }

  /// Whether a history, in its order and without gap, has the anchor's operation in its place.
  func holds(_ anchor: Cursor.Anchor, in history: [HistoryEntry]) -> Bool {
    let place = Int(clamping: anchor.head) - 1
    return !gone.contains(anchor) && history.indices.contains(place)
      && history[place].sequence == anchor.head && history[place].id == anchor.operation
  }
}
