import Synchronization

/// The watches of all spaces of a file in this process. A write may concern each of them.
final class WatchList: Sendable {
  private let watching = Mutex<[ObjectIdentifier: Wakeups]>([:])

  /// Adds a watch, and returns the wakeups for it.
  func add() -> Wakeups {
    let wakeups = Wakeups()
    watching.withLock { $0[ObjectIdentifier(wakeups)] = wakeups }
    return wakeups
  }

  func remove(_ wakeups: Wakeups) {
    watching.withLock { $0[ObjectIdentifier(wakeups)] = nil }
  }

  /// Wakes all watches.
  func wake() {
    for wakeups in watching.withLock({ Array($0.values) }) { wakeups.wake() }
  }
}
