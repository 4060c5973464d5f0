import FerryNetworking
import FerryProtocol
import Synchronization

/// Watches all spaces of a file, also those joined meanwhile.
struct SpaceWatch: Sendable {
  /// The replica of the file's first space.
  let first: Replica

  private enum Step: Sendable {
    case spacesMayHaveChanged
    case ended(Replica, ReplicaError)
    /// The pause of a stopped space is over.
    case rested(Int)
  }

  /// Watches all spaces, also those joined meanwhile, until the task is cancelled, the file fails,
  /// or no space can continue.
  func run(
    progress: @escaping @Sendable (SyncProgress) -> Void,
    onEvent: @escaping @Sendable (String?, Replica.WatchEvent) -> Void
  ) async throws {
    let changes = first.watches.add()
    defer { first.watches.remove(changes) }
    let stops = StoppedSpaces()
    try await withThrowingTaskGroup(of: Step.self) { group in
      func begin(_ replica: Replica) {
        group.addTask {
          let space = await replica.spaceName()
          do {
            try await watch(replica, progress: progress) { event in
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
        let surroundings = first.engine.surroundings
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
      var (known, running, reason) = (Set([first.number]), 1, ReplicaError?.none)
      begin(first)
      changes.wake()
      awaitChange()
      while let step = try await group.next() {
        switch step {
        case .spacesMayHaveChanged:
          for replica in try await whileBusy({ try await first.joinedReplicas() }) {
            if let access = stops.access(replica.number), await replica.isChanged(since: access) {
              known.remove(replica.number)
            }
            guard known.insert(replica.number).inserted else { continue }
            stops.begins(replica.number)
            running += 1
            begin(replica)
          }
          awaitChange()
        case .rested(let number):
          guard stops.access(number) != nil else { continue }
          if number == first.number {
            stops.begins(number)
            running += 1
            begin(first)
          } else {
            known.remove(number)
            changes.wake()
          }
        case .ended(let replica, let error):
          try Task.checkCancellation()
          if error.isStop || error.concernsFile { throw error }
          running -= 1
          reason = reason ?? error
          if running == 0 { throw reason ?? error }
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

  /// Watches one space until the task is cancelled.
  func watch(
    _ replica: Replica, progress: @escaping @Sendable (SyncProgress) -> Void,
    onEvent: @escaping @Sendable (Replica.WatchEvent) -> Void,
    fileChanged: @escaping @Sendable () -> Void,
    prepare: @escaping @Sendable () async -> Bool = { true }
  ) async throws {
    let wakeups = replica.watches.add()
    defer { replica.watches.remove(wakeups) }
    let watcher = Watcher(
      engine: replica.engine, wakeups: wakeups, prepare: prepare, fileChanged: fileChanged)
    try await watcher.run(progress: replica.noting(progress)) { event in
      switch event {
      case .synced(let report):
        if replica.conflictListeners.oldest != nil { Task { try? await replica.notifyConflicts() } }
        if !replica.companions.all.isEmpty {
          Task(executorPreference: replica.engine.surroundings.executor) {
            await replica.notifyCompanions()
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
    let (surroundings, options) = (first.engine.surroundings, first.engine.surroundings.watch)
    var failures = 0
    while true {
      let pause =
        failures == 0
        ? nil : options.companions.delay(afterFailures: failures, random: surroundings.random())
      try await surroundings.sleep(max(pause ?? .zero, options.remotePoll))
      var isDone = true
      for companion in first.companions.all where await !companion.attend() { isDone = false }
      failures = isDone ? 0 : failures + 1
    }
  }

  /// Runs `body` again for as long as another program locks the file.
  private func whileBusy<T: Sendable>(
    _ body: @Sendable () async throws -> T
  ) async throws -> T {
    try await first.engine.surroundings.whileBusy(body)
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
  func spaceName() async -> String? { try? await server()?.space.value }

  /// Returns true if the space has another server or another stored token now.
  fileprivate func isChanged(since access: ServerAccess) async -> Bool {
    guard let now = try? await self.access() else { return false }
    return now.address != access.address || now.stored != access.stored
  }
}
