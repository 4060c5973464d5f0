import Foundation
import Synchronization

/// Blocks a thread of an executor, so that jobs gather behind it.
package final class ThreadBlock: Sendable {
  private let waits = Atomic(false)
  private let release = DispatchSemaphore(value: 0)

  package init() {}

  /// True once the thread is blocked.
  package var isWaiting: Bool { waits.load(ordering: .acquiring) }

  /// Blocks the thread until ``end()``.
  package func wait() {
    waits.store(true, ordering: .releasing)
    release.wait()
  }

  package func end() { release.signal() }
}
