import FerryProtocol
import FerrySQLite

/// Retries changes rejected by the local schema, after all others are applied.
extension ApplyPass {
  /// Retries kept changes: a missing parent row or column may exist now. Unique values can move
  /// between any number of rows, if they fit in the final state. The time needed grows only with
  /// the number of these rows.
  mutating func retryDeferred(_ choice: KeptChoice) throws {
    guard facts.hasKept else { return }
    let blocked = try retryKept(choice)
    // A row moved later in this retry may have blocked a single record.
    if !blocked.isEmpty { try move(blocked) }
  }

  /// Tries the deferred changes, if the list, or an own write since the last pull, may have changed
  /// their reason. The others cost nothing.
  mutating func retryDeferred() throws {
    guard facts.hasKept else { return }
    if !hasOpenedKept {
      hasOpenedKept = true
      try file.kept.openAfterOwnWrites()
      try file.kept.openUnseen()
    }
    try openAfterWrites()
    // Deletes of records with references to each other are decided together.
    if !held.isEmpty { try file.kept.openRows() }
    // Others may wait for an applied record.
    repeat {
      let blocked = try retryKept(.open)
      if !blocked.isEmpty { try move(blocked) }
      // Such a record may need the place of a record deleted as soon as the children have moved.
      if !held.isEmpty { for key in blocked { try file.kept.open(waitingFor: key) } }
    } while try file.kept.hasOpen()
  }

  /// Opens changes for the next retry, if writes of this pass have perhaps made room for them.
  mutating func openAfterWrites() throws {
    guard facts.hasKept else { return }
    try file.kept.open(afterWritesTo: writtenTables.dequeue())
  }

  /// Retries deferred changes.
  ///
  /// - Returns: The records possibly blocked by values of other rows.
  private mutating func retryKept(_ choice: KeptChoice) throws -> [RecordKey] {
    var blocked: [RecordKey] = []
    var place = KeptPlace.start
    while let kept = try file.kept.next(choice, after: place) {
      place = KeptPlace(kept.change)
      if kept.isReadable, try apply(kept.change, isRetry: true) == .blocked {
        blocked.append(kept.change.key)
      }
      try file.kept.endAttempt(kept.change.key)
      if file.attempts.count % Self.attemptsPerReport == 0 { try pause() }
    }
    return blocked
  }

  private static let attemptsPerReport = 256

  /// Reports progress, and ends the work if it was cancelled.
  private func pause() throws {
    file.attempts.whileRetrying?()
    try connection.checkInterruption()
  }

  /// Moves the rows of these records out of their tables, and applies their deferred changes. If
  /// not all of them fit, a failed record and any record in conflict with it keep their former
  /// rows. The others are applied alone.
  private mutating func move(_ keys: [RecordKey]) throws {
    let rows = RowsAside(connection: connection, capture: file.capture)
    for key in keys {
      if let plan = try file.tables.plan(for: key.table) { try rows.prepare(plan.table) }
    }
    var moving = keys
    var attempts = 0
    while !moving.isEmpty && attempts < 2 {
      attempts += 1
      let before = self
      aside = rows
      try connection.execute("SAVEPOINT ferry_aside")
      let failed = try applyKept(moving)
      let staying = try staying(failed, among: moving)
      if !failed.isEmpty { try connection.execute("ROLLBACK TO ferry_aside") }
      try connection.execute("RELEASE ferry_aside")
      aside = nil
      if failed.isEmpty { break }
      self = before
      moving.removeAll { staying.contains($0) }
    }
    try rows.end()
  }

  /// Applies the deferred changes of these records.
  ///
  /// - Returns: The records with a failed change.
  private mutating func applyKept(_ keys: [RecordKey]) throws -> [RecordKey] {
    for key in keys { _ = try aside?.remove(key) }
    var failed: [RecordKey] = []
    for key in keys {
      guard let kept = try file.kept.change(of: key), kept.isReadable else { continue }
      try apply(kept.change, isRetry: true)
      if try file.kept.change(of: key)?.isRefused ?? false { failed.append(key) }
    }
    return failed
  }

  /// Returns the records with rows that must stay: failed ones, and those that now have values of a
  /// row that stays.
  private func staying(_ failed: [RecordKey], among keys: [RecordKey]) throws -> Set<RecordKey> {
    var staying = Set(failed)
    if staying.isEmpty { return [] }
    let moving = Set(keys)
    var waiting = failed
    while let key = waiting.popLast() {
      for other in try aside?.successors(of: key) ?? [] where moving.contains(other) {
        if staying.insert(other).inserted { waiting.append(other) }
      }
    }
    return staying
  }
}
