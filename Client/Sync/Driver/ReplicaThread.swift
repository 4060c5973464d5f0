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
  /// Delivers the log to the program, if it asked for it.
  let log: LogFeed?
  /// Admits the work on the file.
  let gate: WorkGate

  /// Opens the file on its thread.
  package static func open(
    path: String, in surroundings: ReplicaSurroundings = .system
  ) async throws -> ReplicaThread {
    let executor = surroundings.makeExecutor("ferry-replica")
    let (file, log) = try await executor.run {
      let file = try ReplicaFile(
        path: path, limits: surroundings.limits, wallClock: surroundings.wallClock,
        random: surroundings.random, fileSystem: surroundings.fileSystem,
        credentials: surroundings.credentials)
      let log = try surroundings.log.map { sink in
        LogFeed(
          after: try file.newestLogNumber(), on: surroundings.makeExecutor("ferry-log"), to: sink)
      }
      return (FileBox(file), log)
    }
    return ReplicaThread(executor: executor, file: file, log: log, in: surroundings)
  }

  private init(
    executor: any WorkExecutor, file: FileBox, log: LogFeed?, in surroundings: ReplicaSurroundings
  ) {
    self.executor = executor
    self.file = file
    self.log = log
    let gate = WorkGate()
    self.gate = gate
    changes = ChangeHub { [weak file, gate] in
      guard let box = file else { return nil }
      return try await executor.run {
        if gate.isSuspended { throw StoppedWork.suspended }
        return try box.value?.dataVersion()
      }
    } pause: {
      try await surroundings.sleep(surroundings.watch.localPoll)
    }
  }

  /// Runs `body` on the file's thread, after the earlier calls. A suspension ends its statements,
  /// and rolls its transaction back.
  ///
  /// - Throws: the error of `body`; ``ReplicaError/suspended``, which `body` sees as well;
  ///   ``StoppedWork`` if the call comes too late.
  package func run<T: Sendable>(
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    try gate.check()
    return try await executor.run { [file, changes, log, gate] in
      if gate.isSuspended { throw ReplicaError.suspended }
      // The call may have come just before the file was closed.
      guard let file = file.value else { throw StoppedWork.closed }
      defer {
        file.reporter.report(to: changes)
        if !gate.isSuspended { log?.follow(file) }
      }
      let due = { gate.isSuspended ? ReplicaError.suspended : nil }
      return try file.connection.interrupting(when: due) { try body(file) }
    }
  }

  /// Returns when the earlier calls are over.
  func finish() async {
    // The closure cannot fail.
    try? await executor.run {}
  }

  /// Closes the connection after the earlier calls, and ends the live queries. The last connection
  /// to a file also removes its log.
  func close() async {
    changes.close()
    // The closure cannot fail.
    try? await executor.run { [file] in file.value = nil }
  }
}

/// Carries the file to its thread.
// SAFETY: `value` is only touched by closures that run one at a time on the executor beside it;
// the last reference may be dropped on any thread, when no closure can run any more.
private final class FileBox: @unchecked Sendable {
  /// `nil` when the file is closed.
  var value: ReplicaFile?
  init(_ value: ReplicaFile) { self.value = value }
}
