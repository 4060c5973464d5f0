/// The pauses of a watcher's two halves, the live connection and the syncs, after failures.
///
/// Both use one server. If the live connection opens, a waiting sync retries at once. The reverse
/// does not hold: a proxy may end or refuse event streams alone. So the pauses of the live
/// connection grow until one connection has lived for a while. Meanwhile the watcher polls.
struct SharedBackOff {
  /// A half of a watcher.
  enum Half: Sendable, CaseIterable {
    case connection
    case sync
  }

  private var failures: [Half: Int] = [:]
  private var waiting: Set<Half> = []

  /// Records that a half failed or ended, and must wait. Returns the number of failures in a row.
  mutating func fail(_ half: Half) -> Int {
    failures[half, default: 0] += 1
    waiting.insert(half)
    return failures[half, default: 1]
  }

  /// Records the end of a half's pause.
  mutating func resume(_ half: Half) { waiting.remove(half) }

  /// Records a successful sync.
  mutating func succeed() { failures[.sync] = nil }

  /// Records a working live connection. Returns the half with a pause that ends now.
  mutating func open() -> Half? { waiting.remove(.sync) }

  /// Records that the live connection has lived long enough to be trusted.
  mutating func live() { failures[.connection] = nil }
}
