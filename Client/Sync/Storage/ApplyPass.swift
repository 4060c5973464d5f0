import FerryProtocol
import SQLite

/// One run over staged changes, inside the transaction that makes them visible.
struct ApplyPass {
  private let file: ReplicaFile
  private let connection: SQLiteConnection
  private let limits: Limits
  private let device: DeviceID
  /// Records that are deferred without trying, with the reason; `nil` for a broken foreign key.
  private let held: [RecordKey: String?]
  /// Tables for which nothing is pulled back.
  private let uploads: [Name]
  private var hasPending: Bool
  private var hasKept: Bool
  private var hasQuestions = false
  private var plans: [Name: ApplyPlan?] = [:]
  private var lastPlan: ApplyPlan?
  private var applied = 0
  /// Whether the space's schema was among the changes.
  private(set) var hasNewSchema = false
  private var refused = Set<RecordKey>()
  /// Where the records that the pull list names are noted; `nil` when nobody asks.
  private var noted: SQLiteStatement?
  /// The newest timestamp seen; the device's clock moves past it.
  private(set) var newestTime = HybridTimestamp.zero

  var result: AppliedPull { AppliedPull(applied: applied, refused: refused.count) }

  init(file: ReplicaFile, device: DeviceID, held: [RecordKey: String?]) throws {
    self.file = file
    connection = file.connection
    limits = file.limits
    self.device = device
    self.held = held
    uploads = try file.uploadTables()
    hasPending = try file.hasPending()
    hasKept = try file.hasKept()
  }

  /// Applies every change of one page, in its order.
  mutating func applyPage(_ body: UnsafeRawBufferPointer) throws -> PageHead {
    try file.take(PageReader.notices(of: body, limits: limits))
    if try !hasQuestions && file.hasOpenQuestions() { hasQuestions = true }
    var failure: (any Error)?
    let head = try PageReader.read(body, limits: limits) { change throws(MalformedMessage) in
      guard failure == nil else { return }
      do { try apply(change) } catch { failure = error }
    } unreadable: { change throws(MalformedMessage) in
      guard failure == nil else { return }
      do { try keep(change) } catch { failure = error }
    }
    if let failure { throw failure }
    return head
  }

  /// A change that breaks a rule of the protocol keeps no other from being applied.
  private mutating func keep(_ change: UnreadableChange) throws {
    guard let key = change.key else {
      return try file.note(
        "unreadable", "a change at \(change.sequence) was left out: \(change.reason)")
    }
    if let noted {
      noted.bind(1, key.table)
      noted.bind(2, key.record)
      try noted.run()
    }
    if !uploads.isEmpty && isUpload(key.table) { return }
    refused.insert(key)
    hasKept = true
    try file.keep(change, of: key)
  }

  /// Tries what was kept back again: its parent row or its column may be there now.
  mutating func retryKept(table: Name? = nil) throws {
    guard hasKept else { return }
    let choice: KeptChoice = table.map { .ofTable($0) } ?? .refused
    var place = KeptPlace.start
    while let kept = try file.nextKept(choice, after: place) {
      place = KeptPlace(kept.change)
      guard kept.isReadable else { continue }
      try apply(kept.change, isRetry: true)
    }
  }

  /// Notes from here on which records the pull list names, in the temporary table `ferry_named`.
  mutating func noteRecords() throws {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS temp.ferry_named(
        tbl TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(tbl, record)) WITHOUT ROWID;
      DELETE FROM temp.ferry_named
      """)
    noted = try connection.statement("INSERT OR IGNORE INTO temp.ferry_named VALUES (?, ?)")
  }

  /// Removes a record that the server does not have any more.
  mutating func remove(_ key: RecordKey) throws {
    let gone = Stamp(time: .zero, device: device)
    let state = RecordState(deleted: SequencedStamp(stamp: gone, sequence: 0))
    try apply(Change(sequence: 0, key: key, state: state))
  }

  private mutating func apply(_ change: Change, isRetry: Bool = false) throws {
    observe(change.state)
    if let noted, !isRetry {
      noted.bind(1, change.key.table)
      noted.bind(2, change.key.record)
      try noted.run()
    }
    var change = change
    if hasKept && !isRetry, let kept = try file.kept(of: change.key) {
      if let state = kept.state {
        change.state = state.overlaid(with: change.state)
      } else if change.state.inserted == nil && change.state.deleted == nil {
        // A part alone is no record: the whole is fetched with the next pull.
        refused.insert(change.key)
        return try file.refresh([change.key])
      }
    }
    if hasQuestions && !isRetry { try file.settleQuestions(by: change.state, on: change.key) }
    if !uploads.isEmpty && isUpload(change.key.table) { return }
    if change.key.table == ReplicaFile.schemaTable {
      if try file.take(schemaRecord: change.state) { hasNewSchema = true }
      return
    }
    guard let plan = try plan(for: change.key.table) else {
      try keep(change, reason: nil)
      applied += 1
      return
    }
    if !held.isEmpty, let reason = held[change.key] {
      try keep(
        change,
        reason: reason
          ?? (change.state.isAlive
            ? "it refers to a record that is not here (foreign key)"
            : "records here refer to it (foreign key)"))
      return
    }
    let knowsAll = plan.knowsAll(change.state.columns)
    let unknown =
      knowsAll ? [] : change.state.columns.filter { !plan.known.contains($0.name) }
    if hasKept { try file.forgetKept(change.key) }
    do {
      try apply(change, with: plan, knowsAll: knowsAll, isRetry: isRetry)
      applied += 1
      if !refused.isEmpty { refused.remove(change.key) }
    } catch let error as SQLiteError where error.concernsRow {
      guard connection.isInTransaction else {
        throw RecordEndedTransaction(key: change.key, reason: error.message)
      }
      try keep(change, reason: error.message)
      return
    }
    if !unknown.isEmpty {
      change.state.columns = unknown
      change.state.inserted = nil
      try keep(change, reason: nil)
    }
  }

  private mutating func apply(
    _ change: Change, with plan: ApplyPlan, knowsAll: Bool, isRetry: Bool
  ) throws {
    let isShielded = hasPending && !PlantedFault.pendingNotShielded.isPlanted
    let pending = isShielded ? try file.meet(change.key) : []
    let effect = RemoteChange.effect(
      of: change.state, pending: pending, device: device, rules: plan.rules)
    file.capture.beginApplying(change.key, isDeleting: effect == .delete)
    switch effect {
    case .none: break
    case .delete:
      // What goes with it is deleted later than all that was seen of it.
      file.capture.observe(newestTime)
      try plan.delete(change.key.record)
      // Rows that went with it by a foreign key are recorded as deleted, which shields them.
      if !hasPending { hasPending = try file.hasPending() }
    case .upsert(let columns, let isWhole, let kept):
      let columns = knowsAll ? columns : columns.filter { plan.known.contains($0.name) }
      let kept = kept.filter { plan.known.contains($0.name) }
      if columns.isEmpty && !isWhole { return }
      // Parts that were kept add to a record; they do not make one that has gone meanwhile.
      if isRetry && !isWhole { return _ = try plan.update(change.key.record, columns) }
      try plan.upsert(change.key.record, columns, isWhole: isWhole, kept: kept)
    }
  }

  private func isUpload(_ table: Name) -> Bool {
    uploads.contains { $0 == table }
  }

  private mutating func keep(_ change: Change, reason: String?) throws {
    if reason != nil { refused.insert(change.key) }
    hasKept = true
    try file.keep(change, reason: reason)
  }

  private mutating func plan(for table: Name) throws -> ApplyPlan? {
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

  private mutating func observe(_ state: RecordState) {
    for index in state.columns.indices {
      newestTime = max(newestTime, state.columns[index].stamp.time)
    }
    if let inserted = state.inserted { newestTime = max(newestTime, inserted.stamp.time) }
    if let deleted = state.deleted { newestTime = max(newestTime, deleted.stamp.time) }
  }
}

/// A trigger or constraint of the schema rolled the transaction back when a record was applied.
struct RecordEndedTransaction: Error {
  let key: RecordKey
  let reason: String
}
