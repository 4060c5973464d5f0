/// The pauses of a watcher's two halves, the live connection and the syncs, after failures. Both
/// talk to one server: if one half succeeds, the other need not wait longer.
///
/// A pause that ends early in this way does not reset the half's own failures. So if only one half
/// works, the other's pauses continue to grow.
struct SharedBackOff {
  /// A half of a watcher.
  enum Half: Sendable, CaseIterable {
    case connection
    case sync

    fileprivate var other: Half { self == .sync ? .connection : .sync }
  }

  private var failures: [Half: Int] = [:]
  private var waiting: Set<Half> = []

  /// Notes that a half failed and has to wait. Returns the number of its failures in a row.
  mutating func fail(_ half: Half) -> Int {
    failures[half, default: 0] += 1
    waiting.insert(half)
    return failures[half, default: 1]
  }

  /// Notes that a half's pause is over.
  mutating func resume(_ half: Half) { waiting.remove(half) }

  /// Notes that a half succeeded. Returns the half whose pause ends with that.
  mutating func succeed(_ half: Half) -> Half? {
    failures[half] = nil
    return waiting.remove(half.other)
  }
}
