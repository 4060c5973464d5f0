import FerryPlatform
import Foundation
import Synchronization

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
    do {
      try await wait(for: path, patience, pause) { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }
    } catch {
      close(descriptor)
      throw error
    }
    return SyncLock {
      Platform.unlock(descriptor)
      close(descriptor)
    }
  }

  /// Waits until `attempt` returns true.
  fileprivate static func wait(
    for path: String, _ patience: Duration, _ pause: Duration = .milliseconds(20),
    _ attempt: () -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + patience
    while !attempt() {
      guard ContinuousClock.now < deadline else {
        throw ReplicaError.busy("another process is syncing \(path); try again after it ends")
      }
      try await Task.sleep(for: pause)
    }
  }

  /// Creates a lock; `free` releases it.
  package init(free: @escaping @Sendable () -> Void) { self.free = free }

  /// Releases the lock. Called once.
  func release() { free() }
}

/// The locks of replicas in memory; no other process can open such a replica.
final class MemoryLocks: Sendable {
  private let held = Mutex<Set<String>>([])

  /// Waits until the lock is free; see ``SyncLock``.
  func acquire(_ path: String, patience: Duration) async throws -> SyncLock {
    try await SyncLock.wait(for: path, patience) {
      held.withLock { $0.insert(path).inserted }
    }
    return SyncLock { [self] in held.withLock { _ = $0.remove(path) } }
  }
}
