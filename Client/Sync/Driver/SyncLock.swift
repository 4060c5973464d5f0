import Foundation

/// Ensures that one process at a time syncs a replica's file. The operating system holds the lock,
/// so a killed process leaves no stale one. Writes to the tables need no lock.
package final class SyncLock: Sendable {
  private let free: @Sendable () -> Void

  /// Waits until the lock beside `path` is free.
  ///
  /// - Throws: ``ReplicaError/busy(_:)`` after `patience`; `CancellationError`.
  static func acquire(
    path: String, patience: Duration, pause: Duration = .milliseconds(20)
  ) async throws -> SyncLock {
    let lockPath = path + "-sync"
    let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw ReplicaError.cannotOpen(path: lockPath, String(cString: strerror(errno)))
    }
    let deadline = ContinuousClock.now + patience
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let isPatient = ContinuousClock.now < deadline
      do {
        guard isPatient else {
          throw ReplicaError.busy("another process is syncing \(path); try again after it ends")
        }
        try await Task.sleep(for: pause)
      } catch {
        close(descriptor)
        throw error
      }
    }
    return SyncLock { close(descriptor) }
  }

  /// Creates a lock that `free` releases.
  package init(free: @escaping @Sendable () -> Void) { self.free = free }

  /// Releases the lock. Called once.
  func release() { free() }
}
