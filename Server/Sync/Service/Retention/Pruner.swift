import FerryProtocol

/// The removal of history older than the spaces' retention, in the background and a little at a
/// time.
///
/// Each server has one; over PostgreSQL only one of them prunes a space at a time. The next run
/// finishes the work of a killed server.
package struct Pruner: Sendable {
  /// The pace of the work.
  package struct Pace: Sendable, Equatable {
    /// The time between two runs.
    package var interval: Duration
    /// The time between two slices, in which writers have the store to themselves.
    package var pause: Duration
    /// The most rows deleted by one transaction.
    package var rows: Int

    package init(
      interval: Duration = .seconds(600), pause: Duration = .milliseconds(20), rows: Int = 2_000
    ) {
      (self.interval, self.pause, self.rows) = (interval, pause, rows)
    }

    package static let standard = Pace()
  }

  private let store: any SyncStore
  private let clock: ServiceClock
  private let metrics: ServiceMetrics
  private let log: ServiceLog
  private let pace: Pace
  private let sleep: @Sendable (Duration) async throws -> Void

  /// - Parameter sleep: How time passes between slices and runs; throws when it is to end.
  package init(
    store: any SyncStore, clock: ServiceClock, metrics: ServiceMetrics, log: ServiceLog,
    pace: Pace = .standard,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    (self.store, self.clock, self.metrics, self.log) = (store, clock, metrics, log)
    (self.pace, self.sleep) = (pace, sleep)
  }

  /// Runs again and again until the task is cancelled. A failed run is logged.
  ///
  /// - Parameter onRun: Called after each run.
  package func run(_ onRun: (PruneRun) -> Void = { _ in }) async {
    var debt = ReclaimDebt()
    while (try? await sleep(pace.interval)) != nil {
      do {
        onRun(try await pruneAll(&debt))
      } catch let error as StoreError {
        metrics.countStoreError()
        log.write(error)
      } catch {
        return
      }
    }
  }

  /// Runs once over all spaces, each by its own retention. Throws ``StoreError``, and the errors of
  /// `sleep`. A failure at one space is thrown after the other spaces were pruned.
  ///
  /// - Parameter debt: The room not reclaimed by earlier runs.
  package func pruneAll(_ debt: inout ReclaimDebt) async throws -> PruneRun {
    let started = clock.uptime()
    var run = PruneRun()
    var kept: SequenceNumber = 0
    var failure: StoreError?
    for space in try await store.spaces() {
      let now = clock.wall()
      let result: PruneResult
      do {
        result = try await prune(space, keeping: space.retention, now: now)
      } catch let error as StoreError {
        failure = failure ?? error
        // Each other space would fail as well, after another wait.
        if case .unavailable = error { break }
        continue
      }
      run.rows += result.rows
      debt.add(result.rows)
      kept += result.horizon.head - result.horizon.retentionHorizon
      run.isBusy = run.isBusy || result.isBusy
      if let at = result.horizon.at { run.historyAge = max(run.historyAge ?? 0, now - at) }
      if result.isBusy { break }
    }
    // Reports the deleted rows even if their room cannot be reclaimed.
    let reclaimed = await reclaim(&debt, keeping: kept)
    run.unreclaimed = debt.rows
    run.duration = clock.uptime() - started
    metrics.count(run)
    log.write(run)
    if let failure { throw failure }
    try reclaimed.get()
    return run
  }

  private func reclaim(
    _ debt: inout ReclaimDebt, keeping history: SequenceNumber
  ) async -> Result<Void, any Error> {
    guard debt.isDue(keeping: history) else { return .success(()) }
    do {
      if try await reclaim() { debt.reset() }
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// Prunes one space. Throws the same errors as ``pruneAll(_:)``.
  ///
  /// - Parameters:
  ///   - retention: The history to store, instead of the space's own retention.
  ///   - progress: Called after each slice with the reached place in the history.
  package func prune(
    _ space: SpaceSummary, keeping retention: Retention,
    progress: (PruneProgress) -> Void = { _ in }
  ) async throws -> PruneResult {
    try await prune(space, keeping: retention, now: clock.wall(), progress: progress)
  }

  private func prune(
    _ space: SpaceSummary, keeping retention: Retention, now: Int64,
    progress: (PruneProgress) -> Void = { _ in }
  ) async throws -> PruneResult {
    let request = HorizonRequest(now: now, keeping: retention)
    let horizon = try await store.raiseRetentionHorizon(of: space.id, request)
    var result = PruneResult(horizon: horizon)
    guard retention != .forever else { return result }
    var slice = PruneSlice(request, rows: pace.rows)
    while true {
      switch try await store.prune(slice, of: space.id) {
      case .busy:
        result.isBusy = true
        return result
      case .pruned(let rows, let reached, let isLast):
        result.rows += rows
        slice.after = reached
        progress(PruneProgress(reached: reached, end: horizon.retentionHorizon - 1))
        if isLast { return result }
      }
      try await sleep(pace.pause)
    }
  }

  /// Makes the store reclaim the room of deleted rows. Returns `true` if nothing was in the way.
  @discardableResult
  package func reclaim() async throws -> Bool {
    while true {
      switch try await store.reclaim() {
      case .done: return true
      case .busy: return false
      case .more: try await sleep(pace.pause)
      }
    }
  }
}
