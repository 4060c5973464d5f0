import FerryNetworking
import FerryProtocol
import Synchronization

/// Keeps a replica in sync while it runs (SPEC.md §7). A live connection reports each move of the
/// head, and local writes are sent at once. If the connection fails, the watcher polls until it is
/// back.
package struct Watcher: Sendable {
  /// The intervals of a watch.
  package struct Options: Sendable {
    /// The interval between checks of the file for writes of other processes.
    package var localPoll: Duration = .milliseconds(25)
    /// True if no other process writes to the file: then it is not observed.
    package var isAlone = false
    /// The interval between syncs without a live connection.
    package var remotePoll: Duration = .seconds(5)
    /// The longest silence of a working live connection: three heartbeats.
    package var silence: Duration = .seconds(45)
    /// The age of a trusted live connection: after it ends, the next one is tried at once.
    package var steady: Duration = .seconds(30)
    package var retry = RetryPolicy(
      delayBase: .milliseconds(250), delayMax: .seconds(30), attemptsMax: nil)
    /// The pauses before a stopped space is tried again, while others continue.
    package var stopped = RetryPolicy(
      delayBase: .seconds(10), delayMax: .seconds(600), attemptsMax: nil)

    /// The pauses before failed work beside the file is tried again.
    package var companions = RetryPolicy(
      delayBase: .seconds(5), delayMax: .seconds(60), attemptsMax: nil)

    package init() {}
  }

  /// An event for the watching caller.
  enum Event: Sendable {
    case synced(SyncReport)
    case offline(ReplicaError)
    case connected
  }

  let engine: SyncEngine
  var options: Options { engine.surroundings.watch }
  let wakeups: Wakeups
  /// Called before each sync; `false` postpones the sync.
  var prepare: @Sendable () async -> Bool = { true }
  /// Called when another process has written to the file.
  var fileChanged: @Sendable () -> Void = {}

  /// Runs until it is cancelled, or until a permanent error.
  func run(
    progress: @escaping SyncEngine.Progress, onEvent: @escaping @Sendable (Event) -> Void
  ) async throws {
    let live = SharedLiveHead()
    let pauses = WatchPauses(engine.surroundings)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await listen(live, pauses, onEvent) }
      group.addTask { try await watchFile() }
      group.addTask { try await pollWhileDisconnected(live) }
      group.addTask { try await syncOnWakeups(live, pauses, progress, onEvent) }
      wakeups.wake()
      defer { group.cancelAll() }
      try await group.next()
      // A cancelled stream of wakeups only ends; this throws as the other tasks do.
      try Task.checkCancellation()
    }
  }

  // MARK: Wakeups

  /// The pause of a task without work; any will do.
  private static let idlePause = Duration.seconds(3_600)

  /// Reads the live connection, and opens it again. A sync decides whether the server refuses this
  /// device: a proxy may refuse event streams alone.
  private func listen(
    _ live: SharedLiveHead, _ pauses: WatchPauses, _ onEvent: @Sendable (Event) -> Void
  ) async throws {
    while !Task.isCancelled {
      do {
        let head = try await engine.thread.run { try $0.syncState().applied }
        let stream = try await engine.api().events(after: head, silence: options.silence)
        defer { stream.body.cancel() }
        live.update { $0.connect(head: head) }
        onEvent(.connected)
        pauses.open()
        wakeups.wake()
        try await read(stream, live, pauses)
      } catch {
        if ReplicaError(error).isStop { throw CancellationError() }
      }
      live.update { $0.disconnect() }
      wakeups.wake()
      try await pauses.rest(.connection)
    }
  }

  /// Reads an open live connection until the end: each event is the space's newest head.
  private func read(
    _ stream: TransportStream, _ live: SharedLiveHead, _ pauses: WatchPauses
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [engine, options] in
        try await engine.surroundings.sleep(options.steady)
        pauses.live()
      }
      defer { group.cancelAll() }
      var parser = ServerSentEventParser()
      for try await bytes in stream.body {
        for event in try parser.feed(bytes) {
          guard let event = HeadEvent(event) else { continue }
          live.update { $0.move(to: event) }
          pauses.open()
          wakeups.wake()
        }
      }
    }
  }

  /// Observes writes of other processes to the file.
  private func watchFile() async throws {
    while options.isAlone { try await engine.surroundings.sleep(Self.idlePause) }
    var seen = try await fileVersion()
    while true {
      try await engine.surroundings.sleep(options.localPoll)
      let version = try await fileVersion()
      if version != seen {
        wakeups.wake()
        fileChanged()
      }
      seen = version
    }
  }

  private func fileVersion() async throws -> Int64 {
    try await engine.surroundings.whileBusy { [engine] in
      try await engine.thread.run { try $0.dataVersion() }
    }
  }

  /// Syncs regularly without a live connection. With one, reports the applied changes after a quiet time:
  /// else the server learns of them with the next change.
  private func pollWhileDisconnected(_ live: SharedLiveHead) async throws {
    var progress = AppliedReport()
    var rounds = 0
    while true {
      try await engine.surroundings.sleep(options.remotePoll)
      guard live.now.head != nil else {
        wakeups.wake()
        continue
      }
      let present = live.rounds
      // Nobody else syncs the file: an idle replica does not touch it.
      if options.isAlone, present == rounds, progress.isReported { continue }
      do {
        let applied = try await engine.thread.run { try $0.syncState().applied }
        rounds = present
        guard progress.isDue(applied) else { continue }
        try await engine.reportApplied()
        progress.report(applied)
      } catch {
        // The next change reports it as well.
        if ReplicaError(error).isStop { throw CancellationError() }
      }
    }
  }

  // MARK: Syncs

  private func syncOnWakeups(
    _ live: SharedLiveHead, _ pauses: WatchPauses, _ progress: @escaping SyncEngine.Progress,
    _ onEvent: @Sendable (Event) -> Void
  ) async throws {
    var rules = WatchRules()
    for await _ in wakeups.stream {
      do {
        guard try await hasWork(live.now.trusted) else { continue }
        guard await prepare() else {
          try await engine.surroundings.sleep(options.remotePoll)
          wakeups.wake()
          continue
        }
        let now = live.now
        let report = try await engine.sync(trustingHead: now.trusted, progress: progress)
        onEvent(.synced(report))
        live.countRound()
        live.update { $0.trust(now.history) }
        guard rules.succeed(report) == .retry else {
          pauses.succeed()
          continue
        }
      } catch {
        let failure = ReplicaError(error)
        switch rules.fail(failure) {
        case .stop: throw CancellationError()
        case .fail: throw failure
        case .retry, .wait: onEvent(.offline(failure))
        }
      }
      try await pauses.rest(.sync)
      wakeups.wake()
    }
  }

  private func hasWork(_ head: SequenceNumber?) async throws -> Bool {
    guard let head else { return true }
    return try await engine.thread.run { file in
      let state = try file.syncState()
      return WatchRules.Work(
        applied: state.epoch.map { _ in state.applied }, hasOperations: try file.queue.count() > 0,
        hasUnsentName: try file.nameSteps.hasUnsent(), hasRefreshes: try !file.refreshes.isEmpty(),
        hasReturning: try file.tables.tracked.hasReturning(),
        hasUnrecorded: try !file.unrecordedWrites.current().isEmpty
      ).isDue(at: head)
    }
  }
}

/// Wakes the watcher; several calls before the watcher's next check count as one.
package final class Wakeups: Sendable {
  let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() {
    (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  func wake() { continuation.yield() }
}

/// The head, shared by the tasks of a watcher.
private final class SharedLiveHead: Sendable {
  private let state = Mutex(LiveHead())

  var now: LiveHead { state.withLock { $0 } }

  func update(_ change: (inout LiveHead) -> Void) { state.withLock { change(&$0) } }

  private let count = Atomic(0)

  /// The number of complete syncs.
  var rounds: Int { count.load(ordering: .relaxed) }

  func countRound() { count.wrappingAdd(1, ordering: .relaxed) }
}
