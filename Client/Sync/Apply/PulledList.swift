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

extension ReplicaFile {
  var stagedPages: StagedPages { StagedPages(connection: connection, limits: limits) }

  /// Records to fetch whole with the next pull.
  var refreshes: RefreshTable { RefreshTable(connection: connection) }

  /// Stores one page of an incomplete pull list; no reader sees it.
  package func stage(_ body: [UInt8], _ head: PageHead, changes: Int) throws {
    try connection.transaction {
      try stagedPages.append(body, changes: changes)
      let anchor = head.cursor.anchor
      try connection.run(
        """
        UPDATE ferry_replica SET epoch = ?, received = ?, head = max(head, ?), anchor_head = ?,
          anchor = ?, anchor_history_hash = ?, anchor_timeline = ?
        """, head.epoch.description, head.cursor.received, head.head, anchor?.head,
        anchor?.operation, anchor?.historyHash, anchor?.timeline?.value)
      try connection.run(
        """
        INSERT INTO ferry_list(one, began) VALUES (1, ?)
        ON CONFLICT(one) DO UPDATE SET began = excluded.began
        """, head.cursor.began)
    }
  }

  /// Stages single records from the server with the pages. They are no older than the pages before
  /// them and no newer than those after them, so the result equals the list's. Records missing from
  /// the answer are requested again.
  ///
  /// - Parameter keys: the requested records; an answer about others is rejected.
  func stage(_ body: [UInt8], ofRecords keys: [RecordKey]) throws {
    let asked = Set(keys)
    try connection.transaction {
      var failure: (any Error)?
      let head = try body.withUnsafeBytes { bytes in
        try PageReader.read(bytes, limits: limits) { change throws(MalformedMessage) in
          guard asked.contains(change.key) else {
            failure = ReplicaError.unexpectedAnswer(
              status: 200, "records that Ferry did not request")
            return
          }
          do { try refreshes.markFetched(change.key) } catch { failure = error }
        } unreadable: { change throws(MalformedMessage) in
          guard let key = change.key else { throw change.fault }
          do { try refreshes.markFetched(key) } catch { failure = error }
        }
      }
      if let failure { throw failure }
      guard head.count > 0 else {
        throw ReplicaError.unexpectedAnswer(status: 200, "none of the requested records")
      }
      try stagedPages.append(body, changes: head.count)
    }
  }

  /// Omits records rejected by the server from the pull.
  ///
  /// - Parameter keys: the records; empty for all that are not fetched yet.
  func leaveOut(_ keys: [RecordKey], _ problem: Problem) throws {
    try connection.transaction {
      if keys.isEmpty {
        try log(
          "unfetched",
          "the server rejected too many requests for single records (\(problem.detail)); the next "
            + "sync asks again")
        try refreshes.rejectAll()
      }
      for key in keys where try refreshes.reject(key) {
        try log(
          "unfetched",
          "the server rejects the request for \(key.table)/\(key.record) (\(problem.detail)); "
            + "everything else is synced, and the next sync asks again")
      }
    }
  }

  /// Drops the pages of a pull list that cannot be completed; the next pull starts from scratch.
  func discardStaged() throws {
    try connection.transaction {
      try dropStaged()
      try connection.execute("UPDATE ferry_replica SET received = applied")
    }
  }

  /// Applies the staged pages and the last one, and moves the cursor, in one transaction. A reader
  /// sees the replica before the pull or after it. A list that was filled in is exchanged.
  ///
  /// - Parameter progress: gets the number of changes tried so far, after each page.
  package func apply(
    last body: [UInt8], _ head: PageHead, progress: (Int) -> Void = { _ in }
  ) throws -> AppliedPull {
    if try saysNothingNew(head) {
      // The head alone may hide a missing list of changes.
      _ = try body.withUnsafeBytes { bytes in
        try PageReader.read(bytes, limits: limits) { _ throws(MalformedMessage) in }
      }
      return AppliedPull(refused: try kept.refusedCount())
    }
    defer { spaces.retryDeferred(after: self) }
    if let filled = dequeueFilled(), let applied = try apply(filled, last: body, head) {
      return applied
    }
    do {
      return try applyOnce(last: body, head, DeferredRecords(), progress)
    } catch let error as SQLiteError where error.isForeignKey {
      return try applyAroundViolations(last: body, head, nil)
    } catch let ended as RecordEndedTransaction {
      return try applyAroundViolations(last: body, head, ended)
    }
  }

  /// Exchanges the filled tables of a first list, and applies the rest of it; `nil` if it has to be applied
  /// at once, because another writer has changed the tables or a row violates the schema.
  private func apply(
    _ filled: FilledList, last body: [UInt8], _ head: PageHead
  ) throws -> AppliedPull? {
    let applied: AppliedPull
    do {
      applied = try applyOnce(last: body, head, DeferredRecords(), filled: filled)
    } catch {
      try abandonExchange(after: error)
      return nil
    }
    // The list is applied; the next list drops remaining copies at the latest.
    try? endFilling()
    return applied
  }

  /// Returns true if an empty page changes nothing, like most pages for an idle device. Then
  /// nothing is written. Deferred changes count only if something may have freed them.
  private func saysNothingNew(_ head: PageHead) throws -> Bool {
    let state = try syncState()
    guard head.count == 0, state.cursor == head.cursor, state.applied == state.received,
      state.head >= head.head, state.replacement == nil, try !kept.isAnyToTry(),
      try tracked.fills().isEmpty
    else { return false }
    guard ConfirmedEnd.isNews(head.appliedTail, to: try packets.confirmedEnd()) == false else {
      return false
    }
    return try !packets.hasCurrent() && stagedPages.isEmpty()
  }

  private func applyOnce(
    last body: [UInt8], _ head: PageHead, _ deferred: DeferredRecords,
    _ progress: (Int) -> Void = { _ in }, filled: FilledList? = nil,
    beforeCommit: (ApplyPass, Set<RecordKey>) throws -> Void = { _, _ in }
  ) throws -> AppliedPull {
    defer { (capture.mode, capture.wished) = (.recording, WishedNumbersSource()) }
    return try connection.transaction {
      try connection.deferForeignKeys()
      // Another process may have changed the schema since the last check.
      try refreshTriggersOfNewSchema()
      // First settle confirmed operations: the pages have their effect now, so they shield nothing.
      if try confirmChain(head) { return AppliedPull(isToRepeat: true) }
      let before = try syncState()
      let replacement = before.replacement
      try moveCursor(to: head)
      // Filled tables have no integers of this device: the pages need not be read again.
      capture.wished = wishedNumbers(last: filled == nil ? body : nil, filled?.left ?? [])
      capture.mode = .applying
      var pass = try ApplyPass(
        file: self, device: identity().device, deferred, seen: SeenRows(cursor: before.applied))
      if replacement != nil { try pass.recordNames() }
      if let filled {
        try exchange(filled)
        pass.begin(after: filled)
        for change in filled.left { try pass.apply(change) }
      } else {
        let attempts = self.attempts
        try stagedPages.forEach(last: body) { page in
          try pass.apply(page)
          progress(self.attempts - attempts)
        }
      }
      if let replacement { try finish(replacement, &pass, now: head.serverTime) }
      if pass.hasNewSchema {
        capture.mode = .recording
        try refreshTriggers()
        try kept.openAll()
        capture.mode = .applying
      }
      try pass.retryDeferred()
      // Others may wait for unique values of a deleted row.
      if try pass.resolveHeld() {
        try pass.retryDeferred()
        try pass.resolveHeld()
      }
      let recalled = try recall(deferred, pass.listed, after: pass.newestTime)
      try release(deferred.released, after: pass.newestTime)
      try update(pass.moves, after: pass.newestTime)
      try askAboutUniqueValues()
      try pass.openAfterWrites()
      capture.mode = .recording
      try adopt(pass.spellings)
      capture.mode = .applying
      try endFills()
      try stagedPages.removeAll()
      try refreshes.removeFetched()
      try moveClock(past: pass.newestTime)
      try intercept(pass.pulled)
      try beforeCommit(pass, recalled)
      return try pass.result()
    }
  }

  /// Applies the list again after a deferred foreign key failed at commit.
  ///
  /// Rows that violate a foreign key are deferred with the reason. If such a row is the user's own,
  /// the removal of the parent is deferred instead. A row that goes with a record deleted on the
  /// server is deleted, because no other device can have it. Everything else is applied.
  ///
  /// - Parameter ending: a record that ended the transaction when it was applied.
  private func applyAroundViolations(
    last body: [UInt8], _ head: PageHead, _ ending: RecordEndedTransaction?
  ) throws -> AppliedPull {
    var deferred = DeferredRecords(isSearching: true)
    if let ending { deferred.leaveOut(ending) }
    var settled = Set<RecordKey>()
    while true {
      do {
        return try applyOnce(
          last: body, head, deferred,
          beforeCommit: { pass, recalled in
            let rows = try danglingRows()
            if rows.contains(where: { !settled.contains($0.child) }) {
              throw ViolationsFound(
                rows: rows, deleted: pass.deleted, recalled: recalled,
                dependants: try dependants(of: rows, pass))
            }
          })
      } catch let violations as ViolationsFound {
        // Outside of a transaction, each query would lock the file.
        let rows = try connection.transaction(.deferred) {
          try orphans(among: violations, &deferred)
        }
        let added = Set(rows.map(\.child)).subtracting(deferred.reasons.keys).subtracting(settled)
        deferred.leaveOut(added, violations.dependants, besides: settled)
        guard added.isEmpty else { continue }
        for row in rows where settled.insert(row.child).inserted {
          guard let target = try target(of: row) else { continue }
          deferred.reasons[row.child] = nil
          deferred.reasons.updateValue(nil, forKey: target)
        }
      } catch let ended as RecordEndedTransaction {
        guard !deferred.ended.keys.contains(ended.key) else { throw ended }
        deferred.leaveOut(ended)
      }
    }
  }

  /// Removes the rows to delete from the dangling ones, and records the parents that others go
  /// with.
  private func orphans(
    among violations: ViolationsFound, _ deferred: inout DeferredRecords
  ) throws -> [DanglingRow] {
    // A restored record must not lack a parent itself.
    if violations.rows.contains(where: { violations.recalled.contains($0.child) }) {
      (deferred.recalled, deferred.isRecallOff) = ([], true)
      return []
    }
    let (isKeeping, rest) = try restoreParents(of: violations, &deferred)
    if isKeeping { return [] }
    return rest.filter { row in
      guard let parent = row.parent else { return true }
      if violations.deleted[parent] == nil {
        deferred.parents[row.child] = parent
        return true
      }
      if row.link.rule == .childGoes { return !deferred.orphans.insert(row.child).inserted }
      guard row.link.rule == nil else { return true }
      return deferred.released.updateValue(row.link, forKey: row.child) != nil
    }
  }

  /// Records the parents to restore for dangling rows. Returns whether there are any, and the rows
  /// to delete or defer.
  private func restoreParents(
    of violations: ViolationsFound, _ deferred: inout DeferredRecords
  ) throws -> (Bool, [DanglingRow]) {
    var isKeeping = false
    for row in violations.rows where row.isTracked && row.link.keepsParent {
      if let target = try target(of: row) {
        if deferred.held.insert(target).inserted { isKeeping = true }
        continue
      }
      guard !deferred.isRecallOff, let parent = row.parent else { continue }
      deferred.parents[row.child] = parent
      guard try canRecall(parent, tombstone: violations.deleted[parent]) else { continue }
      if row.link.rule == .ask { deferred.asked.insert(parent) }
      if deferred.recalled.insert(parent).inserted { isKeeping = true }
    }
    return (isKeeping, violations.rows)
  }

  /// Returns the records of a pass that need one of these rows.
  func dependants(
    of rows: [DanglingRow], _ pass: ApplyPass
  ) throws -> DependentRecords<RecordKey> {
    guard let written = pass.written else { return DependentRecords(references: []) }
    let rules = try knownParentRules()
    let tables = try tracked.names().compactMap { name -> (TableSchema, [ParentLink])? in
      guard let table = try? schema(of: name) else { return nil }
      let links = rules.parents(of: table.local)
      return links.isEmpty ? nil : (table, links)
    }
    let roots = Set(rows.filter(\.isTracked).map(\.child))
    return try written.dependants(of: roots.sorted(), tables) { local in
      try trackedTable(local: local).flatMap { try? schema(of: $0) }
    }
  }

  private func moveCursor(to head: PageHead) throws {
    let anchor = head.cursor.anchor
    try connection.run(
      """
      UPDATE ferry_replica SET epoch = ?1, applied = ?2, received = ?2, head = max(head, ?3),
        anchor_head = ?4, anchor = ?5, anchor_history_hash = ?6, anchor_timeline = ?7
      """, head.epoch.description, head.cursor.applied, head.head, anchor?.head, anchor?.operation,
      anchor?.historyHash, anchor?.timeline?.value)
    try marks.add(head.cursor.applied, now: head.serverTime)
    try forgetCovered(now: head.serverTime)
  }

  private func moveClock(past time: HybridTimestamp) throws {
    try connection.run("UPDATE ferry_replica SET clock = max(clock, ?)", time.rawValue)
  }

  func plan(for table: Name) throws -> ApplyPlan? {
    if let plan = applyPlans[table] { return plan }
    if table == MissionRecord.table {
      let plan = ApplyPlan(
        table: .missions(in: connection.namespace), rules: .standard, connection: connection)
      applyPlans[table] = plan
      return plan
    }
    guard
      try tracked.contains(table),
      let schema = try? schema(of: table), schema.name == table
    else { return nil }
    let plan = ApplyPlan(
      table: schema, rules: try spaceSchema().rules(for: table), connection: connection,
      followers: try followers(of: schema), goesWithParents: try goesWithParents(schema.local),
      hasDeleteTrigger: try hasDeleteTrigger(schema), parentRules: try knownParentRules(),
      isShared: try spellings.isShared(table),
      unshared: try spellings.unsharedColumns(of: table))
    applyPlans[table] = plan
    return plan
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
