import FerryProtocol
import FerrySQLite

/// Changes waiting for the local schema, outside of a pull.
struct KeptRetry {
  let kept: KeptChanges
  let staged: StagedPages
  let rows: DanglingRows
  let adoption: SpellingAdoption
  let actions: PulledActions.Interception
  let attempts: ApplyAttempts
  /// Begins a run over changes.
  let pass: (DeferredRecords) throws -> ApplyPass

  private var connection: SQLiteConnection { kept.connection }
  private var capture: CaptureContext { actions.capture }

  /// Applies kept changes, if the schema may accept them now. Rows may refer to later ones. Changes
  /// of rows without a parent stay deferred. Otherwise the commit fails, and with it each start of
  /// the program.
  func apply(_ choices: [KeptChoice]) throws {
    guard try choices.contains(where: { try kept.next($0, after: .start) != nil })
    else { return }
    let wished = capture.wished
    capture.wished = .list(staged)
    defer { capture.wished = wished }
    let found = try capture.during(.applying) {
      try connection.deferringForeignKeys { try applyInAnyOrder(choices) }
    }
    try adoption.adopt(found)
  }

  /// Returns the spellings of names in the applied changes.
  private func applyInAnyOrder(_ choices: [KeptChoice]) throws -> SpellingsFound {
    let known = connection.hasOpenForeignKeys ? Set(try rows.all().map(\.child)) : []
    var deferred = DeferredRecords()
    while true {
      try connection.execute("SAVEPOINT ferry_kept")
      var pass = try pass(deferred)
      for choice in choices { try pass.retryDeferred(choice) }
      let dangling = connection.hasOpenForeignKeys ? try rows.all() : []
      let found = dangling.filter { !known.contains($0.child) }
      let dependants = try found.isEmpty ? nil : rows.dependants(of: found, written: pass.written)
      if !found.isEmpty { try connection.execute("ROLLBACK TO ferry_kept") }
      // The next pull retries records after a failure in this order of changes.
      if found.isEmpty {
        try kept.openRows()
        if let pulled = pass.findings.pulled { try actions.intercept(pulled) }
      }
      try connection.execute("RELEASE ferry_kept")
      if !found.isEmpty && !deferred.isSearching {
        deferred.isSearching = true
        continue
      }
      let count = deferred.reasons.count
      for row in found where row.isTracked { deferred.parents[row.child] = row.parent }
      if let dependants { deferred.leaveOut(Set(found.map(\.child)), dependants) }
      // If other rows lack a parent by these changes, nothing is applied.
      if deferred.reasons.count == count {
        return found.isEmpty ? pass.findings.spellings : SpellingsFound()
      }
    }
  }

  /// Runs `body`, and reports the number of waiting changes it tried.
  func reporting<T>(
    _ progress: (@Sendable (SyncProgress) -> Void)?, _ body: () throws -> T
  ) throws -> T {
    guard let progress else { return try body() }
    let (total, start) = (try kept.count(), attempts.count)
    attempts.whileRetrying = { [unowned attempts] in
      // Rows without a parent are tried again.
      let done = min(attempts.count - start, total)
      progress(SyncProgress(phase: .applying, completed: done, total: total))
    }
    defer { attempts.whileRetrying = nil }
    return try body()
  }
}

/// The attempts to apply changes to a file, and the receiver of their number.
final class ApplyAttempts {
  /// The attempts, also in rolled back transactions: a measure of the cost.
  var count = 0
  /// Runs after deferred changes were tried, now and then.
  var whileRetrying: (() -> Void)?
}
