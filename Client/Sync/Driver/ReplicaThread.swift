import FerryExecutors
import FerryPersistence
import FerryProtocol

/// Lends the replica's file to closures, one at a time, on its own thread. SQLite blocks, and must
/// never hold a thread of the cooperative pool.
package final class ReplicaThread: Sendable {
  private let executor: any WorkExecutor
  private let file: FileBox
  /// The live queries of this process.
  let changes: ChangeHub

  /// Opens the file on its thread.
  package static func open(
    path: String, in surroundings: ReplicaSurroundings = .system
  ) async throws -> ReplicaThread {
    let executor = surroundings.makeExecutor("ferry-replica")
    let file = try await executor.run {
      FileBox(
        try ReplicaFile(
          path: path, limits: surroundings.limits, wallClock: surroundings.wallClock,
          random: surroundings.random, fileSystem: surroundings.fileSystem,
          credentials: surroundings.credentials))
    }
    return ReplicaThread(executor: executor, file: file, in: surroundings)
  }

  private init(
    executor: any WorkExecutor, file: FileBox, in surroundings: ReplicaSurroundings
  ) {
    self.executor = executor
    self.file = file
    changes = ChangeHub { [weak file] in
      guard let box = file else { return nil }
      return try await executor.run { try box.value.dataVersion() }
    } pause: {
      try await surroundings.sleep(surroundings.watch.localPoll)
    }
  }

  /// Runs `body` on the file's thread, after the earlier calls.
  package func run<T: Sendable>(
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    try await executor.run { [file, changes] in
      defer { file.value.reporter.report(to: changes) }
      return try body(file.value)
    }
  }
}

/// Carries the file to its thread.
// SAFETY: `value` is only touched by closures that run one at a time on the executor beside it;
// the last reference may be dropped on any thread, when no closure can run any more.
private final class FileBox: @unchecked Sendable {
  let value: ReplicaFile
  init(_ value: ReplicaFile) { self.value = value }
}
