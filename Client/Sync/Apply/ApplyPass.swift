import FerryProtocol
import FerrySQLite

/// A run over staged changes, inside the transaction that makes them visible: the driver of
/// ``Fate``.
struct ApplyPass {
  let file: ReplicaFile
  let connection: SQLiteConnection
  private let device: DeviceID
  let deferred: DeferredRecords
  var facts: PassFacts
  var plans: PassPlans
  var findings = PassFindings()
  /// Records to delete after the rest of the list, because their delete concerns other rows.
  var held = Set<RecordKey>()
  /// True if the rest of the list is applied, and these records are deleted.
  var isEndOfList = false
  var refused = Set<RecordKey>()
  /// The statement to store the records named by the pull list; `nil` if no caller needs them.
  private var named: SQLiteStatement?
  /// Rows out of their tables while values move between them.
  var aside: RowsAside?
  /// How far the device has seen rows that go with their parents; `nil` outside of a pull list.
  var seen: SeenRows?
  /// Records written by the pass, for the search for rows without a parent; `nil` without such a
  /// search.
  private(set) var written: WrittenRecords?
  var writtenTables = WrittenTables()
  /// True after the pass has opened the deferred changes that own writes may have freed.
  var hasOpenedKept = false

  init(
    file: ReplicaFile, device: DeviceID, _ deferred: DeferredRecords, seen: SeenRows? = nil
  ) throws {
    self.file = file
    connection = file.connection
    self.device = device
    self.deferred = deferred
    self.seen = seen
    facts = try PassFacts(file)
    plans = PassPlans(file)
    if !file.spaces.pullInterceptors.isEmpty { findings.pulled = PulledActions() }
    if deferred.isSearching { written = try WrittenRecords(on: connection) }
  }

  /// Returns the result of the run: all deferred records count. Some may be gone since, with the
  /// records they refer to.
  func result() throws -> AppliedPull {
    let fetched = try refused.filter { key in
      try !file.kept.contains(key) && file.refreshes.contains(key)
    }
    return AppliedPull(
      applied: findings.applied, refused: try file.kept.refusedCount() + fetched.count)
  }

  // MARK: The list

  /// Begins after the exchange of filled tables.
  mutating func begin(after filled: FilledList) {
    findings.begin(after: filled)
    for table in filled.tables { writtenTables.add(table) }
    seen?.add(allOf: filled.tables)
  }

  /// Applies every change of one page, in order.
  mutating func apply(_ page: PageFeed) throws {
    let opening = try page.open()
    try file.conflictLog.store(opening.notices)
    try file.overruledWrites.store(opening.notices)
    if try !facts.hasQuestions && file.conflicts.hasOpenQuestions() { facts.hasQuestions = true }
    while let batch = try page.next() {
      for change in batch {
        switch change {
        case .success(let change): try apply(change)
        case .failure(let change): try deferUnreadable(change)
        }
      }
    }
  }

  /// Stores a change that violates the protocol, so all others can be applied.
  private mutating func deferUnreadable(_ change: UnreadableChange) throws {
    guard let key = change.key else {
      return try file.log(
        "unreadable", "skipped the change at \(change.sequence): \(change.reason)")
    }
    if let named { try named.run(key.table, key.record) }
    if facts.isUpload(key.table) { return }
    refused.insert(key)
    facts.hasKept = true
    try file.kept.store(change, of: key)
  }

  /// Starts to record the names in the pull list, in the temporary table `ferry_named`.
  mutating func recordNames() throws {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS temp.ferry_named(
        tbl TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(tbl, record)) WITHOUT ROWID;
      DELETE FROM temp.ferry_named
      """)
    named = try connection.statement("INSERT OR IGNORE INTO temp.ferry_named VALUES (?, ?)")
  }

  /// Removes a record no longer on the server.
  mutating func remove(_ key: RecordKey) throws {
    let gone = Stamp(time: .zero, device: device)
    let state = RecordState(deleted: SequencedStamp(stamp: gone, sequence: 0))
    try apply(Change(sequence: 0, key: key, state: state))
  }

  // MARK: One change

  /// The outcome of a change.
  enum Outcome {
    case settled
    /// The change is deferred; values of another row may block it.
    case blocked
  }

  @discardableResult
  mutating func apply(_ change: Change, isRetry: Bool = false) throws -> Outcome {
    file.attempts.count += 1
    findings.add(change.state.newestTime)
    if let named, !isRetry { try named.run(change.key.table, change.key.record) }
    var change = change
    if facts.hasKept && !isRetry {
      let kept = try file.kept.change(of: change.key)
      guard let state = Fate.state(change.state, over: kept) else {
        refused.insert(change.key)
        try file.refreshes.add([change.key])
        return .settled
      }
      change.state = state
    }
    if deferred.isSearching && !isRetry { findings.search(change, recalled: deferred.recalled) }
    let (table, plan) = try table(of: change)
    let arrival = try arrival(of: change, in: table, isRetry: isRetry)
    var outcome = Outcome.settled
    for step in Fate.steps(for: arrival) { outcome = try perform(step, change, plan, arrival) }
    return outcome
  }

  private mutating func table(of change: Change) throws -> (Fate.Table, ApplyPlan?) {
    let name = change.key.table
    if facts.isUpload(name) { return (.uploadOnly, nil) }
    if name == SpaceSchemas.table { return (.schema, nil) }
    let plan = try plans.plan(for: name)
    return (plan == nil ? .unknown : .known, plan)
  }

  private func arrival(
    of change: Change, in table: Fate.Table, isRetry: Bool
  ) throws -> Fate.Arrival {
    let (key, state) = (change.key, change.state)
    var arrival = Fate.Arrival(table: table, isRetry: isRetry, isEndOfList: isEndOfList)
    arrival.hasQuestions = facts.hasQuestions
    arrival.isUnrecorded = !facts.unrecorded.isEmpty && facts.unrecorded[key.table] != nil
    arrival.isOrphan = deferred.orphans.contains(key)
    arrival.isReferredTo =
      deferred.held.contains(key) && !state.isAlive && state.deleted != nil
    arrival.isAside = try aside?.holds(key) ?? false
    guard let (reason, deferral) = deferred.deferral(of: change) else { return arrival }
    var leftOut = Fate.LeftOut(reason: reason, deferral: deferral)
    if let parent = deferred.parents[key],
      try held.contains(parent) || !file.kept.contains(parent)
    {
      leftOut.parent = parent
    }
    arrival.leftOut = leftOut
    return arrival
  }

  private mutating func perform(
    _ step: Fate.Step, _ change: Change, _ plan: ApplyPlan?, _ arrival: Fate.Arrival
  ) throws -> Outcome {
    switch step {
    case .write: if let plan { return try write(change, plan, arrival) }
    case .resolveQuestions: try file.conflictLog.resolveQuestions(by: change.state, on: change.key)
    case .storeSchema:
      if try file.tables.schemas.store(change.state) { findings.hasNewSchema = true }
    case .deferUnknown:
      findings.spellings.addUnknown(table: change.key.table)
      try deferChange(change, .schema)
      findings.applied += 1
    case .storeOverwritten:
      if let table = facts.unrecorded[change.key.table] {
        try file.reconciler.storeOverwritten(by: change, in: table)
      }
    case .restoreRow: try aside?.restore(change.key)
    case .hold: try postpone(change, isRetry: arrival.isRetry)
    case .leaveOut(let leftOut):
      if let parent = leftOut.parent { try file.refreshes.add([parent]) }
      try deferChange(change, leftOut.deferral, reason: leftOut.reason)
    }
    return .settled
  }

  /// Defers a delete until the rest of the list is applied.
  private mutating func postpone(_ change: Change, isRetry: Bool) throws {
    held.insert(change.key)
    if !isRetry { writtenTables.add(change.key.table) }
    try deferChange(change, .rows, reason: "records here refer to it (foreign key)")
  }

  private mutating func deferChange(
    _ change: Change, _ deferral: Deferral, reason: String? = nil
  ) throws {
    if deferral != .schema { refused.insert(change.key) }
    facts.hasKept = true
    if case .parent = deferral { facts.hasWaiting = true }
    try file.kept.store(change, deferral, reason: reason)
  }
}

/// Writes to the record's row.
extension ApplyPass {
  private mutating func write(
    _ change: Change, _ plan: ApplyPlan, _ arrival: Fate.Arrival
  ) throws -> Outcome {
    let isRetry = arrival.isRetry
    let knowsAll = plan.knowsAll(change.state.columns)
    let unknown =
      knowsAll ? [] : change.state.columns.filter { !plan.known.contains($0.name) }
    if !unknown.isEmpty { findings.spellings.addUnknown(unknown, of: plan.table) }
    if facts.hasKept { try file.kept.forget(change.key) }
    do {
      let before =
        try findings.pulled == nil ? nil : plan.table.localRow(change.key.record, on: connection)
      guard try writeRow(change, plan, arrival, knowsAll: knowsAll) else {
        try postpone(change, isRetry: isRetry)
        return .settled
      }
      try recordPulled(change.key, plan.table, from: before)
      findings.applied += 1
      if !refused.isEmpty { refused.remove(change.key) }
      findings.spellings.add(change, plan)
      writtenTables.add(plan.table.name)
      try recordArrival(of: change)
    } catch let error as SQLiteError where error.concernsRow {
      return try reject(change, plan, error, isRetry: isRetry)
    }
    if let rest = Fate.rest(of: change, unknown) { try deferChange(rest, .schema) }
    return .settled
  }

  private mutating func reject(
    _ change: Change, _ plan: ApplyPlan, _ error: SQLiteError, isRetry: Bool
  ) throws -> Outcome {
    let rejection = Fate.rejection(
      error,
      Fate.Failure(
        isRetry: isRetry, isShared: plan.table.share != nil,
        isInTransaction: connection.isInTransaction))
    switch rejection {
    case .endsTransaction(let isAlone):
      throw RecordEndedTransaction(key: change.key, reason: error.message, isAlone: isAlone)
    case .deferred(let deferral, let isWrite, let isBlocked):
      if isWrite { writtenTables.add(plan.table.name) }
      try deferChange(change, deferral, reason: error.message)
      return isBlocked ? .blocked : .settled
    }
  }

  /// Returns false if a delete waits for the rest of the list.
  private mutating func writeRow(
    _ change: Change, _ plan: ApplyPlan, _ arrival: Fate.Arrival, knowsAll: Bool
  ) throws -> Bool {
    let key = change.key
    let pending = facts.hasPending ? try file.operations.markConcurrent(key) : []
    let effect = RemoteChange.effect(
      of: change.state, pending: pending, device: device, rules: plan.rules)
    // Only a write reads a row's values from the row.
    if arrival.isAside && !effect.isWrite { try aside?.restore(key) }
    file.capture.beginApplying(
      key, effect == .delete ? .delete : .values, state: change.state)
    if !held.isEmpty { held.remove(key) }
    var row = Fate.Row(
      isRetry: arrival.isRetry, isEndOfList: isEndOfList, isAside: arrival.isAside,
      known: plan.known, knowsAll: knowsAll)
    if effect == .delete && !isEndOfList {
      row.concernsOthers = try plan.concernsOthers(key.record)
    }
    switch Fate.write(effect, row) {
    case .nothing: break
    case .hold: return false
    case .delete: try delete(change, plan, hasOwnWrites: !pending.isEmpty)
    case .restore(let columns):
      let aside = aside
      try writeValues(of: key, plan, isAside: true) {
        if let aside { try aside.restore(key, changing: columns) }
      }
    case .change(let columns):
      try writeValues(of: key, plan, isAside: arrival.isAside) {
        try plan.change(key.record, columns)
      }
    case .upsert(let columns, let isWhole, let kept):
      try writeValues(of: key, plan, isAside: arrival.isAside) {
        try plan.upsert(key.record, columns, isWhole: isWhole, kept: kept)
      }
    }
    return true
  }

  private mutating func delete(_ change: Change, _ plan: ApplyPlan, hasOwnWrites: Bool) throws {
    let key = change.key
    let forgotten = try forgotten(change, plan)
    try storeFormerRow(change, hasOwnWrites: hasOwnWrites)
    // Dependent rows return together with the record.
    let former = isEndOfList ? try file.formerParents.row(key) : nil
    let isAlone = try !takingAlong(change) { [file] in
      try file.capture.takingAlong { try plan.deleteChildren(key.record) }
      try plan.delete(key.record)
    }
    if !isAlone, let former, let stamp = change.state.deleted?.stamp {
      try file.formerParents.store(former, of: key, deletedBy: stamp)
    }
    if let forgotten { try LostValues(file).store(forgotten, of: key, true) }
    // Rows deleted with the record by a foreign key are recorded as deleted, and this shields
    // them.
    if !facts.hasPending { facts.hasPending = try !file.queue.isEmpty() }
  }

  /// Stores the row deleted by a change, if this device has written to it, or lost a value of it.
  private func storeFormerRow(_ change: Change, hasOwnWrites: Bool) throws {
    guard let deleted = change.state.deleted?.stamp,
      try hasOwnWrites || file.conflicts.concern(change.key)
    else { return }
    let parents = try file.formerParents
    guard let former = try parents.row(change.key) else { return }
    try parents.store(former, of: change.key, deletedBy: deleted)
  }

  /// Returns the values of a row changed by this device and absent on the server: another device
  /// deleted it, and the server has removed the tombstone since.
  private func forgotten(_ change: Change, _ plan: ApplyPlan) throws -> [Column]? {
    guard change.state.deleted?.stamp.time == .zero, facts.unrecorded[change.key.table] == nil,
      try file.refreshes.isOverruled(change.key)
    else { return nil }
    return try file.rows.row(change.key, plan.table)?.filter { $0.value != .null }
  }

  /// Writes values to a record's row, and records the values that rows of other tables follow.
  private mutating func writeValues(
    of key: RecordKey, _ plan: ApplyPlan, isAside: Bool, _ write: () throws -> Void
  ) throws {
    let before = try plan.followers.map { follower in
      isAside
        ? try aside?.values(of: key, follower.to)
        : try plan.table.values(of: key.record, follower.to, on: connection)
    }
    try written?.add(key, isNew: !isAside && !plan.exists(key.record))
    try write()
    for (follower, old) in zip(plan.followers, before) {
      let new = try plan.table.values(of: key.record, follower.to, on: connection)
      guard let old, let new, old != new, !old.contains(.null) else { continue }
      findings.moves.append(KeyMove(parent: plan.table, follower: follower, old: old, new: new))
    }
    if plan.goesWithParents { seen?.add(key) }
  }

  /// Opens changes waiting for a record. A record that never existed is deleted at time 0 (SPEC.md
  /// §15).
  private func recordArrival(of change: Change) throws {
    guard facts.hasWaiting, change.state.isAlive || change.state.deleted?.stamp.time != .zero
    else { return }
    try file.kept.open(waitingFor: change.key)
  }

  /// Records the change of a row for interceptors, if there are any.
  private mutating func recordPulled(
    _ key: RecordKey, _ table: TableSchema, from before: PulledActions.Row?
  ) throws {
    guard findings.pulled != nil else { return }
    let after = try table.localRow(key.record, on: connection)
    findings.pulled?.add(key, from: before, to: after, keyCount: table.keys.count)
  }

  /// Deletes a record together with a deleted parent.
  mutating func deleteOrphan(_ change: Change) throws {
    guard let plan = try plans.plan(for: change.key.table) else { return }
    _ = try takingAlong(change) { [file] in try Orphans(file).delete(change, plan) }
    writtenTables.add(plan.table.name)
    facts.hasPending = true
    findings.applied += 1
    refused.remove(change.key)
  }
}
