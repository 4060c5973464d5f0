import FerryProtocol
import FerrySQLite

/// Deleted records that return because rows refer to them (SPEC.md §28).
struct ReturningParents {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }
  private var capture: CaptureContext { file.capture }

  init(_ file: ReplicaFile) { self.file = file }

  /// Restores a record deleted by another device: the row is here still, and is recorded as an
  /// insert.
  ///
  /// - Parameters:
  ///   - deletion: the stamp of the delete.
  ///   - isAsking: true to ask the user about it.
  func restore(
    _ key: RecordKey, in table: TableSchema, _ deletion: Stamp, isAsking: Bool
  ) throws {
    let counters = try file.tables.counters(of: table)
    try capture.recordApart {
      try connection.run(CaptureTriggers.recordRow(table, counters: counters), key.record)
    }
    try file.kept.forget(key)
    try recordReturn(of: key, asking: isAsking ? deletion : nil)
    try recordOnce(counters, of: key, after: deletion)
  }

  /// Records the values of counters as increments. Several devices may restore a record: they give
  /// the increments the same identifiers, so each counts once.
  private func recordOnce(_ counters: [Name], of key: RecordKey, after deletion: Stamp) throws {
    if counters.isEmpty { return }
    try file.operations.rememberClock()
    for name in counters {
      guard case .integer(let amount)? = try file.rows.value(of: name, in: key), amount != 0 else {
        continue
      }
      let time = HybridTimestamp(rawValue: deletion.time.rawValue &+ 1)
      try file.operations.recordIncrement(
        amount, of: name, in: key, id: RescuedCounter.identifier(of: name, in: key, at: time))
    }
    capture.endGroup()
  }

  /// Returns true if the server has rejected the record's return.
  func isRejected(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_operations
      WHERE state = 3 AND record = ? AND tbl = ? AND kind = 'insert' LIMIT 1
      """, key.record, key.table)
  }

  /// Returns true if this device can restore a record: it deleted the row itself, and the operation
  /// has the values.
  ///
  /// - Parameter tombstone: the delete as on the server; `nil` if it is not known.
  func canRecall(_ key: RecordKey, tombstone: Stamp?) throws -> Bool {
    guard let own = try ownDelete(of: key), try file.kept.change(of: key)?.state == nil,
      try !isRejected(key)
    else { return false }
    return own.isPending || own.stamp.time == tombstone?.time
  }

  /// Restores records deleted by this device, because rows of others refer to them, and before them
  /// their parents. A record stays deleted if the table rejects it.
  ///
  /// - Parameter listed: newer values, from the pull list.
  /// - Returns: The inserted records.
  func recall(
    _ deferred: DeferredRecords, _ listed: [RecordKey: [Column]], after time: HybridTimestamp
  ) throws -> Set<RecordKey> {
    if deferred.recalled.isEmpty { return [] }
    capture.observe(time)
    let rules = try file.tables.parentRules()
    var inserted = Set<RecordKey>()
    for key in deferred.recalled.sorted(by: { ($0.table, $0.record) < ($1.table, $1.record) }) {
      var order: [RecordKey] = []
      guard try addMissing(key, rules, to: &order) else { continue }
      for key in order {
        let isAsked = deferred.asked.contains(key)
        if try recall(key, newer: listed[key] ?? [], isAsked: isAsked) { inserted.insert(key) }
      }
    }
    return inserted
  }

  private func recall(_ key: RecordKey, newer: [Column], isAsked: Bool) throws -> Bool {
    guard let own = try ownDelete(of: key) else { return false }
    let table = try file.tables.schema(of: key.table)
    let plan = try file.tables.plainPlan(for: key.table)
    let counters = try file.tables.counters(of: table)
    let columns =
      own.columns.filter { old in !newer.contains { $0.name == old.name } } + newer
    do {
      try recordingNothing(of: key) {
        try plan.upsert(key.record, plan.unstamped(columns), isWhole: true, kept: [])
      }
    } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
      return false
    }
    try capture.recordApart {
      try connection.run(CaptureTriggers.recordRow(table, counters: counters), key.record)
    }
    try recordReturn(of: key, asking: isAsked ? own.stamp : nil)
    try recordOnce(counters, of: key, after: own.stamp)
    return true
  }

  private func recordingNothing(of key: RecordKey, _ body: () throws -> Void) throws {
    try capture.during(.applying) {
      capture.beginApplying(key, .values)
      try body()
    }
  }

  /// Adds the missing records that a record refers to, and then the record. Returns false if one of
  /// them cannot be restored.
  private func addMissing(
    _ key: RecordKey, _ rules: ParentRules, to order: inout [RecordKey]
  ) throws -> Bool {
    if order.contains(key) { return true }
    guard let plan = try? file.tables.plainPlan(for: key.table) else { return false }
    if try plan.exists(key.record) { return true }
    guard order.count < 100, let columns = try ownDelete(of: key)?.columns else { return false }
    for link in rules.references(of: key.table) {
      guard let parent = link.parent(of: key.record, columns), parent != key else { continue }
      guard try addMissing(parent, rules, to: &order) else { return false }
    }
    order.append(key)
    return true
  }

  /// Returns this device's newest delete of a record, with the record's values.
  private func ownDelete(
    of key: RecordKey
  ) throws -> (columns: [Column], stamp: Stamp, isPending: Bool)? {
    let found = try connection.first(
      """
      SELECT id, data, state = 0 FROM ferry_operations
      WHERE kind = 'delete' AND record = ? AND tbl = ? ORDER BY seq DESC LIMIT 1
      """, key.record, key.table
    ) { (id: $0.uniqueID(0), data: Array($0.textBytes(1)), isPending: $0.int64(2) != 0) }
    guard let found, let id = found.id, !found.data.isEmpty else { return nil }
    let columns = try decode(found.data, depth: file.limits.depth) {
      (reader) throws(MalformedMessage) in try reader.columns(limits: file.limits)
    }
    let stamp = Stamp(time: id.timestamp, device: try file.identity().device)
    return (columns, stamp, found.isPending)
  }

  private func recordReturn(of key: RecordKey, asking deletion: Stamp?) throws {
    try file.log(
      "returned",
      "\(key.table)/\(key.record) is here again: it was deleted on one device, and rows of another "
        + "refer to it")
    guard let deletion else { return }
    guard let (id, stamp) = try file.queue.newest(by: file.identity().device) else { return }
    try file.conflictLog.store(
      Conflict(column: nil, lost: .null, loser: deletion, winner: stamp, isQuestion: true), of: id,
      on: key)
  }
}

extension CaptureContext {
  /// Records the writes of `body` as a transaction of its own, as each row of a cascade is.
  func recordApart(_ body: () throws -> Void) rethrows {
    try during(.recording) {
      endGroup()
      try body()
      endGroup()
    }
  }
}
