import FerryProtocol
import FerrySQLite

/// The result of one pull.
package struct AppliedPull: Sendable, Equatable {
  /// Changes applied, without an effect here, or kept for unknown tables and columns.
  package var applied = 0
  /// Changes deferred because the local schema rejects them.
  package var refused = 0
  /// True if nothing was applied because the cursor had to go back: the list is to be pulled again.
  package var isToRepeat = false
}

/// A complete pull list on its way into the tables: the staged pages and the last one.
struct PulledList {
  let file: ReplicaFile
  /// The last page, which is not staged.
  let last: [UInt8]
  let head: PageHead

  private var connection: SQLiteConnection { file.connection }

  /// Applies the list, and moves the cursor, in one transaction. A reader sees the replica before
  /// the pull or after it. A list that was filled in is exchanged.
  ///
  /// - Parameter progress: gets the number of changes tried so far, after each page.
  func apply(_ progress: (Int) -> Void) throws -> AppliedPull {
    if try isNothingNew() {
      // The head alone may hide a missing list of changes.
      _ = try last.withUnsafeBytes { bytes in
        try PageReader.read(bytes, limits: file.limits) { _ throws(MalformedMessage) in }
      }
      return AppliedPull(refused: try file.kept.refusedCount())
    }
    defer { file.spaces.retryDeferred(after: file) }
    if let filled = file.firstList.dequeueFilled(), let applied = try exchange(filled) {
      return applied
    }
    do {
      return try applyOnce(DeferredRecords(), progress)
    } catch let error as SQLiteError where error.isForeignKey {
      return try applyAroundViolations(nil)
    } catch let ended as RecordEndedTransaction {
      return try applyAroundViolations(ended)
    }
  }

  /// Exchanges the filled tables of a first list, and applies the rest of it; `nil` if it has to be applied
  /// at once, because another writer has changed the tables or a row violates the schema.
  private func exchange(_ filled: FilledList) throws -> AppliedPull? {
    let applied: AppliedPull
    do {
      applied = try applyOnce(DeferredRecords(), filled: filled)
    } catch {
      try file.firstList.abandonExchange(after: error)
      return nil
    }
    // The list is applied; the next list drops remaining copies at the latest.
    try? file.firstList.end()
    return applied
  }

  /// Returns true if an empty page changes nothing, like most pages for an idle device. Then
  /// nothing is written. Deferred changes count only if something may have freed them.
  private func isNothingNew() throws -> Bool {
    let state = try file.syncState()
    guard head.count == 0, state.cursor == head.cursor, state.applied == state.received,
      state.head >= head.head, state.replacement == nil, try !file.kept.isAnyToTry(),
      try file.tables.tracked.fills().isEmpty
    else { return false }
    let end = try file.packets.confirmedEnd()
    guard ConfirmedEnd.isNews(head.appliedTail, to: end) == false else { return false }
    return try !file.packets.hasCurrent() && file.stagedPages.isEmpty()
  }

  // MARK: One transaction

  private func applyOnce(
    _ deferred: DeferredRecords, _ progress: (Int) -> Void = { _ in }, filled: FilledList? = nil,
    beforeCommit: (ApplyPass, Set<RecordKey>) throws -> Void = { _, _ in }
  ) throws -> AppliedPull {
    defer { file.capture.wished = WishedNumbersSource() }
    return try connection.transaction {
      try connection.deferForeignKeys()
      // Another process may have changed the schema since the last check.
      try file.schemaChanges.refreshIfNew()
      // First settle confirmed operations: the pages have their effect now, so they shield nothing.
      if try file.chain.confirm(head) { return AppliedPull(isToRepeat: true) }
      let before = try file.syncState()
      try moveCursor()
      // Filled tables have no integers of this device: the pages need not be read again.
      file.capture.wished = .list(
        file.stagedPages, last: filled == nil ? last : nil, filled?.left ?? [])
      return try file.capture.during(.applying) {
        var pass = try ApplyPass(
          file: file, device: file.identity().device, deferred,
          seen: SeenRows(cursor: before.applied))
        if before.replacement != nil { try pass.recordNames() }
        try applyChanges(&pass, filled, progress)
        if let replacement = before.replacement {
          try ReplacingPull(file).finish(replacement, &pass, now: head.serverTime)
        }
        try applyDeferred(&pass)
        let recalled = try resolveReferences(pass, deferred)
        try finish(&pass)
        try beforeCommit(pass, recalled)
        return try pass.result()
      }
    }
  }

  private func applyChanges(
    _ pass: inout ApplyPass, _ filled: FilledList?, _ progress: (Int) -> Void
  ) throws {
    if let filled {
      try file.firstList.exchange(filled)
      pass.begin(after: filled)
      for change in filled.left { try pass.apply(change) }
      return
    }
    let attempts = file.attempts.count
    try file.stagedPages.forEach(last: last) { page in
      try pass.apply(page)
      progress(file.attempts.count - attempts)
    }
  }

  /// Tries the deferred changes, and deletes the records that no row keeps.
  private func applyDeferred(_ pass: inout ApplyPass) throws {
    if pass.findings.hasNewSchema {
      try file.capture.during(.recording) {
        try file.schemaChanges.refresh()
        try file.kept.openAll()
      }
    }
    try pass.retryDeferred()
    // Others may wait for unique values of a deleted row.
    if try pass.resolveHeld() {
      try pass.retryDeferred()
      try pass.resolveHeld()
    }
  }

  /// Restores and changes rows whose references have changed. Returns the restored records.
  private func resolveReferences(
    _ pass: ApplyPass, _ deferred: DeferredRecords
  ) throws -> Set<RecordKey> {
    let (findings, time) = (pass.findings, pass.findings.newestTime)
    let recalled = try ReturningParents(file).recall(deferred, findings.listed, after: time)
    try Orphans(file).release(deferred.released, after: time)
    try KeyMoves(connection: connection, capture: file.capture).apply(findings.moves, after: time)
    return recalled
  }

  private func finish(_ pass: inout ApplyPass) throws {
    try UniqueValueQuestions(file).ask()
    try pass.openAfterWrites()
    try file.capture.during(.recording) {
      try SpellingAdoption(file: file).adopt(pass.findings.spellings)
    }
    try file.directions.endFills()
    try file.stagedPages.removeAll()
    try file.refreshes.removeFetched()
    try connection.run(
      "UPDATE ferry_replica SET clock = max(clock, ?)", pass.findings.newestTime.rawValue)
    if let pulled = pass.findings.pulled { try file.pulledActions.intercept(pulled) }
  }

  private func moveCursor() throws {
    let anchor = head.cursor.anchor
    try connection.run(
      """
      UPDATE ferry_replica SET epoch = ?1, applied = ?2, received = ?2, head = max(head, ?3),
        anchor_head = ?4, anchor = ?5, anchor_history_hash = ?6, anchor_timeline = ?7
      """, head.epoch.description, head.cursor.applied, head.head, anchor?.head, anchor?.operation,
      anchor?.historyHash, anchor?.timeline?.value)
    try file.marks.add(head.cursor.applied, now: head.serverTime)
    try file.chain.forgetCovered(now: head.serverTime)
  }

  // MARK: Violated foreign keys

  /// Applies the list again after a deferred foreign key failed at commit.
  ///
  /// Rows that violate a foreign key are deferred with the reason. If such a row is the user's own,
  /// the removal of the parent is deferred instead. A row that goes with a record deleted on the
  /// server is deleted, because no other device can have it. Everything else is applied.
  ///
  /// - Parameter ending: a record that ended the transaction when it was applied.
  private func applyAroundViolations(_ ending: RecordEndedTransaction?) throws -> AppliedPull {
    var deferred = DeferredRecords(isSearching: true)
    if let ending { deferred.leaveOut(ending) }
    var settled = Set<RecordKey>()
    while true {
      do {
        return try applyOnce(deferred, beforeCommit: { try check($0, $1, besides: settled) })
      } catch let violations as ViolationsFound {
        // Outside of a transaction, each query would lock the file.
        let found = try connection.transaction(.deferred) { try facts(of: violations, deferred) }
        let rows = deferred.decide(found, recalled: violations.recalled)
        let added = Set(rows.map(\.child)).subtracting(deferred.reasons.keys).subtracting(settled)
        deferred.leaveOut(added, violations.dependants, besides: settled)
        guard added.isEmpty else { continue }
        for row in rows where settled.insert(row.child).inserted {
          guard let target = try DanglingRows(file).target(of: row) else { continue }
          deferred.reasons[row.child] = nil
          deferred.reasons.updateValue(nil, forKey: target)
        }
      } catch let ended as RecordEndedTransaction {
        guard !deferred.ended.keys.contains(ended.key) else { throw ended }
        deferred.leaveOut(ended)
      }
    }
  }

  /// - Throws: ``ViolationsFound`` if the commit would fail.
  private func check(
    _ pass: ApplyPass, _ recalled: Set<RecordKey>, besides settled: Set<RecordKey>
  ) throws {
    let dangling = DanglingRows(file)
    let rows = try dangling.all()
    guard rows.contains(where: { !settled.contains($0.child) }) else { return }
    throw ViolationsFound(
      rows: rows, deleted: pass.findings.deleted, recalled: recalled,
      dependants: try dangling.dependants(of: rows, written: pass.written))
  }

  /// Returns the rows, each with the facts that decide about it.
  private func facts(
    of violations: ViolationsFound, _ deferred: DeferredRecords
  ) throws -> [DeferredRecords.Violation] {
    try violations.rows.map { row in
      let tombstone = row.parent.flatMap { violations.deleted[$0] }
      var facts = DeferredRecords.Violation(row: row, isParentDeleted: tombstone != nil)
      guard row.isTracked && row.link.keepsParent else { return facts }
      facts.target = try DanglingRows(file).target(of: row)
      if facts.target == nil, !deferred.isRecallOff, let parent = row.parent {
        facts.canRecall = try ReturningParents(file).canRecall(parent, tombstone: tombstone)
      }
      return facts
    }
  }
}

private struct ViolationsFound: Error {
  let rows: [DanglingRow]
  /// Records deleted by the server.
  let deleted: [RecordKey: Stamp]
  /// Records inserted again by the pass.
  let recalled: Set<RecordKey>
  /// Records in need of one of the rows.
  var dependants: DependentRecords<RecordKey>
}
