import FerryProtocol
import FerrySQLite

/// A run over staged changes, inside the transaction that makes them visible.
struct ApplyPass {
  let file: ReplicaFile
  let connection: SQLiteConnection
  private let limits: Limits
  private let device: DeviceID
  let deferred: DeferredRecords
  /// The upload-only tables; nothing is pulled for them.
  private let uploads: [Name]
  /// Tables with possible unrecorded writes.
  private let unrecorded: [Name: UnrecordedTable]
  var hasPending: Bool
  private(set) var hasKept: Bool
  private var hasQuestions = false
  private var plans: [Name: ApplyPlan?] = [:]
  private var lastPlan: ApplyPlan?
  var applied = 0
  /// Records to delete after the rest of the list, because their delete concerns other rows.
  var held = Set<RecordKey>()
  /// True if the rest of the list is applied, and these records are deleted.
  var isSettlingHeld = false
  /// The list's values of restored records.
  private(set) var listed: [RecordKey: [Column]] = [:]
  /// True if the space's schema was among the changes.
  private(set) var hasNewSchema = false
  var refused = Set<RecordKey>()
  /// The statement to store the records named by the pull list; `nil` if no caller needs them.
  private var noted: SQLiteStatement?
  /// The newest timestamp in the changes; the device's clock moves past it.
  var newestTime = HybridTimestamp.zero
  /// Changed values, for rows of other tables to follow.
  private(set) var moves: [KeyMove] = []
  /// Rows out of their tables while values move between them.
  var aside: RowsAside?
  /// How far the device has seen rows that go with their parents; `nil` outside of a pull list.
  var seen: SeenRows?
  /// Records written by the pass, for the search for rows without a parent; `nil` without such a
  /// search.
  private(set) var written: WrittenRecords?
  /// The tables with rows written by the pass since deferred changes were tried.
  var writtenTables = Set<Name>()
  private var lastWritten: Name?
  /// True if deferred changes wait for records that may arrive.
  private var hasWaiting: Bool
  /// The spellings of names in the changes.
  var spellings = SpellingsFound()
  /// The changed rows; `nil` if the app has no interceptor for them.
  var pulled: PulledActions?
  /// True after the pass has opened the deferred changes that own writes may have freed.
  var hasOpenedKept = false

  /// Returns the result of the run: all deferred records count. Some may be gone since, with the
  /// records they refer to.
  func result() throws -> AppliedPull {
    let fetched = try refused.filter { key in
      try !file.kept.contains(key) && file.refreshes.contains(key)
    }
    return AppliedPull(applied: applied, refused: try file.kept.refusedCount() + fetched.count)
  }

  /// Records deleted by the server, if the pass searches for them.
  private(set) var deleted: [RecordKey: Stamp] = [:]

  init(
    file: ReplicaFile, device: DeviceID, _ deferred: DeferredRecords, seen: SeenRows? = nil
  ) throws {
    self.file = file
    connection = file.connection
    limits = file.limits
    self.device = device
    self.deferred = deferred
    self.seen = seen
    uploads = try file.tracked.uploads()
    unrecorded = Dictionary(
      try file.unrecordedTables().map { ($0.table, $0) }, uniquingKeysWith: { one, _ in one })
    hasPending = try !file.queue.isEmpty()
    hasKept = try !file.kept.isEmpty()
    hasWaiting = try hasKept && file.kept.hasWaitingForParents()
    if !file.spaces.pullInterceptors.isEmpty { pulled = PulledActions() }
    if deferred.isSearching { written = try WrittenRecords(on: connection) }
  }

  /// Applies every change of one page, in order.
  mutating func apply(_ page: PageFeed) throws {
    let opening = try page.open()
    try file.store(opening.notices)
    if try !hasQuestions && file.conflicts.hasOpenQuestions() { hasQuestions = true }
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
    if let noted { try noted.run(key.table, key.record) }
    if !uploads.isEmpty && isUpload(key.table) { return }
    refused.insert(key)
    hasKept = true
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
    noted = try connection.statement("INSERT OR IGNORE INTO temp.ferry_named VALUES (?, ?)")
  }

  /// Removes a record no longer on the server.
  mutating func remove(_ key: RecordKey) throws {
    let gone = Stamp(time: .zero, device: device)
    let state = RecordState(deleted: SequencedStamp(stamp: gone, sequence: 0))
    try apply(Change(sequence: 0, key: key, state: state))
  }

  /// The outcome of a change.
  enum Outcome {
    case settled
    /// The change is deferred; values of another row may block it.
    case blocked
  }

  @discardableResult
  mutating func apply(_ change: Change, isRetry: Bool = false) throws -> Outcome {
    file.attempts += 1
    newestTime = max(newestTime, change.state.newestTime)
    if let noted, !isRetry { try noted.run(change.key.table, change.key.record) }
    var change = change
    if hasKept && !isRetry, let kept = try file.kept.state(of: change.key) {
      if let state = kept.state {
        change.state = state.overlaid(with: change.state)
      } else if change.state.inserted == nil && change.state.deleted == nil {
        // A part alone is not a record: the next pull fetches the whole one.
        refused.insert(change.key)
        try file.refreshes.add([change.key])
        return .settled
      }
    }
    if deferred.isSearching && !isRetry { search(change) }
    if hasQuestions && !isRetry { try file.resolveQuestions(by: change.state, on: change.key) }
    if !uploads.isEmpty && isUpload(change.key.table) { return .settled }
    if change.key.table == ReplicaFile.schemaTable {
      if try file.storeSchema(schemaRecord: change.state) { hasNewSchema = true }
      return .settled
    }
    guard let plan = try plan(for: change.key.table) else {
      spellings.addUnknown(table: change.key.table)
      try deferChange(change, reason: nil)
      applied += 1
      return .settled
    }
    if !isRetry, !unrecorded.isEmpty, let table = unrecorded[change.key.table] {
      try file.storeOverwritten(by: change, in: table)
    }
    if !isSettlingHeld && isToHold(change, isRetry) {
      if try aside?.holds(change.key) ?? false { try aside?.restore(change.key) }
      try postpone(change, isRetry: isRetry)
      return .settled
    }
    if let (reason, deferral) = deferred.deferral(of: change) {
      // The server's state of a deferred parent is here already.
      if !isRetry, let parent = deferred.parents[change.key],
        try held.contains(parent) || !file.kept.contains(parent)
      {
        try file.refreshes.add([parent])
      }
      try deferChange(change, reason: reason, deferral)
      return .settled
    }
    let knowsAll = plan.knowsAll(change.state.columns)
    let unknown =
      knowsAll ? [] : change.state.columns.filter { !plan.known.contains($0.name) }
    if !unknown.isEmpty { spellings.addUnknown(unknown, of: plan.table) }
    if hasKept { try file.kept.forget(change.key) }
    do {
      let before = try pulled == nil ? nil : file.localRow(change.key.record, plan.table)
      guard try apply(change, with: plan, knowsAll: knowsAll, isRetry: isRetry) else {
        try postpone(change, isRetry: isRetry)
        return .settled
      }
      try recordPulled(change.key, plan.table, from: before)
      applied += 1
      if !refused.isEmpty { refused.remove(change.key) }
      spellings.add(change, plan)
      recordWrite(to: plan.table.name)
      try recordArrival(of: change)
    } catch let error as SQLiteError where error.concernsRow {
      guard connection.isInTransaction else {
        throw RecordEndedTransaction(
          key: change.key, reason: error.message, isAlone: error.concernsRowAlone)
      }
      let deferral = Deferral(error, isShared: plan.table.share != nil)
      // The rest of the list may change the reason, unless the row alone is at fault.
      let isFinal = isRetry || deferral == .definition
      // Values moving between rows may need earlier, waiting changes.
      if !isFinal { recordWrite(to: plan.table.name) }
      try deferChange(change, reason: error.message, isFinal ? deferral : .open)
      return error.isUnique || error == ApplyPlan.ignored ? .blocked : .settled
    }
    if !unknown.isEmpty {
      change.state.columns = unknown
      change.state.inserted = nil
      try deferChange(change, reason: nil)
    }
    return .settled
  }

  /// Returns true if a change waits for the rest of the list without an attempt.
  private func isToHold(_ change: Change, _ isRetry: Bool) -> Bool {
    if deferred.orphans.contains(change.key) { return true }
    return !isRetry && deferred.held.contains(change.key) && !change.state.isAlive
      && change.state.deleted != nil
  }

  /// Searches for deleted records. One that never existed is deleted at time 0 (SPEC.md §15).
  private mutating func search(_ change: Change) {
    if let stamp = change.state.deleted?.stamp, !change.state.isAlive, stamp.time > .zero {
      deleted[change.key] = stamp
    } else {
      deleted[change.key] = nil
    }
    if deferred.recalled.contains(change.key) {
      listed[change.key] = change.state.columns.map { Column($0.name, $0.value) }
    }
  }

  /// Returns false if a delete waits for the rest of the list.
  private mutating func apply(
    _ change: Change, with plan: ApplyPlan, knowsAll: Bool, isRetry: Bool
  ) throws -> Bool {
    let pending = hasPending ? try file.markConcurrent(change.key) : []
    let effect = RemoteChange.effect(
      of: change.state, pending: pending, device: device, rules: plan.rules)
    let aside = aside
    let isAside = try aside?.holds(change.key) ?? false
    // Only a write reads a row's values from the row.
    if isAside, !effect.isWrite { try aside?.restore(change.key) }
    file.capture.beginApplying(change.key, isDeleting: effect == .delete)
    if !held.isEmpty { held.remove(change.key) }
    switch effect {
    case .none: break
    case .delete:
      // The list may move a row elsewhere; before the move, this delete would remove it.
      if try !isSettlingHeld && plan.concernsOthers(change.key.record) { return false }
      let forgotten = try forgotten(change, plan)
      try file.storeFormerRow(change, plan.table, hasOwnWrites: !pending.isEmpty)
      // Dependent rows return together with the record.
      let former = isSettlingHeld ? try file.referringRow(change.key) : nil
      let isAlone = try !takingAlong(change) {
        try plan.deleteChildren(change.key.record)
        try plan.delete(change.key.record)
      }
      if !isAlone, let former, let stamp = change.state.deleted?.stamp {
        try file.storeFormerRow(former, of: change.key, deletedBy: stamp)
      }
      if let forgotten { try file.storeLost(forgotten, of: change.key, true) }
      // Rows deleted with the record by a foreign key are recorded as deleted, and this shields
      // them.
      if !hasPending { hasPending = try !file.queue.isEmpty() }
    case .upsert(let columns, let isWhole, let kept):
      let columns = knowsAll ? columns : columns.filter { plan.known.contains($0.name) }
      let kept = kept.filter { plan.known.contains($0.name) }
      if columns.isEmpty && !isWhole && !isAside { return true }
      let before = try followed(change.key, plan, isAside: isAside)
      try written?.add(change.key, isNew: !isAside && !plan.exists(change.key.record))
      if isAside && !isWhole {
        try aside?.restore(change.key, changing: columns)
      } else if isRetry && !isWhole {
        // Deferred parts add to a record; they do not create a deleted one.
        try plan.change(change.key.record, columns)
      } else {
        try plan.upsert(change.key.record, columns, isWhole: isWhole, kept: kept)
      }
      try recordMoves(of: change.key, plan, from: before)
      if plan.goesWithParents { seen?.add(change.key) }
    }
    return true
  }

  /// Returns the values of a row changed by this device and absent on the server: another device
  /// deleted it, and the server has removed the tombstone since.
  private func forgotten(_ change: Change, _ plan: ApplyPlan) throws -> [Column]? {
    guard change.state.deleted?.stamp.time == .zero, unrecorded[change.key.table] == nil,
      try file.refreshes.isOverruled(change.key)
    else { return nil }
    return try file.row(change.key, plan.table)?.filter { $0.value != .null }
  }

  /// Holds a delete until the rest of the list is applied.
  private mutating func postpone(_ change: Change, isRetry: Bool) throws {
    held.insert(change.key)
    if !isRetry { recordWrite(to: change.key.table) }
    try deferChange(change, reason: "records here refer to it (foreign key)", .rows)
  }

  private mutating func recordWrite(to table: Name) {
    if lastWritten == table && !writtenTables.isEmpty { return }
    writtenTables.insert(table)
    lastWritten = table
  }

  /// Opens changes waiting for a record. A record that never existed is deleted at time 0 (SPEC.md
  /// §15).
  private func recordArrival(of change: Change) throws {
    guard hasWaiting, change.state.isAlive || change.state.deleted?.stamp.time != .zero else {
      return
    }
    try file.kept.open(waitingFor: change.key)
  }

  /// Deletes a record together with a deleted parent.
  mutating func deleteOrphan(_ change: Change) throws {
    guard let plan = try plan(for: change.key.table) else { return }
    _ = try takingAlong(change) { [file] in try file.deleteOrphan(change, plan) }
    recordWrite(to: plan.table.name)
    (hasPending, applied) = (true, applied + 1)
    refused.remove(change.key)
  }

  /// Returns a record's values that rows of other tables may follow, for each of the plan's
  /// followers.
  private func followed(
    _ key: RecordKey, _ plan: ApplyPlan, isAside: Bool
  ) throws -> [[Value]?] {
    try plan.followers.map { follower in
      if isAside { return try aside?.values(of: key, follower.to) }
      return try file.values(of: key, follower.to, in: plan.table)
    }
  }

  private mutating func recordMoves(
    of key: RecordKey, _ plan: ApplyPlan, from before: [[Value]?]
  ) throws {
    for (follower, old) in zip(plan.followers, before) {
      let new = try file.values(of: key, follower.to, in: plan.table)
      guard let old, let new, old != new, !old.contains(.null) else { continue }
      moves.append(KeyMove(parent: plan.table, follower: follower, old: old, new: new))
    }
  }

  private func isUpload(_ table: Name) -> Bool {
    uploads.contains { $0 == table }
  }

  private mutating func deferChange(
    _ change: Change, reason: String?, _ deferral: Deferral = .open
  ) throws {
    if reason != nil { refused.insert(change.key) }
    hasKept = true
    if case .parent = deferral { hasWaiting = true }
    try file.kept.store(change, reason: reason, deferral)
  }

  mutating func plan(for table: Name) throws -> ApplyPlan? {
    if let lastPlan, lastPlan.table.name == table { return lastPlan }
    let plan: ApplyPlan?
    if let known = plans[table] {
      plan = known
    } else {
      plan = try file.plan(for: table)
      plans[table] = .some(plan)
    }
    lastPlan = plan
    return plan
  }
}
