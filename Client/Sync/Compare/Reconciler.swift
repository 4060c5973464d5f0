import FerryProtocol
import FerrySQLite
import FerryStoredValues

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

/// Schema changes that bypass the triggers, and their handling by a sync (SPEC.md §25).
extension ReplicaFile {
  var unrecordedWrites: UnrecordedTables { UnrecordedTables(connection: connection) }

  // MARK: Noting

  /// Marks a whole table: it may have unrecorded rows. It was dropped and created again, it lost
  /// its triggers, or it was untracked for a time.
  func markUnrecorded(_ table: Name, since: SequenceNumber? = nil) throws {
    guard try unrecordedWrites.markWhole(table, since: since ?? syncState().applied) else { return }
    if let here = try? schema(of: table), here.name == table {
      try KeyNumbers(connection: connection).assignRows(of: here, fresh: capture.newRecord)
    }
    try log(
      "unrecorded",
      "\(table) was written to unrecorded; the next sync compares its rows with the server")
  }

  /// Marks a tracked table as absent. If it returns, the rows are compared.
  func markAbsent(_ table: Name) throws {
    // After a rename by another program, the triggers would record the other table as this one.
    try dropTriggers(of: table)
    try unrecordedWrites.markAbsent(table)
  }

  // MARK: Reading

  /// Returns tables to compare with the server, row by row.
  func unrecordedTables() throws -> [UnrecordedTable] {
    try unrecordedWrites.tables { (try? schema(of: $0))?.name == $0 }
  }

  /// Returns tables to compare, also if another program has just changed them.
  func currentUnrecordedTables() throws -> [UnrecordedTable] {
    try noticeNewSchema()
    return try unrecordedTables()
  }

  /// Returns tracked tables unable to sync in their present form, with the reason and a remedy.
  func tableFaults() throws -> [TableFault] {
    try unrecordedWrites.keptFaults().compactMap { name, fault in
      do {
        let found = try schema(of: name).name
        if found == name { return fault.map { TableFault(table: name, reason: $0) } }
        return TableFault(table: name, reason: "its name is spelled \(found) now")
      } catch ReplicaError.cannotTrack(_, let reason) {
        return TableFault(table: name, reason: reason)
      }
    }
  }

  /// Checks for rows with a key that is no record's identifier. They stay here, and the others are
  /// compared.
  func checkUnrecordedKeys(of unrecorded: UnrecordedTable) throws {
    try connection.transaction {
      let table = try schema(of: unrecorded.table)
      do {
        try checkKeys(of: table)
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
      let scan = try TableScan(unrecorded.table, on: connection, limits: limits, isWhole: false)
      let rules = try self.rules(for: scan.table)
      let machine = Reconciliation(
        comparison: scan.comparison, since: unrecorded.since,
        columns: unrecorded.isRemade ? nil : unrecorded.newColumns, own: try ownNames())
      let applied = try syncState().applied
      let table = unrecorded.table
      let isUpload = try tracked.uploads().contains(table)
      var result = ReconciledRows()
      for change in changes {
        guard change.sequence <= applied else {
          result.left += 1
          continue
        }
        let here = KeptOverlay.received(
          row: try scan.row(change.key), kept: try kept.state(of: change.key)?.state)
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
        try storeLost(decision.lost, of: change.key, there: change.state, decision.losesRow)
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
    let operations = try connection.rows(
      "\(OperationTable.selection) WHERE \(OperationTable.concernsRecord) ORDER BY seq", key.record,
      key.table
    ) { (order: $0.int64(0), operation: try queue.pending($0).operation) }
    for (place, recorded) in operations {
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
    let operations = try self.operations.markConcurrent(key)
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
    capture.endTransaction()
  }

  /// Records that all rows of a table were compared, and that a pull follows. Unless some were
  /// left, each row is the server's or has a pending operation from now on.
  func markCompared(_ unrecorded: UnrecordedTable, _ result: ReconciledRows) throws {
    compared.removeAll { $0.table == unrecorded.table }
    guard try result.left == 0 && !unrecordedWrites.hasFault(unrecorded.table) else { return }
    compared.append(unrecorded)
  }

  /// Returns tables that may have unrecorded rows, found only on this device.
  func tablesWithUnknownRows() throws -> Set<Name> {
    let tables = try unrecordedTables().filter { table in
      table.isRemade && !compared.contains { $0.hasSameWrites(as: table) }
    }
    return Set(tables.map(\.table))
  }

  /// Records the comparison of a whole table: writes to it are recorded again.
  func endReconciling(_ unrecorded: UnrecordedTable, _ result: ReconciledRows) throws {
    compared.removeAll { $0.table == unrecorded.table }
    try connection.transaction {
      if result.recorded + result.fetched > 0 {
        try log(
          "reconciled",
          "\(unrecorded.table): \(result.recorded) rows were recorded as edits of this device, and "
            + "\(result.fetched) were fetched from the server; `ferry conflicts` lists values that "
            + "other devices had changed")
      }
      // Otherwise the next sync compares it once more.
      guard result.left == 0, try unrecordedTables().contains(unrecorded) else { return }
      try unrecordedWrites.end(unrecorded.table)
    }
  }

  // MARK: Keeping values readable

  /// Stores unrecorded values of rows before deferred changes of others replace them.
  func storeOverwritten(in table: TableSchema) throws {
    guard let unrecorded = try unrecordedTables().first(where: { $0.table == table.name }) else {
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
    let table = try schema(of: key.table)
    let names = table.columns.map(\.name).filter {
      unrecorded.isRemade || unrecorded.newColumns.contains($0)
    }
    guard !names.isEmpty, case .updates(let pending) = try pendingWrites(of: key) else { return }
    let row = try row(key, table, names)
    let lost = (row ?? []).filter { column in
      guard column.value != .null, !pending.contains(column.name) else { return false }
      if isDeleted { return true }
      return there.columns.contains { $0.name == column.name && $0.value != column.value }
    }
    try storeLost(lost, of: key, there: there, isDeleted && row != nil)
  }

  /// Stores values of a row replaced by the server's version, as conflicts: the user can read them
  /// and choose them again.
  ///
  /// - Parameter isRowLost: true if the row itself is deleted.
  func storeLost(
    _ columns: [Column], of key: RecordKey, there: RecordState? = nil, _ isRowLost: Bool
  ) throws {
    if columns.isEmpty && !isRowLost { return }
    let time = HybridTimestamp(milliseconds: wallClock())
    let operation = OperationID(UniqueID(timestamp: time, random: random()))
    let loser = Stamp(time: time, device: try identity().device)
    let unknown = Stamp(time: time, device: .server)
    for column in columns {
      let winner = there?.columns.first { $0.name == column.name }?.stamp
      let conflict = Conflict(
        column: column.name, lost: column.value, loser: loser, winner: winner ?? unknown)
      try store(conflict, of: operation, on: key)
    }
    guard isRowLost else { return }
    let conflict = Conflict(
      column: nil, lost: .null, loser: loser, winner: there?.deleted?.stamp ?? unknown)
    try store(conflict, of: operation, on: key)
  }
}
