import FerryProtocol
import FerrySQLite

/// Changes waiting for the local schema, outside of a pull.
struct KeptRetry {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }

  init(_ file: ReplicaFile) { self.file = file }

  /// Applies kept changes, if the schema may accept them now. Rows may refer to later ones. Changes
  /// of rows without a parent stay deferred. Otherwise the commit fails, and with it each start of
  /// the program.
  func apply(_ choices: [KeptChoice]) throws {
    guard try choices.contains(where: { try file.kept.next($0, after: .start) != nil })
    else { return }
    let capture = file.capture
    let wished = capture.wished
    capture.wished = .list(file.stagedPages)
    defer { capture.wished = wished }
    let found = try capture.during(.applying) {
      try connection.deferringForeignKeys { try applyInAnyOrder(choices) }
    }
    try SpellingAdoption(file: file).adopt(found)
  }

  /// Returns the spellings of names in the applied changes.
  private func applyInAnyOrder(_ choices: [KeptChoice]) throws -> SpellingsFound {
    let device = try file.identity().device
    let rows = DanglingRows(file)
    let known = connection.hasOpenForeignKeys ? Set(try rows.all().map(\.child)) : []
    var deferred = DeferredRecords()
    while true {
      try connection.execute("SAVEPOINT ferry_kept")
      var pass = try ApplyPass(file: file, device: device, deferred)
      for choice in choices { try pass.retryDeferred(choice) }
      let dangling = connection.hasOpenForeignKeys ? try rows.all() : []
      let found = dangling.filter { !known.contains($0.child) }
      let dependants = try found.isEmpty ? nil : rows.dependants(of: found, written: pass.written)
      if !found.isEmpty { try connection.execute("ROLLBACK TO ferry_kept") }
      // The next pull retries records after a failure in this order of changes.
      if found.isEmpty {
        try file.kept.openRows()
        try pass.findings.pulled?.intercept(in: file)
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
    let (total, start) = (try file.kept.count(), file.attempts)
    file.whileRetrying = { [unowned file] in
      // Rows without a parent are tried again.
      let done = min(file.attempts - start, total)
      progress(SyncProgress(phase: .applying, completed: done, total: total))
    }
    defer { file.whileRetrying = nil }
    return try body()
  }
}
