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
  /// Tokens fetched by the application.
  var tokens: TokenKeeper?
  let activity = ActivityHub()

  var limits: Limits { surroundings.limits }
  var options: Options { surroundings.sync }

  typealias Progress = @Sendable (SyncProgress) -> Void

  /// Pulls until the head is reached (SPEC.md §5).
  func pull(progress: @escaping Progress) async throws -> SyncReport {
    try await locked {
      try $0.rounds.beginPull()
    } round: { api, start, round in
      try await pull(api, &round.report, start, progress)
    }
  }

  /// Applies all of the server's changes, then sends pending operations (SPEC.md §4).
  func push(progress: @escaping Progress) async throws -> SyncReport {
    try await lockedToSend {
      try $0.rounds.beginPull()
    } round: { api, start, round in
      try await pull(api, &round.report, start, progress)
      let first = try await reconcile(api, &round)
      round.sentThrough = try await push(api, &round.report, first, progress)
      try await pullAfterComparison(api, &round, progress)
    }
  }

  /// Sends pending operations. Pulls only if the server requires it.
  func send() async throws -> SyncReport {
    try await lockedToSend { _ in
    } round: { api, _, round in
      round.sentThrough = try await push(api, &round.report) { _ in }
    }
  }

  /// Pulls, pushes, and pulls the others' changes since. With `trustingHead`, skips a pull if a
  /// live connection has just reported nothing to pull.
  func sync(
    trustingHead head: SequenceNumber? = nil, progress: @escaping Progress
  ) async throws -> SyncReport {
    try await lockedToSend {
      try $0.rounds.isPullNeeded(trusting: head) ? $0.rounds.beginPull() : nil
    } round: { api, start, round in
      if let start { try await pull(api, &round.report, start, progress) }
      var first: PushStart? = try await reconcile(api, &round)
      for attempt in 0..<pushesMax {
        round.sentThrough = try await push(
          api, &round.report, first, inFlight: attempt == 0 ? nil : 1, progress)
        first = nil
        guard
          let start = try await thread.run({
            try $0.rounds.isBehind() ? $0.rounds.beginPull() : nil
          })
        else { break }
        try await pull(api, &round.report, start, progress)
        // A rolled-back server needs the lost operations again, and a list may leave records to
        // fetch.
        guard try await thread.run({ try $0.queue.hasUnsent() || !$0.refreshes.isEmpty() }) else {
          break
        }
      }
      try await pullAfterComparison(api, &round, progress)
    }
  }

  /// Requests one change after the cursor, and leaves it to the next sync: the cursor reports how
  /// far this device has applied the changes.
  func reportApplied() async throws {
    let (server, cursor, names) = try await thread.run { file in
      (try access(file), try file.syncState().cursor, try file.ownNames())
    }
    guard let cursor else { return }
    _ = try await api(of: server).changes(cursor: cursor, limit: 1, names: names)
  }

  /// The most pushes in one sync.
  private var pushesMax: Int { 3 }

  // MARK: Order of a round

  /// Runs a round of requests while no other process syncs this file.
  ///
  /// Each visit of the replica's thread waits for a turn there. So the first one reads everything
  /// the round begins with, and the last one stores the result.
  ///
  /// - Parameters:
  ///   - prepare: reads the state at the beginning of the round.
  ///   - round: makes the requests.
  func locked<Start: Sendable>(
    _ prepare: @escaping @Sendable (ReplicaFile) throws -> Start,
    round: (SyncAPI, Start, inout SyncRound) async throws -> Void
  ) async throws -> SyncReport {
    let lock = try await surroundings.lock(path, options.lockPatience)
    defer { lock.release() }
    activity.update { $0.begin() }
    do {
      let (server, start) = try await thread.run { file in
        (try access(file), try prepare(file))
      }
      var result = SyncRound()
      let api = api(of: server)
      result.report.trace = api.trace.map { "\($0.trace)" }
      try await round(api, start, &result)
      let (offset, shown) = (shared.clockOffset, api.names.now)
      let (report, needs, names) = try await thread.run { [result] in
        (
          try $0.rounds.finish(result, clockOffset: offset), try $0.reports.needs(),
          try $0.nameWork(after: shown, sends: result.sentThrough != nil)
        )
      }
      await exchangeNames(names, api)
      activity.update { $0.end(report, needs: needs, now: surroundings.wallClock()) }
      return report
    } catch {
      let failure = ReplicaError(error)
      activity.update { $0.fail(failure) }
      try await log(failure)
      throw error
    }
  }

  /// Logs a failure. If the log cannot store it, the program still receives it.
  private func log(_ failure: ReplicaError) async throws {
    if failure.isStop { return }
    let entry = LogEntry(at: surroundings.wallClock(), event: "error", detail: "\(failure)")
    // A replica without a server is no event for the log.
    guard failure != .notConfigured else {
      thread.log?.deliver(entry)
      return
    }
    do {
      try await thread.run { try $0.recordFailure(failure) }
    } catch {
      thread.log?.deliver(entry)
      throw error
    }
  }

  func api() async throws -> SyncAPI {
    api(of: try await thread.run { try access($0) })
  }

  /// Returns the server with the token.
  ///
  /// - Throws: ``ReplicaError/notConfigured``, ``ReplicaError/tokenMissing(_:)``.
  func access(_ file: ReplicaFile) throws -> ServerAccess {
    guard var server = try file.access() else { throw ReplicaError.notConfigured }
    guard let tokens else { return server }
    guard tokens.address == server.address else {
      throw ReplicaError.tokenMissing(
        "the app's tokens are for space \(tokens.address.space) on \(tokens.address.url), but this "
          + "replica syncs with space \(server.address.space) on \(server.address.url); Ferry sends a "
          + "token to no other server")
    }
    server.fetched = tokens
    return server
  }

  func api(of server: ServerAccess) -> SyncAPI {
    SyncAPI(server, transport: transport, surroundings: surroundings, shared: shared)
  }

  // MARK: Pull

  /// Pulls until the head is reached.
  ///
  /// - Parameter start: the state at the beginning of the pull, if the caller has just read it.
  func pull(
    _ api: SyncAPI, _ report: inout SyncReport, _ start: PullStart? = nil,
    _ progress: @escaping Progress
  ) async throws {
    var start = start
    var bound = ListBound()
    for attempt in 1... {
      do {
        repeat {
          let from =
            if let start { start } else { try await thread.run { try $0.rounds.beginPull() } }
          start = nil
          guard try await pullPages(api, from, &bound, &report, progress) else { return }
        } while true
      } catch ReplicaError.refused(let problem)
        where problem.code.needsReplacement && attempt < replacementsMax
      {
        try await thread.run { try ReplacingPull($0).begin(problem) }
      } catch ReplicaError.refused(let problem)
        where problem.code == .deviceTaken && attempt < replacementsMax
      {
        try await thread.run { try $0.chain.renewIdentity(problem.code) }
      } catch ReplicaError.refused(let problem)
        where problem.code == .unknownSpace && attempt == 1
      {
        try await createSpace(api, otherwise: problem)
      } catch let error as MalformedMessage {
        // The staged pages may be as broken as the last one.
        try await thread.run { try $0.incoming.discard() }
        throw error
      }
    }
  }

  /// Creates the space at the first contact of a replica, if the token permits it. A space known to
  /// the server before was deleted or lost.
  private func createSpace(_ api: SyncAPI, otherwise problem: Problem) async throws {
    guard try await !thread.run({ try $0.isFound() }) else {
      throw ReplicaError.refused(problem)
    }
    do {
      _ = try await retrying { try await api.space(create: true) }
    } catch ReplicaError.refused(let refusal) where refusal.code == .forbidden {
      // Only an admin's token may make spaces.
      throw ReplicaError.refused(problem)
    }
  }

  /// The most pulls from the start in one pull.
  private var replacementsMax: Int { 3 }

  /// Fetches records with unknown server state; the pull applies them with its list. A rejected
  /// record stops no other one.
  private func refresh(_ api: SyncAPI) async throws {
    try await thread.run { try $0.refreshes.retryRejected() }
    var group = FetchGroup(size: RefreshTable.batch)
    while true {
      let size = group.size
      let keys = try await thread.run { try $0.refreshes.next(size) }
      if keys.isEmpty { return }
      do {
        let body = try await retrying { try await api.records(keys) }
        try await thread.run { try $0.incoming.stage(body, ofRecords: keys) }
        group.accept()
      } catch ReplicaError.refused(let problem) where problem.code.isAboutRecords {
        let rejection = group.reject(sent: keys.count)
        if rejection == .smaller { continue }
        let alone = rejection == .alone ? keys : []
        try await thread.run { try $0.incoming.leaveOut(alone, problem) }
      }
    }
  }

  /// Pulls all pages. Returns true if the list must be pulled from scratch.
  private func pullPages(
    _ api: SyncAPI, _ start: PullStart, _ bound: inout ListBound, _ report: inout SyncReport,
    _ progress: @escaping Progress
  ) async throws -> Bool {
    let (asked, names) = (start.cursor, start.names)
    if start.isToRefresh { try await refresh(api) }
    var received = 0
    var list = PullList(from: asked)
    bound.begin(at: asked?.received ?? -1)
    let applied = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask { try await page(api, asked, names) }
      while let body = try await group.next() {
        let head = try PageReader.head(of: body)
        received += head.count
        progress(
          SyncProgress(
            phase: .pulling, completed: received,
            total: max(received, Int(clamping: head.head - start.applied))))
        if let fault = list.add(head) {
          // The staged pages may be as broken as this one.
          try await thread.run { try $0.incoming.discard() }
          throw ReplicaError.unexpectedAnswer(status: 200, fault)
        }
        guard head.more else {
          return try await apply(last: body, head, progress)
        }
        if let fault = bound.accept(
          reached: head.cursor.received, head: head.head, bytes: body.count)
        {
          throw ReplicaError(
            fault, of: "a list of changes",
            next: "they are stored, and the next sync continues. If no sync ends, ask the server's "
              + "administrator")
        }
        // The next page travels while this one is staged.
        group.addTask { try await page(api, head.cursor, names) }
        try await thread.run { try $0.incoming.stage(body, head, changes: head.count) }
      }
      return AppliedPull()
    }
    report.pulled += applied.applied
    // Each pull retries the changes deferred by an earlier pull.
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

  /// Repeats a request after a temporary failure, with exponential back-off, jitter and the
  /// server's pause.
  ///
  /// Two failures are not repeated: the server requests a longer pause than a sync waits, or the
  /// request exceeded the time limit. Then the user has waited long enough, and a watch retries
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
  /// True if the device must choose another identifier and send unconfirmed operations again.
  var needsIdentity: Bool { self == .deviceForked || self == .deviceTaken }

  /// True if the server cannot continue from a cursor: everything is pulled from the start.
  var needsReplacement: Bool {
    switch self {
    case .epochChanged, .cursorAhead, .historyLost, .cursorExpired, .lostAndExpired: true
    default: false
    }
  }
}
