import FerryProtocol

/// The results of a pass for its caller: a value without a database.
struct PassFindings {
  /// The number of applied changes.
  var applied = 0
  /// The newest timestamp in the changes; the device's clock moves past it.
  private(set) var newestTime = HybridTimestamp.zero
  /// True if the space's schema was among the changes.
  var hasNewSchema = false
  /// Records deleted by the server, if the pass searches for them.
  private(set) var deleted: [RecordKey: Stamp] = [:]
  /// The list's values of restored records.
  private(set) var listed: [RecordKey: [Column]] = [:]
  /// Changed values, for rows of other tables to follow.
  var moves: [KeyMove] = []
  /// The spellings of names in the changes.
  var spellings = SpellingsFound()
  /// The changed rows; `nil` if the app has no interceptor for them.
  var pulled: PulledActions?

  /// Adds the time of a change.
  mutating func add(_ time: HybridTimestamp) { newestTime = max(newestTime, time) }

  /// Searches for deleted records. One that never existed is deleted at time 0 (SPEC.md §15).
  ///
  /// - Parameter recalled: the records that this device restores.
  mutating func search(_ change: Change, recalled: Set<RecordKey>) {
    if let stamp = change.state.deleted?.stamp, !change.state.isAlive, stamp.time > .zero {
      deleted[change.key] = stamp
    } else {
      deleted[change.key] = nil
    }
    if recalled.contains(change.key) {
      listed[change.key] = change.state.columns.map { Column($0.name, $0.value) }
    }
  }

  /// Begins with the results of a list that was filled in beside its tables.
  mutating func begin(after filled: FilledList) {
    (applied, spellings) = (filled.applied, filled.spellings)
    add(filled.newestTime)
  }
}

/// The tables with rows written by a pass since deferred changes were tried.
struct WrittenTables {
  private var names = Set<Name>()
  private var last: Name?

  /// Adds a table. Mostly it is the table of the change before, and needs no hash.
  mutating func add(_ table: Name) {
    if last == table { return }
    names.insert(table)
    last = table
  }

  /// Removes the tables, and returns them in order.
  mutating func dequeue() -> [Name] {
    defer { (names, last) = ([], nil) }
    return names.sorted()
  }
}

/// Facts about the file that spare a pass queries.
struct PassFacts {
  /// True if own operations are perhaps pending.
  var hasPending: Bool
  /// True if changes are perhaps deferred.
  var hasKept: Bool
  /// True if deferred changes perhaps wait for records that may arrive.
  var hasWaiting: Bool
  /// True if this device asks the user anything.
  var hasQuestions = false
  /// The upload-only tables; nothing is pulled for them.
  private let uploads: [Name]
  /// Tables with possible unrecorded writes.
  let unrecorded: [Name: UnrecordedTable]

  init(_ file: ReplicaFile) throws {
    uploads = try file.tables.tracked.uploads()
    unrecorded = Dictionary(
      try file.unrecordedWrites.tables().map { ($0.table, $0) }, uniquingKeysWith: { one, _ in one }
    )
    hasPending = try !file.queue.isEmpty()
    hasKept = try !file.kept.isEmpty()
    hasWaiting = try hasKept && file.kept.hasWaitingForParents()
  }

  /// Returns true if a table is upload-only. Mostly there is none.
  func isUpload(_ table: Name) -> Bool { uploads.contains { $0 == table } }
}

/// The plans of a pass: one look-up for each run of changes to one table.
struct PassPlans {
  private let file: ReplicaFile
  private var known: [Name: ApplyPlan?] = [:]
  private var last: ApplyPlan?

  init(_ file: ReplicaFile) { self.file = file }

  /// Returns the plan for a table; `nil` if the file does not have the table by this name.
  mutating func plan(for table: Name) throws -> ApplyPlan? {
    if let last, last.table.name == table { return last }
    let plan: ApplyPlan?
    if let found = known[table] {
      plan = found
    } else {
      plan = try file.tables.plan(for: table)
      known[table] = .some(plan)
    }
    last = plan
    return plan
  }
}
