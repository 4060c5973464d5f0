import FerryProtocol
import FerrySQLite

/// Deletes with an effect on other rows, after the rest of a pull list (SPEC.md §28).
extension ApplyPass {
  /// Deletes all records that no row keeps, together, and restores the others. Returns true if any
  /// was deleted.
  @discardableResult
  mutating func resolveHeld() throws -> Bool {
    if held.isEmpty { return false }
    var leaving = try held.subtracting(waitedFor()).sorted {
      ($0.table, $0.record) < ($1.table, $1.record)
    }
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS temp.ferry_leaving(
        tbl TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(tbl, record)) WITHOUT ROWID;
      DELETE FROM temp.ferry_leaving
      """)
    let add = try connection.statement("INSERT INTO temp.ferry_leaving VALUES (?, ?)")
    for key in leaving { try add.run(key.table, key.record) }
    var staying: [RecordKey] = []
    var before = leaving.count + 1
    while leaving.count < before {
      before = leaving.count
      leaving = try stillLeaving(leaving, &staying)
    }
    for key in staying { try restore(key) }
    let isAnyDeleted = try delete(childrenFirst(leaving))
    held = []
    return isAnyDeleted
  }

  /// Returns the held records with referring rows that deferred changes move elsewhere. SQLite
  /// would delete or change these rows, and the device would send the result. The same holds for
  /// rows that go with other rows.
  private mutating func waitedFor() throws -> Set<RecordKey> {
    var open: [RecordKey] = []
    for key in try refusedWithRows() where !held.contains(key) {
      let state = try file.kept.change(of: key)?.state
      try addParents(of: key, to: &open) { state?.sets($0) ?? true }
    }
    // The rest of such a record is fetched.
    for key in refused where try !file.kept.contains(key) && file.refreshes.contains(key) {
      try addParents(of: key, to: &open) { _ in true }
    }
    var (found, seen) = (Set<RecordKey>(), Set<RecordKey>())
    while let key = open.popLast() {
      guard seen.insert(key).inserted else { continue }
      if held.contains(key) { found.insert(key) }
      try addParents(of: key, to: &open) { _ in true }
    }
    return found
  }

  /// Returns the deferred records with a row here. Others refer to nothing yet.
  private mutating func refusedWithRows() throws -> [RecordKey] {
    try file.kept.tables(refused: true).flatMap { name -> [RecordKey] in
      guard let table = try plans.plan(for: name)?.table else { return [] }
      return try connection.rows(
        """
        SELECT k.record FROM ferry_kept AS k WHERE k.tbl = ?1 AND \(KeptChanges.isRefused)
          AND EXISTS (SELECT 1 FROM \(quoted(table.local)) AS c
            WHERE \(table.has(record: "k.record", in: "c")))
        """, name
      ) { RecordKey(table: name, record: $0.name(0)) }
    }
  }

  private mutating func addParents(
    of key: RecordKey, to open: inout [RecordKey], where isIncluded: (ForeignKey) -> Bool
  ) throws {
    guard let plan = try plans.plan(for: key.table) else { return }
    let links = try file.tables.parentRules().parents(of: plan.table.local).filter(
      isIncluded)
    open += try file.tables.foreignKeys.parents(of: key.record, by: links)
  }

  /// Returns the records in an order with each row before the rows it refers to. Otherwise it would
  /// go with them and be recorded as deleted.
  private mutating func childrenFirst(_ keys: [RecordKey]) throws -> [RecordKey] {
    var (order, seen) = ([RecordKey](), Set<RecordKey>())
    for key in keys {
      var open = [(key: key, isEntered: false)]
      while let next = open.popLast() {
        if next.isEntered {
          order.append(next.key)
          continue
        }
        guard seen.insert(next.key).inserted, let plan = try plans.plan(for: next.key.table) else {
          continue
        }
        open.append((next.key, true))
        open += try plan.leavingChildren(next.key.record).map { ($0, false) }
      }
    }
    return order
  }

  /// Returns the records that no row keeps, apart from rows that leave as well.
  private mutating func stillLeaving(
    _ keys: [RecordKey], _ staying: inout [RecordKey]
  ) throws -> [RecordKey] {
    var leaving: [RecordKey] = []
    for key in keys {
      let isKept =
        try plans.plan(for: key.table)?.isHeld(key.record, by: .init(isStaying: true)) ?? false
      guard isKept else {
        leaving.append(key)
        continue
      }
      staying.append(key)
      try connection.run(
        "DELETE FROM temp.ferry_leaving WHERE tbl = ? AND record = ?", key.table, key.record)
    }
    return leaving
  }

  /// Records a parent as inserted again. After an earlier rejection by the server, the delete stays
  /// deferred.
  private mutating func restore(_ key: RecordKey) throws {
    guard let plan = try plans.plan(for: key.table),
      let deletion = try file.kept.change(of: key)?.state?.deleted,
      try !ReturningParents(file).isRejected(key)
    else { return }
    let isAsking = try plan.isHeld(key.record, by: .init(isAsking: true, isStaying: true))
    file.capture.observe(findings.newestTime)
    try ReturningParents(file).restore(key, in: plan.table, deletion.stamp, isAsking: isAsking)
    refused.remove(key)
    facts.hasPending = true
  }

  /// Deletes records that may refer to each other. With ON DELETE RESTRICT, SQLite permits this
  /// only from the last child on. Returns true if any was deleted.
  private mutating func delete(_ keys: [RecordKey]) throws -> Bool {
    isEndOfList = true
    defer { isEndOfList = false }
    var rest = keys
    var before = rest.count + 1
    while !rest.isEmpty && rest.count < before {
      before = rest.count
      var failed: [RecordKey] = []
      for key in rest {
        guard let kept = try file.kept.change(of: key), kept.isReadable else { continue }
        try apply(kept.change)
        if try file.kept.change(of: key)?.isRefused ?? false { failed.append(key) }
      }
      rest = failed
    }
    return rest.count < keys.count
  }
}

extension ApplyPass {
  /// Deletes a record together with dependent rows. Returns true if there are any.
  mutating func takingAlong(
    _ change: Change, _ delete: () throws -> Void
  ) throws -> Bool {
    // The delete of a dependent row is later than all writes seen on that row.
    file.capture.observe(findings.newestTime)
    // Only while it is not changed here: otherwise it would be copied.
    file.capture.seen = seen
    defer { file.capture.seen = nil }
    // Rows of other spaces may go along.
    let ledgers = try file.spaces.all.map { (Orphans($0), try Orphans($0).lastOperation()) }
    try delete()
    let winner = change.state.isAlive ? nil : change.state.deleted?.stamp
    var isAny = false
    for (ledger, last) in ledgers where try ledger.storeLost(after: last, winner: winner) {
      isAny = true
    }
    return isAny
  }

  private mutating func apply(_ change: Change) throws {
    guard deferred.orphans.contains(change.key) else {
      try apply(change, isRetry: true)
      return
    }
    do {
      try deleteOrphan(change)
    } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
      // The schema keeps the row: the change stays deferred.
    }
  }
}

extension RecordState {
  /// Returns true if the state may give a row other values for a foreign key.
  fileprivate func sets(_ link: ForeignKey) -> Bool {
    if deleted != nil && !isAlive { return false }
    let names = link.child.columns.filter { column in
      link.from.contains { $0.folded == column.local.folded }
    }.map(\.name)
    return inserted != nil || columns.contains { names.contains($0.name) }
  }
}
