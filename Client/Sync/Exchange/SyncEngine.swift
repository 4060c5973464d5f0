import FerryNetworking
import FerryProtocol

/// Runs syncs over a transport: performs the actions of an ``Exchange``, which contains the rules.
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
    try await run(.pull, progress)
  }

  /// Applies all of the server's changes, then sends pending operations (SPEC.md §4).
  func push(progress: @escaping Progress) async throws -> SyncReport {
    try await run(.push, progress)
  }

  /// Sends pending operations. Pulls only if the server requires it.
  func send() async throws -> SyncReport { try await run(.send) { _ in } }

  /// Pulls, pushes, and pulls the others' changes since. With `trustingHead`, skips a pull if a
  /// live connection has just reported nothing to pull.
  func sync(
    trustingHead head: SequenceNumber? = nil, progress: @escaping Progress
  ) async throws -> SyncReport {
    try await run(.sync(trusting: head), progress)
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

  // MARK: A round

  /// Runs a round of requests while no other process syncs this file.
  private func run(_ kind: Exchange.Kind, _ progress: @escaping Progress) async throws -> SyncReport
  {
    let lock = try await surroundings.lock(path, options.lockPatience)
    defer { lock.release() }
    activity.update { $0.begin() }
    var newest: Int64?
    do {
      let outcome = try await exchange(kind, &newest, progress)
      activity.update {
        $0.end(outcome.report, needs: outcome.needs, now: surroundings.wallClock())
      }
      return outcome.report
    } catch {
      let failure = ReplicaError(error)
      activity.update { $0.fail(failure) }
      try await record(failure, newest)
      throw error
    }
  }

  /// Logs a failure. If the server or the network caused it, marks the round's operations of upload-only tables
  /// (SPEC.md §17). A cancelled or killed round has not failed: the next one continues it.
  ///
  /// If the log cannot store the failure, the program still receives it.
  ///
  /// - Parameter newest: the newest operation when the round began; `nil` if it was not to send.
  private func record(_ failure: ReplicaError, _ newest: Int64?) async throws {
    if failure.isStop { return }
    let entry = LogEntry(at: surroundings.wallClock(), event: "error", detail: "\(failure)")
    // A replica without a server is no event for the log.
    guard failure != .notConfigured else {
      thread.log?.deliver(entry)
      return
    }
    do {
      try await thread.run { file in
        if let newest, failure.isOfDelivery {
          try file.uploads.markFailed(through: newest, failure.description)
        }
        try file.state.recordFailure(failure)
      }
    } catch {
      thread.log?.deliver(entry)
      throw error
    }
  }

  /// Asks a server for the space, and creates the space if the token permits it.
  func find(_ server: ServerAccess) async throws -> SpaceInfo {
    let api = api(of: server)
    do {
      return try await retrying { try await api.space(create: true) }
    } catch ReplicaError.refused(let problem) where problem.code == .forbidden {
      // Only an admin's token may make spaces; any token may look.
      return try await retrying { try await api.space(create: false) }
    }
  }

  func api() async throws -> SyncAPI {
    api(of: try await thread.run { try access($0) })
  }

  /// Returns the server with the token.
  ///
  /// - Throws: ``ReplicaError/notConfigured``, ``ReplicaError/tokenMissing(_:)``.
  func access(_ file: ReplicaFile) throws -> ServerAccess {
    guard var server = try file.settings.access() else { throw ReplicaError.notConfigured }
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

  func api(of server: ServerAccess, scope: SyncAPI.Scope = .space) -> SyncAPI {
    SyncAPI(
      server, transport: transport, surroundings: surroundings, shared: shared, scope: scope)
  }

  /// Repeats a request after a temporary failure, with exponential back-off, jitter and the
  /// server's pause, by the rules of ``RequestRetry``.
  func retrying<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
    var retry = RequestRetry(pauseMax: options.retry.retryAfterMax)
    while true {
      do {
        return try await body()
      } catch {
        let asked = error as? AskedToWait
        let failure = RequestRetry.Failure(
          error: ReplicaError(error), pause: asked?.pause,
          isTimedOut: (error as? NetworkError)?.kind == .timedOut,
          isForeign: error is ForeignAnswer)
        let step = retry.handle(failure) { failures in
          options.retry.delay(
            afterFailures: failures, retryAfter: asked?.pause, random: surroundings.random())
        }
        switch step {
        case .retry(let delay): try await surroundings.sleep(delay)
        case .fail: throw asked?.explained ?? failure.error
        case .failForeign: throw error
        }
      }
    }
  }
}

extension ReplicaError {
  /// True if the server or the network caused the failure.
  fileprivate var isOfDelivery: Bool {
    switch self {
    case .offline, .refused, .unexpectedAnswer, .untrusted, .redirected, .tooLarge, .leftBehind,
      .unfinished:
      true
    default: false
    }
  }
}
