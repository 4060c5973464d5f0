/// The pauses of a watcher's two halves, the live connection and the syncs, after failures.
///
/// Both talk to one server. If the live connection opens, a sync that waits retries at once. The reverse does
/// not hold: a proxy may end or refuse event streams alone. So the pauses of the live connection grow until
/// one connection has lived for a while. Meanwhile the watcher polls.
struct SharedBackOff {
  /// A half of a watcher.
  enum Half: Sendable, CaseIterable {
    case connection
    case sync
  }

  private var failures: [Half: Int] = [:]
  private var waiting: Set<Half> = []

  /// Notes that a half failed or ended, and has to wait. Returns the number of its failures in a row.
  mutating func fail(_ half: Half) -> Int {
    failures[half, default: 0] += 1
    waiting.insert(half)
    return failures[half, default: 1]
  }

  /// Notes that a half's pause is over.
  mutating func resume(_ half: Half) { waiting.remove(half) }

  /// Notes that a sync succeeded.
  mutating func succeed() { failures[.sync] = nil }

  /// Notes that the live connection works. Returns the half whose pause ends with that.
  mutating func open() -> Half? { waiting.remove(.sync) }

  /// Notes that the live connection has lived long enough to be trusted.
  mutating func live() { failures[.connection] = nil }
}
