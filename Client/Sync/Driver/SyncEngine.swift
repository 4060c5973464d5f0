import FerryNetworking
import FerryProtocol

/// Runs syncs: pulls, then pushes, over a transport. It only orders the calls; the machines and the
/// file's transactions contain the rules.
package struct SyncEngine: Sendable {
  /// The options of a sync.
  package struct Options: Sendable {
    /// The number of concurrent packets; the dependency chain makes their order of arrival
    /// irrelevant.
    package var packetsInFlight = 4
    /// The number of changes requested in one page.
    package var pageSize = 5_000
    /// The retries before a sync gives up.
    package var retry = RetryPolicy(
      delayBase: .milliseconds(200), delayMax: .seconds(5), retryAfterMax: .seconds(10),
      attemptsMax: 4)
    /// The longest wait for another process that syncs the same file.
    package var lockPatience: Duration = .seconds(60)

    package init() {}
  }

  let thread: ReplicaThread
  let path: String
  let transport: any Transport
  let surroundings: ReplicaSurroundings
  let shared: SyncAPI.Shared

  var limits: Limits { surroundings.limits }
  var options: Options { surroundings.sync }

  typealias Progress = @Sendable (SyncProgress) -> Void

  /// Pulls until the head is reached (SPEC.md §5).
  func pull(progress: @escaping Progress) async throws -> SyncReport {
    try await locked { api in
      var report = SyncReport()
      try await pull(api, &report, progress)
      return report
    }
  }

  /// Applies all of the server's changes, then sends pending operations (SPEC.md §4).
  func push(progress: @escaping Progress) async throws -> SyncReport {
    try await lockedToSend { api in
      var report = SyncReport()
      try await pull(api, &report, progress)
      let reconciled = try await reconcile(api, &report)
      let newest = try await thread.run { try $0.newestRecorded() }
      try await push(api, &report, progress)
      try await finish(reconciled, api, &report, progress)
      report.left = try await thread.run { try $0.unconfirmedCount(through: newest) }
      return report
    }
  }

  /// Pulls, pushes, and pulls the others' changes since. With `trustingHead`, skips a pull if a
  /// live connection has just reported that there is nothing to pull.
  func sync(
    trustingHead head: SequenceNumber? = nil, progress: @escaping Progress
  ) async throws -> SyncReport {
    try await lockedToSend { api in
      var report = SyncReport()
      let before = try await thread.run { try $0.syncState() }
      let isAsking = try await thread.run { file in
        try file.hasFailed() || file.hasReturningTables() || file.hasUnrecordedTables()
      }
      if isAsking || before.epoch == nil || head == nil || before.received != before.applied
        || head.map({ $0 > before.applied || $0 < before.head }) ?? true
      {
        try await pull(api, &report, progress)
      }
      let reconciled = try await reconcile(api, &report)
      var toSend: Int64 = 0
      for attempt in 0..<pushesMax {
        toSend = try await thread.run { try $0.newestRecorded() }
        try await push(api, &report, inFlight: attempt == 0 ? nil : 1, progress)
        let after = try await thread.run { try $0.syncState() }
        let isToRefresh = try await thread.run { try $0.hasRefresh() }
        guard after.head > after.applied || isToRefresh else { break }
        try await pull(api, &report, progress)
        // A rolled-back server needs its lost operations again.
        guard try await thread.run({ try $0.hasUnsent() }) else { break }
      }
      try await finish(reconciled, api, &report, progress)
      report.left = try await thread.run { [toSend] in
        try $0.unconfirmedCount(through: toSend)
      }
      return report
    }
  }

  /// The most pushes in one sync.
  private var pushesMax: Int { 3 }

  // MARK: Order of a round

  func locked(
    _ round: (SyncAPI) async throws -> SyncReport
  ) async throws -> SyncReport {
    let lock = try await surroundings.lock(path, options.lockPatience)
    defer { lock.release() }
    do {
      var report = try await round(try await api())
      let offset = shared.clockOffset
      report.cursor = try await thread.run { [report] file in
        try file.finishSync(report, clockOffset: offset)
        return try file.syncState().cursor
      }
      return report
    } catch {
      let failure = ReplicaError(error)
      if failure != .cancelled && failure != .notConfigured {
        try await thread.run { try $0.noteFailure(failure) }
      }
      throw error
    }
  }

  func api() async throws -> SyncAPI {
    guard let server = try await thread.run({ try $0.access() }) else {
      throw ReplicaError.notConfigured
    }
    return SyncAPI(
      server, transport: transport, surroundings: surroundings, shared: shared)
  }

  // MARK: Pull

  func pull(
    _ api: SyncAPI, _ report: inout SyncReport, _ progress: @escaping Progress
  ) async throws {
    try await thread.run { try $0.beginReturns() }
    for attempt in 1... {
      do {
        while try await pullPages(api, &report, progress) {}
        return
      } catch ReplicaError.refused(let problem)
        where problem.code.needsReplacement && attempt < replacementsMax
      {
        try await thread.run { try $0.beginReplacement(problem) }
      } catch ReplicaError.refused(let problem)
        where problem.code == .deviceTaken && attempt < replacementsMax
      {
        try await thread.run { try $0.takeNewIdentity(problem.code) }
      } catch let error as MalformedMessage {
        // The staged pages may be as broken as the last one.
        try await thread.run { try $0.discardStaged() }
        throw error
      }
    }
  }

  /// The most pulls from the start in one pull.
  private var replacementsMax: Int { 3 }

  /// Fetches records whose server state is unknown here; the pull applies them with its list.
  private func refresh(_ api: SyncAPI) async throws {
    while true {
      let keys = try await thread.run { try $0.recordsToRefresh() }
      if keys.isEmpty { return }
      let body = try await retrying { try await api.records(keys) }
      try await thread.run { try $0.stageRefresh(body, of: keys) }
    }
  }

  /// Pulls all pages. Returns whether the list has to be pulled from scratch.
  private func pullPages(
    _ api: SyncAPI, _ report: inout SyncReport, _ progress: @escaping Progress
  ) async throws -> Bool {
    let (start, asked, names) = try await thread.run { file in
      (try file.syncState(), try file.knownCursor(ofFormerNames: true), try file.ownNames())
    }
    if try await thread.run({ try $0.hasRefresh() }) { try await refresh(api) }
    var received = 0
    // Each page has to advance the list, even if the server is broken.
    var reached = asked?.received ?? -1
    let applied = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask { try await page(api, asked, names) }
      while let body = try await group.next() {
        let head = try PageReader.head(of: body)
        received += head.count
        progress(
          SyncProgress(
            phase: head.more ? .pulling : .applying, completed: received,
            total: max(received, Int(clamping: head.head - start.applied))))
        guard head.more else { return try await thread.run { try $0.apply(last: body, head) } }
        guard head.cursor.received > reached, head.cursor.received <= head.head else {
          throw ReplicaError.unexpectedAnswer(
            status: 200,
            "a list of changes without progress: it reached change \(max(0, reached)) of "
              + "\(head.head), and the next page ends at \(head.cursor.received)")
        }
        reached = head.cursor.received
        // The next page travels while this one is staged.
        group.addTask { try await page(api, head.cursor, names) }
        try await thread.run { try $0.stage(body, head, changes: head.count) }
      }
      return AppliedPull()
    }
    report.pulled += applied.applied
    // Each pull retries the changes that an earlier pull deferred.
    if !applied.isToRepeat { report.refused = applied.refused }
    return applied.isToRepeat
  }

  private func page(
    _ api: SyncAPI, _ cursor: Cursor?, _ names: OwnNames
  ) async throws -> [UInt8] {
    try await retrying {
      try await api.changes(cursor: cursor, limit: options.pageSize, names: names)
    }
  }

  /// Repeats a request that may succeed later, with exponential back-off, jitter and the server's
  /// pause.
  ///
  /// Two failures are not repeated: the server requests a longer pause than a sync waits, or the
  /// request exceeded its time limit. Then the user has waited long enough, and a watch retries
  /// anyway.
  func retrying<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
    var failures = 0
    while true {
      do {
        return try await body()
      } catch {
        let failure = ReplicaError(error)
        failures += 1
        let wish = (error as? AskedToWait)?.pause
        if let asked = error as? AskedToWait, asked.pause > options.retry.retryAfterMax {
          throw asked.explained
        }
        if let foreign = error as? ForeignAnswer, !failure.isTransient { throw foreign }
        guard failure.isTransient, (error as? NetworkError)?.kind != .timedOut,
          let delay = options.retry.delay(
            afterFailures: failures, retryAfter: wish, random: surroundings.random())
        else { throw (error as? AskedToWait)?.explained ?? failure }
        try await surroundings.sleep(delay)
      }
    }
  }
}

extension ProblemCode {
  /// Whether the device must take another identifier and send its unconfirmed operations again.
  var needsIdentity: Bool { self == .deviceForked || self == .deviceTaken }

  /// Whether the server cannot continue from a cursor, so that everything is pulled from the start.
  var needsReplacement: Bool {
    switch self {
    case .epochChanged, .cursorAhead, .historyLost, .cursorExpired, .lostAndExpired: true
    default: false
    }
  }
}
