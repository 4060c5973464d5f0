import FerryPersistence
import FerryPlatform
import FerryProtocol
import FerrySQLite
import Synchronization

/// Lends the replica's file to closures, one at a time, on a dedicated thread. SQLite blocks, and
/// must never hold a thread of the cooperative pool.
package final class ReplicaThread: Sendable {
  private let executor: any WorkExecutor
  private let file: FileBox
  /// The number of the space with the ledger for the closures.
  let space: Int
  /// The numbers of the joined spaces, as of the last visit.
  private let joined: JoinedNumbers
  /// The live queries of this process.
  let changes: ChangeHub
  /// Delivers the log to the program, if it asked for it.
  let log: LogFeed?
  /// Admits the work on the file.
  let gate: WorkGate
  /// The last used files of many replicas; `nil` if the file keeps the memory.
  private let warm: WarmFiles?

  /// Opens the file on the thread.
  ///
  /// - Parameter base: the beginning of the paths of files beside it; `nil` for `path`.
  package static func open(
    path: String, base: String? = nil, in surroundings: ReplicaSurroundings = .system
  ) async throws -> ReplicaThread {
    let executor = surroundings.makeExecutor("ferry-replica")
    let joined = JoinedNumbers()
    let (file, version, log) = try await executor.run {
      let file = try ReplicaFile(
        path: path, base: base, limits: surroundings.limits, wallClock: surroundings.wallClock,
        random: surroundings.random, fileSystem: surroundings.fileSystem,
        busyTimeout: surroundings.busyTimeout, credentials: surroundings.credentials)
      file.firstListOptions = surroundings.firstLists
      file.sendsDurably = surroundings.sendsDurably
      file.tables.schemas.isAuthority = surroundings.isAuthority
      file.capture.numbered = surroundings.numbering.map { NumberedList($0) }
      let log = try surroundings.log.map { sink in
        LogFeed(
          after: try file.log.newestNumber(), on: surroundings.makeExecutor("ferry-log"), to: sink)
      }
      joined.update(file.spaces)
      return (FileBox(file), try file.dataVersion(), log)
    }
    return ReplicaThread(
      executor: executor, file: file, version: version, joined: joined, log: log,
      in: surroundings)
  }

  /// Returns this thread with the ledger of another space.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the file has not joined it.
  func thread(ofSpace space: Int, in surroundings: ReplicaSurroundings) async throws
    -> ReplicaThread
  {
    let joined = ReplicaThread(space, of: self, log: nil)
    guard let sink = surroundings.log else { return joined }
    let last = try await joined.run { try $0.log.newestNumber() }
    return ReplicaThread(
      space, of: self,
      log: LogFeed(after: last, on: surroundings.makeExecutor("ferry-log"), to: sink))
  }

  private init(_ space: Int, of thread: ReplicaThread, log: LogFeed?) {
    (executor, file, changes, gate) = (thread.executor, thread.file, thread.changes, thread.gate)
    (joined, warm) = (thread.joined, thread.warm)
    (self.space, self.log) = (space, log)
  }

  private init(
    executor: any WorkExecutor, file: FileBox, version: Int64, joined: JoinedNumbers,
    log: LogFeed?, in surroundings: ReplicaSurroundings
  ) {
    self.executor = executor
    self.file = file
    self.joined = joined
    self.log = log
    warm = surroundings.warm
    space = 1
    let gate = WorkGate()
    self.gate = gate
    changes = ChangeHub(seen: version) { [weak file, gate] in
      guard let box = file else { return nil }
      return try await executor.run {
        if gate.isSuspended { throw StoppedWork.suspended }
        return try box.value?.dataVersion()
      }
    } pause: {
      try await surroundings.sleep(surroundings.watch.localPoll)
    }
  }

  /// Runs `body` on the file's thread, after the earlier calls. A suspension ends running
  /// statements, and rolls the transaction back.
  ///
  /// - Throws: the error of `body`; ``ReplicaError/suspended``, also inside `body`; ``StoppedWork``
  ///   if the call comes too late.
  package func run<T: Sendable>(
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    try await run(until: { false }, body)
  }

  /// Runs `body` as ``run(_:)`` does. If the task is cancelled, running statements end, the
  /// transaction is rolled back, and the call throws `CancellationError`.
  package func runUntilCancelled<T: Sendable>(
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    let flag = CancellationFlag()
    return try await withTaskCancellationHandler {
      try await run(until: { flag.isSet }, body)
    } onCancel: {
      flag.set()
    }
  }

  private func run<T: Sendable>(
    until isCancelled: @escaping @Sendable () -> Bool,
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    try gate.check()
    recordUse()
    return try await executor.run { [file, space, joined, changes, log, gate] in
      if gate.isSuspended { throw ReplicaError.suspended }
      // The call may have come just before the file was closed.
      guard let first = file.value else { throw StoppedWork.closed }
      let file = try space == 1 ? first : first.spaces.file(space)
      file.reporter.hub = changes
      defer {
        joined.update(first.spaces)
        file.reporter.report()
        if !gate.isSuspended { log?.publish(file) }
      }
      let due: () -> (any Error)? = {
        if gate.isSuspended { return ReplicaError.suspended }
        return isCancelled() ? CancellationError() : nil
      }
      return try first.connection.interrupting(when: due) {
        do {
          return try body(file)
        } catch let error as SQLiteError where space != 1 {
          // Another process may leave the space at any time.
          guard try first.spaces.list().contains(where: { $0.number == space }) else {
            throw FileSpaces.hasLeft
          }
          throw error
        }
      }
    }
  }

  /// Runs `body` as ``run(_:)`` does, for a call of an app: errors become ``ReplicaError``.
  func call<T: Sendable>(
    _ body: @escaping @Sendable (ReplicaFile) throws -> T
  ) async throws -> T {
    try await ReplicaError.converting { try await run(body) }
  }

  /// Records that the file is in use, if many replicas share memory.
  private func recordUse() {
    warm?.record(file) { [executor, weak file] in
      guard let file else { return }
      // The closure cannot fail.
      Task { try? await executor.run { file.value?.connection.releaseMemory() } }
    }
  }

  /// Runs requests. They end as cancelled when the replica is suspended or closed.
  func exchange<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    try await ReplicaError.converting {
      try gate.check()
      do {
        return try await gate.whileOpen(body)
      } catch is StoppedWork {
        throw ReplicaError.cancelled
      }
    }
  }

  /// Returns a pool for reads through the file's own connection, for a database in memory.
  func sharedReaders() -> ReaderPool {
    ReaderPool(sharing: executor, gate: gate) { [self] in
      guard let open = file.value else { throw StoppedWork.closed }
      recordUse()
      return open.connection
    }
  }

  /// Returns a pool for reads through connections of their own.
  func readers(of path: String, in surroundings: ReplicaSurroundings) -> ReaderPool {
    ReaderPool(
      path: path, gate: gate, fileSystem: surroundings.fileSystem,
      busyTimeout: surroundings.busyTimeout,
      prepare: {
        try KeyFunctions.install(on: $0)
        try StagedChanges.install(on: $0)
      },
      makeExecutor: surroundings.makeExecutor)
  }

  /// The numbers of the joined spaces, as of the last visit: each visit for a sync or a write notices
  /// those of other processes.
  var joinedSpaces: [Int] { joined.now }

  /// Returns when the earlier calls are over.
  func finish() async {
    // The closure cannot fail.
    try? await executor.run {}
  }

  /// Closes the connection after the earlier calls, and ends the live queries. The last connection
  /// to a file also removes the log.
  func close() async {
    changes.close()
    warm?.forget(file)
    // The closure cannot fail.
    try? await executor.run { [file] in file.value = nil }
  }
}

/// A flag for a task's cancellation, for work on another thread.
private final class CancellationFlag: Sendable {
  private let state = Atomic(false)

  var isSet: Bool { state.load(ordering: .relaxed) }

  func set() { state.store(true, ordering: .relaxed) }
}

/// The numbers of the joined spaces, for callers on other threads.
private final class JoinedNumbers: Sendable {
  private let numbers = Mutex<[Int]>([])

  var now: [Int] { numbers.withLock { $0 } }

  func update(_ spaces: FileSpaces) { numbers.withLock { $0 = spaces.joined.map(\.number) } }
}

/// Carries the file to its thread.
// SAFETY: only closures on the executor beside it touch `value`, one at a time; the last reference
// may be dropped on any thread, when no closure can run any more.
private final class FileBox: @unchecked Sendable {
  /// `nil` when the file is closed.
  var value: ReplicaFile?
  init(_ value: ReplicaFile) { self.value = value }
}
