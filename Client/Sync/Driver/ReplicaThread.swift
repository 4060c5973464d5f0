import Executors
import FerryProtocol
import Foundation

/// Lends the replica's file to closures, one at a time, on a thread of its own: SQLite blocks,
/// and must never hold a thread of the cooperative pool.
package final class ReplicaThread: Sendable {
  private let executor: ThreadExecutor
  private let file: FileBox

  /// Opens the file on its thread.
  package static func open(
    path: String, limits: Limits = .standard,
    wallClock: @escaping @Sendable () -> Int64 = SystemClock.milliseconds,
    random: @escaping @Sendable () -> UInt64 = EntropyPool().next
  ) async throws -> ReplicaThread {
    let executor = ThreadExecutor(name: "ferry-replica")
    let file = try await executor.run {
      FileBox(
        try ReplicaFile(path: path, limits: limits, wallClock: wallClock, random: random))
    }
    return ReplicaThread(executor: executor, file: file)
  }

  private init(executor: ThreadExecutor, file: FileBox) {
    self.executor = executor
    self.file = file
  }

  /// Runs `body` on the file's thread, after what was asked for before.
  package func run<T: Sendable>(
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    try await executor.run { [file] in try body(file.value) }
  }
}

/// Carries the file to its thread.
// SAFETY: `value` is only touched by closures that run on the one thread of the executor beside
// it; the last reference may be dropped on any thread, when no closure can run any more.
private final class FileBox: @unchecked Sendable {
  let value: ReplicaFile
  init(_ value: ReplicaFile) { self.value = value }
}

/// The machine's clock.
package enum SystemClock {
  /// Milliseconds since 1970.
  @Sendable package static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}
