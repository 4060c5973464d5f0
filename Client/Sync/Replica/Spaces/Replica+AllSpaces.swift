import FerryNetworking
import FerryPersistence
import FerryProtocol
import Synchronization

/// The result of one space's sync.
public struct SpaceSync: Sendable {
  /// The space; `nil` for a replica without a server.
  public let space: String?
  /// The report, or the reason why the sync failed.
  public let result: Result<SyncReport, ReplicaError>
}

extension Replica {
  /// Syncs all spaces of the file side by side, and returns the result of each: the first space,
  /// then the joined ones. A failed space does not stop the others.
  ///
  /// ```swift
  /// for space in try await replica.syncSpaces() {
  ///   if case .failure(let error) = space.result { print("\(space.space ?? ""): \(error)") }
  /// }
  /// ```
  ///
  /// - Throws: ``ReplicaError/cancelled``, ``ReplicaError/suspended``, ``ReplicaError/closed``.
  public func syncSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    let results = try await exchange { [self] in
      try await each { try await $0.engine.sync(progress: $0.noting(progress)) }
    }
    await notifyCompanions()
    return results
  }

  /// Pushes to all spaces of the file, and returns the result of each, as ``syncSpaces(progress:)`` does.
  public func pushSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    try await exchange { [self] in
      try await each { try await $0.engine.push(progress: $0.noting(progress)) }
    }
  }

  /// Pulls from all spaces of the file, and returns the result of each, as ``syncSpaces(progress:)`` does.
  public func pullSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    let results = try await exchange { [self] in
      try await each { try await $0.engine.pull(progress: $0.noting(progress)) }
    }
    await notifyCompanions()
    return results
  }

  /// Exchanges all spaces. Throws the first failure when all have ended.
  func exchangeAll(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    try await exchange { [self] in
      guard number == 1, !thread.joinedSpaces.isEmpty else { return try await exchangeOne(body) }
      var total = SyncReport()
      for (index, result) in try await each(body).enumerated() {
        let report = try result.result.get()
        if index == 0 { total.cursor = report.cursor }
        total.add(report)
      }
      return total
    }
  }

  private func exchangeOne(
    _ body: @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    let report = try await body(self)
    try await notifyConflicts()
    return report
  }

  private func each(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> [SpaceSync] {
    let replicas = [self] + (try await joinedReplicas())
    return try await withThrowingTaskGroup(of: (Int, SpaceSync).self) { group in
      for (index, replica) in replicas.enumerated() {
        group.addTask {
          let result: Result<SyncReport, ReplicaError>
          do {
            result = .success(try await replica.exchangeOne(body))
          } catch {
            result = .failure(ReplicaError(error))
          }
          if case .failure(let error) = result, error.isStop { throw error }
          return (index, SpaceSync(space: await replica.spaceName(), result: result))
        }
      }
      var results: [(Int, SpaceSync)] = []
      for try await result in group { results.append(result) }
      return results.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }
}

/// Watching all spaces of a file.
extension Replica {
  /// An event of a watching replica.
  public enum WatchEvent: Sendable {
    /// Something was exchanged.
    case synced(SyncReport)
    /// The server cannot be reached; the watch retries with growing pauses.
    case offline(ReplicaError)
    /// The live connection is open.
    case connected
    /// A space has stopped, for example because the server rejects the token. The others continue.
    /// The watch tries it again now and then, and at once when it has another server or token.
    case stopped(space: String, ReplicaError)
  }

  /// Keeps all spaces of the replica in sync until the task is cancelled. Sends local writes at
  /// once, and receives others' changes over a live connection. If the connection fails, it polls.
  /// While the replica is suspended, it waits.
  ///
  /// - Throws: ``ReplicaError/cancelled``; ``ReplicaError/closed`` when the replica is closed;
  ///   ``ReplicaError/database(_:code:)`` if the file fails; permanent errors, such as a revoked
  ///   token, when no space can continue.
  public func watch(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in },
    onEvent: @escaping @Sendable (WatchEvent) -> Void = { _ in }
  ) async throws {
    try await watchSpaces(progress: progress) { onEvent($1) }
  }

  /// Reports to the server how far this device has applied the space's changes. Each later sync reports
  /// it, too; so call this only if an administrator should see it before.
  public func reportApplied() async throws {
    try await typed { try await engine.reportApplied() }
  }

  /// Watches as ``watch(progress:onEvent:)`` does, and names the space of each event.
  ///
  /// - Parameter onEvent: gets the space's name, `nil` if it has none, and the event.
  public func watchSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in },
    onEvent: @escaping @Sendable (_ space: String?, _ event: WatchEvent) -> Void
  ) async throws {
    try await typed {
      while true {
        do {
          return try await thread.gate.whileOpen { [self] in
            try await watchAll(progress: progress, onEvent: onEvent)
          }
        } catch StoppedWork.suspended {
          try await thread.gate.opened()
        }
      }
    }
  }

  /// Watches this space alone until the task is cancelled.
  ///
  /// - Parameter prepare: runs before each sync; `false` postpones the sync.
  package func watch(
    preparing prepare: @escaping @Sendable () async -> Bool,
    onEvent: @escaping @Sendable (WatchEvent) -> Void
  ) async throws {
    try await typed {
      try await thread.gate.whileOpen { [self] in
        try await watch(progress: { _ in }, onEvent: onEvent, fileChanged: {}, prepare: prepare)
      }
    }
  }

  /// Watches this space until the task is cancelled.
  func watch(
    progress: @escaping @Sendable (SyncProgress) -> Void,
    onEvent: @escaping @Sendable (WatchEvent) -> Void,
    fileChanged: @escaping @Sendable () -> Void,
    prepare: @escaping @Sendable () async -> Bool = { true }
  ) async throws {
    let wakeups = watches.add()
    defer { watches.remove(wakeups) }
    let watcher = Watcher(
      engine: engine, wakeups: wakeups, prepare: prepare, fileChanged: fileChanged)
    try await watcher.run(progress: noting(progress)) { [self] event in
      switch event {
      case .synced(let report):
        if conflictListeners.oldest != nil { Task { try? await notifyConflicts() } }
        if !companions.all.isEmpty {
          Task(executorPreference: engine.surroundings.executor) { [self] in
            await notifyCompanions()
          }
        }
        onEvent(.synced(report))
      case .offline(let error): onEvent(.offline(error))
      case .connected: onEvent(.connected)
      }
    }
  }

  /// Makes companions do the work without a sync, until the task is cancelled: in a quiet space, no
  /// sync follows.
  private func attendCompanions() async throws {
    let (surroundings, options) = (engine.surroundings, engine.surroundings.watch)
    var failures = 0
    while true {
      let pause =
        failures == 0
        ? nil : options.companions.delay(afterFailures: failures, random: surroundings.random())
      try await surroundings.sleep(max(pause ?? .zero, options.remotePoll))
      var isDone = true
      for companion in companions.all where await !companion.attend() { isDone = false }
      failures = isDone ? 0 : failures + 1
    }
  }

  private enum WatchStep: Sendable {
    case spacesMayHaveChanged
    case ended(Replica, ReplicaError)
    /// The pause of a stopped space is over.
    case rested(Int)
  }

  /// Watches all spaces, also those joined meanwhile, until the task is cancelled, the file fails,
  /// or no space can continue.
  private func watchAll(
    progress: @escaping @Sendable (SyncProgress) -> Void,
    onEvent: @escaping @Sendable (String?, WatchEvent) -> Void
  ) async throws {
    let changes = watches.add()
    defer { watches.remove(changes) }
    let stops = StoppedSpaces()
    try await withThrowingTaskGroup(of: WatchStep.self) { group in
      func watch(_ replica: Replica) {
        group.addTask {
          let space = await replica.spaceName()
          do {
            try await replica.watch(progress: progress) { event in
              if case .synced = event { stops.goesOn(replica.number) }
              onEvent(space, event)
            } fileChanged: {
              changes.wake()
            }
            return .ended(replica, .cancelled)
          } catch {
            return .ended(replica, ReplicaError(error))
          }
        }
      }
      func awaitChange() {
        group.addTask {
          for await _ in changes.stream { return .spacesMayHaveChanged }
          throw CancellationError()
        }
      }
      func rest(_ number: Int, afterFailures failures: Int) {
        let surroundings = engine.surroundings
        let pause = surroundings.watch.stopped.delay(
          afterFailures: failures, random: surroundings.random())
        guard let pause else { return }
        group.addTask {
          try await surroundings.sleep(pause)
          return .rested(number)
        }
      }
      group.addTask { [self] in
        try await attendCompanions()
        return .spacesMayHaveChanged
      }
      defer { group.cancelAll() }
      var (known, running, first) = (Set([number]), 1, ReplicaError?.none)
      watch(self)
      changes.wake()
      awaitChange()
      while let step = try await group.next() {
        switch step {
        case .spacesMayHaveChanged:
          for replica in try await whileBusy({ [self] in try await joinedReplicas() }) {
            if let access = stops.access(replica.number), await replica.isChanged(since: access) {
              known.remove(replica.number)
            }
            guard known.insert(replica.number).inserted else { continue }
            stops.begins(replica.number)
            running += 1
            watch(replica)
          }
          awaitChange()
        case .rested(let number):
          guard stops.access(number) != nil else { continue }
          if number == self.number {
            stops.begins(number)
            running += 1
            watch(self)
          } else {
            known.remove(number)
            changes.wake()
          }
        case .ended(let replica, let error):
          try Task.checkCancellation()
          if error.isStop || error.concernsFile { throw error }
          running -= 1
          first = first ?? error
          if running == 0 { throw first ?? error }
          // The file may have left it.
          guard let (space, access) = try await whileBusy({ try await replica.namedAccess() })
          else { continue }
          let (failures, isNews) = stops.ends(replica.number, error, access)
          if isNews { onEvent(space, .stopped(space: space, error)) }
          rest(replica.number, afterFailures: failures)
        }
      }
    }
  }
}

/// The stopped spaces of a watch.
private final class StoppedSpaces: Sendable {
  private struct Stop {
    var failures = 0
    var error: ReplicaError?
    /// The server and token at the time of the stop; `nil` while it is watched.
    var access: ServerAccess?
  }

  private let stops = Mutex<[Int: Stop]>([:])

  /// Returns the server and token at the time of a space's stop; `nil` if it has not stopped.
  func access(_ number: Int) -> ServerAccess? { stops.withLock { $0[number]?.access } }

  /// Records that a space is watched again.
  func begins(_ number: Int) { stops.withLock { $0[number]?.access = nil } }

  /// Records a successful sync.
  func goesOn(_ number: Int) { stops.withLock { $0[number] = nil } }

  /// Records that a space has stopped. Returns the number of failures in a row, and whether the
  /// reason differs from the one before.
  func ends(
    _ number: Int, _ error: ReplicaError, _ access: ServerAccess
  ) -> (failures: Int, isNews: Bool) {
    stops.withLock { stops in
      let before = stops[number]
      let failures = (before?.failures ?? 0) + 1
      stops[number] = Stop(failures: failures, error: error, access: access)
      return (failures, before?.error != error)
    }
  }
}

extension Replica {
  /// Runs `body` again for as long as another program locks the file.
  fileprivate func whileBusy<T: Sendable>(
    _ body: @Sendable () async throws -> T
  ) async throws -> T {
    try await engine.surroundings.whileBusy(body)
  }

  /// Returns the space's name with the server and the token; `nil` if there is none, or if the file
  /// has left it.
  fileprivate func namedAccess() async throws -> (String, ServerAccess)? {
    do {
      guard let space = try await server()?.space.value else { return nil }
      return (space, try await access())
    } catch let error where !ReplicaError(error).isBusy {
      return nil
    }
  }

  /// Returns the space's name; `nil` if there is none, or if the file has left it.
  fileprivate func spaceName() async -> String? { try? await server()?.space.value }

  /// Returns true if the space has another server or another stored token now.
  fileprivate func isChanged(since access: ServerAccess) async -> Bool {
    guard let now = try? await self.access() else { return false }
    return now.address != access.address || now.stored != access.stored
  }
}

extension SyncReport {
  /// Adds the counts of another space's sync.
  fileprivate mutating func add(_ other: SyncReport) {
    pushed += other.pushed
    duplicates += other.duplicates
    buffered += other.buffered
    left += other.left
    recorded += other.recorded
    unreconciled += other.unreconciled
    pulled += other.pulled
    refused += other.refused
    quarantined += other.quarantined
    conflicts += other.conflicts
    questions += other.questions
  }
}
