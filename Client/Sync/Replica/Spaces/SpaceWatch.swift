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

  private typealias Steps = ThrowingTaskGroup<Step, any Error>

  /// The parts of a running watch.
  private struct Run: Sendable {
    let changes: Wakeups
    let spaces: SharedSpaces
    let progress: @Sendable (SyncProgress) -> Void
    let onEvent: @Sendable (String?, Replica.WatchEvent) -> Void
  }

  /// Watches all spaces, also those joined meanwhile, until the task is cancelled, the file fails,
  /// or no space can continue.
  func run(
    progress: @escaping @Sendable (SyncProgress) -> Void,
    onEvent: @escaping @Sendable (String?, Replica.WatchEvent) -> Void
  ) async throws {
    let changes = first.watches.add()
    defer { first.watches.remove(changes) }
    let run = Run(
      changes: changes, spaces: SharedSpaces(WatchedSpaces(first: first.number)),
      progress: progress, onEvent: onEvent)
    try await withThrowingTaskGroup(of: Step.self) { group in
      group.addTask { [self] in
        try await attendCompanions()
        return .spacesMayHaveChanged
      }
      defer { group.cancelAll() }
      begin(first, run, &group)
      changes.wake()
      awaitChange(run, &group)
      while let step = try await group.next() { try await perform(step, run, &group) }
    }
  }

  private func perform(_ step: Step, _ run: Run, _ group: inout Steps) async throws {
    switch step {
    case .spacesMayHaveChanged:
      for replica in try await whileBusy({ try await first.spaces.replicas() }) {
        let isResting = run.spaces.update { $0.isResting(replica.number) }
        let access = isResting ? try? await replica.access() : nil
        if run.spaces.update({ $0.admit(replica.number, access) }) { begin(replica, run, &group) }
      }
      awaitChange(run, &group)
    case .rested(let number):
      switch run.spaces.update({ $0.resume(number) }) {
      case .watchFirst: begin(first, run, &group)
      case .look: run.changes.wake()
      case nil: break
      }
    case .ended(let replica, let error):
      try Task.checkCancellation()
      if let reason = run.spaces.update({ $0.end(error) }) { throw reason }
      // The file may have left it.
      guard let (space, access) = try await whileBusy({ try await namedAccess(replica) })
      else { return }
      let (failures, isNews) = run.spaces.update { $0.rest(replica.number, access, error) }
      if isNews { run.onEvent(space, .stopped(space: space, error)) }
      rest(replica.number, afterFailures: failures, &group)
    }
  }

  private func begin(_ replica: Replica, _ run: Run, _ group: inout Steps) {
    group.addTask { [self] in
      let space = await SpaceExchange.name(of: replica)
      do {
        try await watch(replica, progress: run.progress) { event in
          if case .synced = event { run.spaces.update { $0.succeed(replica.number) } }
          run.onEvent(space, event)
        } fileChanged: {
          run.changes.wake()
        }
        return .ended(replica, .cancelled)
      } catch {
        return .ended(replica, ReplicaError(error))
      }
    }
  }

  private func awaitChange(_ run: Run, _ group: inout Steps) {
    group.addTask {
      for await _ in run.changes.stream { return .spacesMayHaveChanged }
      throw CancellationError()
    }
  }

  private func rest(_ number: Int, afterFailures failures: Int, _ group: inout Steps) {
    let surroundings = first.engine.surroundings
    let pause = surroundings.watch.stopped.delay(
      afterFailures: failures, random: surroundings.random())
    guard let pause else { return }
    group.addTask {
      try await surroundings.sleep(pause)
      return .rested(number)
    }
  }

  /// Returns the space's name with the server and the token; `nil` if there is none, or if the file
  /// has left it.
  private func namedAccess(_ replica: Replica) async throws -> (String, ServerAccess)? {
    do {
      guard let space = try await replica.server()?.space.value else { return nil }
      return (space, try await replica.access())
    } catch let error where !ReplicaError(error).isBusy {
      return nil
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

/// The spaces of a watch, shared by the watches of each.
private final class SharedSpaces: Sendable {
  private let state: Mutex<WatchedSpaces>

  init(_ spaces: WatchedSpaces) { state = Mutex(spaces) }

  func update<T: Sendable>(_ change: (inout WatchedSpaces) -> T) -> T {
    state.withLock { change(&$0) }
  }
}
