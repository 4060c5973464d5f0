import FerryProtocol
import FerrySQLite

/// Changes waiting for the local schema, outside of a pull.
extension ReplicaFile {
  /// Applies kept changes, if the schema may accept them now. Rows may refer to later ones. Changes
  /// of rows without a parent stay deferred. Otherwise the commit fails, and with it each start of
  /// the program.
  func applyKept(_ choices: [KeptChoice]) throws {
    guard try choices.contains(where: { try kept.next($0, after: .start) != nil }) else { return }
    let (before, wished) = (capture.mode, capture.wished)
    capture.wished = wishedNumbers()
    capture.mode = .applying
    defer { (capture.mode, capture.wished) = (before, wished) }
    let found = try connection.deferringForeignKeys { try applyKeptInAnyOrder(choices) }
    capture.mode = before
    try adopt(found)
  }

  /// Returns the spellings of names in the applied changes.
  private func applyKeptInAnyOrder(_ choices: [KeptChoice]) throws -> SpellingsFound {
    let device = try identity().device
    let known = connection.hasOpenForeignKeys ? Set(try danglingRows().map(\.child)) : []
    var deferred = DeferredRecords()
    while true {
      try connection.execute("SAVEPOINT ferry_kept")
      var pass = try ApplyPass(file: self, device: device, deferred)
      for choice in choices { try pass.retryDeferred(choice) }
      let dangling = connection.hasOpenForeignKeys ? try danglingRows() : []
      let found = dangling.filter { !known.contains($0.child) }
      let dependants = try found.isEmpty ? nil : self.dependants(of: found, pass)
      if !found.isEmpty { try connection.execute("ROLLBACK TO ferry_kept") }
      // The next pull retries records after a failure in this order of changes.
      if found.isEmpty {
        try kept.openRows()
        try intercept(pass.pulled)
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
        return found.isEmpty ? pass.spellings : SpellingsFound()
      }
    }
  }

  /// Runs `body`, and reports the number of waiting changes it tried.
  func reporting<T>(
    _ progress: (@Sendable (SyncProgress) -> Void)?, _ body: () throws -> T
  ) throws -> T {
    guard let progress else { return try body() }
    let (total, start) = (try kept.count(), attempts)
    whileRetrying = { [unowned self] in
      // Rows without a parent are tried again.
      let done = min(self.attempts - start, total)
      progress(SyncProgress(phase: .applying, completed: done, total: total))
    }
    defer { whileRetrying = nil }
    return try body()
  }
}
