import FerryProtocol
import FerrySQLite

/// The result of one sync for tables with unrecorded writes.
struct ReconciledRows: Equatable, Sendable {
  /// Rows recorded as inserts or updates.
  var recorded = 0
  /// Rows to fetch from the server.
  var fetched = 0
  /// Rows to look at again with the next sync, since others changed them meanwhile.
  var left = 0

  static func += (one: inout ReconciledRows, other: ReconciledRows) {
    one.recorded += other.recorded
    one.fetched += other.fetched
    one.left += other.left
  }
}

/// The handling of unrecorded writes by a sync: the driver of ``Reconciliation`` (SPEC.md §25).
struct Reconciler {
  let existingRows: ExistingRows
  let operations: OperationLog
  let unrecordedWrites: UnrecordedWrites
  let kept: KeptChanges
  let refreshes: RefreshTable
  let lostValues: LostValues
  let state: ReplicaState
  /// Returns this device's identifiers.
  let own: () throws -> OwnNames

  private var connection: SQLiteConnection { kept.connection }
  private var tables: LocalTables { existingRows.tables }

  /// Checks for rows with a key that is no record's identifier. They stay here, and the others are
  /// compared.
  func checkKeys(of unrecorded: UnrecordedTable) throws {
    try connection.transaction {
      let table = try tables.schema(of: unrecorded.table)
      do {
        try existingRows.checkKeys(of: table)
        try unrecordedWrites.setFault(nil, of: table.name)
      } catch ReplicaError.cannotTrack(_, let reason) {
        try unrecordedWrites.setFault(reason, of: table.name)
      }
    }
  }

  // MARK: Reconciling

  /// Decides about rows of a table that differ from the server's records.
  func reconcile(
    _ changes: [Change], of unrecorded: UnrecordedTable
  ) throws -> ReconciledRows {
    try connection.transaction {
      let scan = try TableScan(
        unrecorded.table, on: connection, limits: kept.limits, isWhole: false)
      let rules = try tables.rules(for: scan.table)
      let machine = Reconciliation(
        comparison: scan.comparison, since: unrecorded.since,
        columns: unrecorded.isRemade ? nil : unrecorded.newColumns, own: try own())
      let applied = try state.load().applied
      let table = unrecorded.table
      let isUpload = try tables.tracked.uploads().contains(table)
      var result = ReconciledRows()
      for change in changes {
        guard change.sequence <= applied else {
          result.left += 1
          continue
        }
        let here = KeptOverlay.received(
          row: try scan.row(change.key), kept: try kept.change(of: change.key)?.state)
        let pending = try pendingWrites(of: change.key)
        var decision = machine.decide(here: here, there: change.state, pending: pending)
        if let here, unrecorded.isRemade {
          decision.edited += machine.overwritten(
            here: here, pending: try pendingValues(of: change.key, upTo: unrecorded.recorded))
        }
        if isUpload { decision.dropServer() }
        do {
          try record(decision, change.key, scan.table, rules)
        } catch let error as SQLiteError where error.concernsRow {
          try unrecordedWrites.setFault(
            "its row '\(change.key.record)' cannot be recorded: \(error.message)", of: table)
          result.left += 1
          continue
        }
        try lostValues.store(
          decision.lost, of: change.key, there: change.state, decision.losesRow)
        if decision.takesServer { try refreshes.add([change.key]) }
        result.recorded += decision.isInserted || !decision.edited.isEmpty ? 1 : 0
        result.fetched += decision.takesServer ? 1 : 0
      }
      return result
    }
  }

  /// Returns the values given to a record's columns by pending operations and batches up to a place
  /// in the queue. Omits a column if a later operation writes it, or if one is more than a value.
  private func pendingValues(of key: RecordKey, upTo order: Int64) throws -> [Column] {
    var values: [Name: Value] = [:]
    let found = try connection.rows(
      "\(OperationTable.selection) WHERE \(OperationTable.concernsRecord) ORDER BY seq", key.record,
      key.table
    ) { (order: $0.int64(0), operation: try operations.queue.pending($0).operation) }
    for (place, recorded) in found {
      let operation = recorded.batchEffect(on: key.record) ?? recorded
      let made = operation.increments.union(operation.originals.map(\.name))
      for column in operation.columns {
        if place <= order && !made.contains(column.name) {
          values[column.name] = column.value
        } else {
          values.removeValue(forKey: column.name)
        }
      }
    }
    return values.sorted { $0.key < $1.key }.map { Column($0.key, $0.value) }
  }

  /// Returns the pending operations of a record.
  private func pendingWrites(of key: RecordKey) throws -> Reconciliation.Pending {
    let operations = try operations.markConcurrent(key)
    if operations.contains(where: { $0.kind == .delete || $0.kind == .batch }) { return .delete }
    let columns = Set(operations.flatMap { $0.columns.map(\.name) })
    return operations.contains { $0.kind == .insert } ? .insert(columns) : .updates(columns)
  }

  private func record(
    _ decision: Reconciliation.Decision, _ key: RecordKey, _ table: TableSchema, _ rules: TableRules
  ) throws {
    if decision.isInserted {
      try connection.run(CaptureTriggers.recordExisting(table), key.record)
    } else if !decision.edited.isEmpty {
      let old = table.columns.compactMap { column in
        decision.edited.first { $0.name == column.name }?.value
      }
      try connection.run(
        CaptureTriggers.recordDifference(table, rules, of: Set(decision.edited.map(\.name))),
        SQLiteList(old), key.record)
    }
    // Each row is a separate transaction: nothing shows which rows were written together.
    existingRows.capture.endTransaction()
  }

  /// Records that all rows of a table were compared, and that a pull follows. Unless some were
  /// left, each row is the server's or has a pending operation from now on.
  func markCompared(_ unrecorded: UnrecordedTable, _ result: ReconciledRows) throws {
    let isWhole = try result.left == 0 && !unrecordedWrites.hasFault(unrecorded.table)
    unrecordedWrites.setCompared(unrecorded, isWhole)
  }

  /// Records the comparison of a whole table: writes to it are recorded again.
  func end(_ unrecorded: UnrecordedTable, _ result: ReconciledRows) throws {
    unrecordedWrites.setCompared(unrecorded, false)
    try connection.transaction {
      if result.recorded + result.fetched > 0 {
        try tables.log(
          "reconciled",
          "\(unrecorded.table): \(result.recorded) rows were recorded as edits of this device, and "
            + "\(result.fetched) were fetched from the server; `ferry conflicts` lists values that "
            + "other devices had changed")
      }
      // Otherwise the next sync compares it once more.
      guard result.left == 0, try unrecordedWrites.tables().contains(unrecorded) else {
        return
      }
      try unrecordedWrites.end(unrecorded.table)
    }
  }

  // MARK: Lost values

  /// Stores unrecorded values of rows before deferred changes of others replace them.
  func storeOverwritten(in table: TableSchema) throws {
    guard
      let unrecorded = try unrecordedWrites.tables().first(where: { $0.table == table.name })
    else {
      return
    }
    var place = KeptPlace.start
    while let next = try kept.next(.ofTable(table.name), after: place) {
      place = KeptPlace(next.change)
      try storeOverwritten(by: next.change, in: unrecorded)
    }
  }

  /// Stores unrecorded values of a row before a change of others replaces it. Nothing shows which
  /// values of such a row are old ones received by this device.
  func storeOverwritten(by change: Change, in unrecorded: UnrecordedTable) throws {
    let (key, there) = (change.key, change.state)
    let isDeleted = there.deleted != nil && !there.isAlive
    if isDeleted && !unrecorded.isRemade { return }
    let table = try tables.schema(of: key.table)
    let names = table.columns.map(\.name).filter {
      unrecorded.isRemade || unrecorded.newColumns.contains($0)
    }
    guard !names.isEmpty, case .updates(let pending) = try pendingWrites(of: key) else { return }
    let decision = Reconciliation.replaced(
      try RecordRows(tables: tables).row(key, table, names), by: there, besides: pending)
    try lostValues.store(decision.lost, of: key, there: there, decision.losesRow)
  }
}
