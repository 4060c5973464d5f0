/// How a watcher's two halves, the live connection and the syncs, wait after failures. They talk to
/// one server: where one half gets through, the other need not wait any longer.
///
/// A pause that is cut short in this way does not reset the half's own failures: where only one of
/// the two works, the other's pauses go on growing.
struct SharedBackOff {
  /// What waits on its own.
  enum Half: Sendable, CaseIterable {
    case connection
    case sync

    fileprivate var other: Half { self == .sync ? .connection : .sync }
  }

  private var failures: [Half: Int] = [:]
  private var waiting: Set<Half> = []

  /// A half failed and has to wait. Answers how often it has failed in a row.
  mutating func fail(_ half: Half) -> Int {
    failures[half, default: 0] += 1
    waiting.insert(half)
    return failures[half, default: 1]
  }

  /// A half's pause is over.
  mutating func resume(_ half: Half) { waiting.remove(half) }

  /// A half got through. Answers the half whose pause ends by that.
  mutating func succeed(_ half: Half) -> Half? {
    failures[half] = nil
    return waiting.remove(half.other)
  }
}
