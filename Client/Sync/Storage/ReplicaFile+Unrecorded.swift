import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// A table that may have unrecorded rows or values.
struct UnrecordedTable: Equatable, Sendable {
  let table: Name
  /// The place in the history after which that may have happened.
  let since: SequenceNumber
  /// Whether the table was created again or was untracked; if not, only columns are new.
  let isRemade: Bool
  /// The newest operation that was recorded before.
  let recorded: Int64
  /// The new columns.
  let newColumns: Set<Name>
  /// The version of the schema at that time.
  let schemaVersion: Int64
}

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
  // MARK: Noting

  /// Notes that a whole table may have unrecorded rows. It was dropped and created again, it lost
  /// its triggers, or it was untracked for a time.
  func noteUnrecorded(_ table: Name, since: SequenceNumber? = nil) throws {
    try connection.run(
      """
      UPDATE ferry_tables SET remade = 1, since = min(ifnull(since, ?1), ?1),
        recorded = (SELECT ifnull(max(seq), 0) FROM ferry_operations)
      WHERE name = ?2
      """, try since ?? syncState().applied, table)
    guard connection.changes > 0 else { return }
    if let here = try? schema(of: table), here.name == table {
      try KeyNumbers(connection: connection).takeRows(of: here, fresh: capture.newRecord)
    }
    try note(
      "unrecorded",
      "\(table) was written to unrecorded; the next sync compares its rows with the server")
  }

  /// Notes that a tracked table is absent. If it returns, its rows are compared.
  func noteAbsent(_ table: Name) throws {
    // After a rename by another program, the triggers would record the other table as this one.
    try dropTriggers(of: table)
    try connection.run(
      """
      UPDATE ferry_tables SET remade = 1,
        since = ifnull(since, (SELECT applied FROM ferry_replica))
      WHERE name = ? AND remade = 0
      """, table)
  }

  /// Notes columns that the table did not have. They may have unrecorded values: after a rename of
  /// a column, or if a column was dropped before.
  func noteNewColumns(of table: TableSchema) throws {
    let known = try knownColumns(of: table.name)
    guard !known.isEmpty, table.columns.contains(where: { !known.contains($0.name) }) else {
      return
    }
    try connection.run(
      """
      UPDATE ferry_tables SET since = ifnull(since, (SELECT applied FROM ferry_replica))
      WHERE name = ?
      """, table.name)
  }

  /// Stores the columns that the triggers know.
  func noteColumns(of table: TableSchema) throws {
    let known = try knownColumns(of: table.name)
    let names = Set(table.columns.map(\.name))
    let remove = try connection.statement("DELETE FROM ferry_columns WHERE tbl = ? AND name = ?")
    for name in known.subtracting(names) { try remove.run(table.name, name) }
    let insert = try connection.statement(
      "INSERT OR IGNORE INTO ferry_columns(tbl, name, is_new) VALUES (?, ?, ?)")
    for name in names.subtracting(known) { try insert.run(table.name, name, known.isEmpty ? 0 : 1) }
  }

  /// Returns the columns that a tracked table had when its triggers were made.
  func knownColumns(of table: Name) throws -> Set<Name> {
    Set(try connection.rows("SELECT name FROM ferry_columns WHERE tbl = ?", table) { $0.name(0) })
  }

  /// Notes that a table's writes are unrecorded from now on.
  func noteUntracked(_ table: Name) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO ferry_untracked
      SELECT name, iif(direction = 'two-way', min(ifnull(since, applied), applied), 0), identity
      FROM ferry_tables, ferry_replica WHERE name = ?
      """, table)
    try connection.run("DELETE FROM ferry_columns WHERE tbl = ?", table)
  }

  /// Returns the identity that a table had when it was tracked before.
  func formerIdentity(of table: Name) throws -> KeyIdentity? {
    try connection.first(
      "SELECT identity FROM ferry_untracked WHERE name = ? COLLATE NOCASE", table
    ) { KeyIdentity(rawValue: $0.text(0)) } ?? nil
  }

  /// Returns the place after which a table's writes are unrecorded, if it was tracked before.
  /// Deletes the note.
  func takeUntracked(_ table: Name) throws -> SequenceNumber? {
    try connection.rows(
      "DELETE FROM ferry_untracked WHERE name = ? COLLATE NOCASE RETURNING since", table
    ) { $0.int64(0) }.min()
  }

  // MARK: Reading

  /// Returns tables whose rows have to be compared with the server.
  func unrecordedTables() throws -> [UnrecordedTable] {
    let tables = try connection.rows(
      "SELECT name, since, remade, recorded FROM ferry_tables WHERE since IS NOT NULL ORDER BY name"
    ) { ($0.name(0), $0.int64(1), $0.int64(2) != 0, $0.int64(3)) }
    if tables.isEmpty { return [] }
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    return try tables.filter { (try? schema(of: $0.0))?.name == $0.0 }.map {
      name, since, isRemade, recorded in
      let columns = try connection.rows(
        "SELECT name FROM ferry_columns WHERE tbl = ? AND is_new <> 0", name
      ) { $0.name(0) }
      return UnrecordedTable(
        table: name, since: since, isRemade: isRemade, recorded: recorded,
        newColumns: Set(columns), schemaVersion: version)
    }
  }

  /// Returns tables to compare, also if another program has just changed them.
  func currentUnrecordedTables() throws -> [UnrecordedTable] {
    try noticeNewSchema()
    return try unrecordedTables()
  }

  /// Returns tracked tables that cannot sync in their present form, with the reason and a remedy.
  func tableFaults() throws -> [TableFault] {
    try connection.rows("SELECT name, fault FROM ferry_tables ORDER BY name") {
      ($0.name(0), $0.optionalText(1))
    }.compactMap { name, fault in
      do {
        let found = try schema(of: name).name
        if found == name { return fault.map { TableFault(table: name, reason: $0) } }
        return TableFault(table: name, reason: "its name is spelled \(found) now")
      } catch ReplicaError.cannotTrack(_, let reason) {
        return TableFault(table: name, reason: reason)
      }
    }
  }

  /// Keeps why rows of a table cannot be recorded, until it is compared again.
  private func setFault(_ fault: String?, of table: Name) throws {
    try connection.run("UPDATE ferry_tables SET fault = ? WHERE name = ?", fault, table)
  }

  /// Looks for rows whose key is no record's identifier. They stay here, and the others are compared.
  func checkUnrecordedKeys(of unrecorded: UnrecordedTable) throws {
    try connection.transaction {
      let table = try schema(of: unrecorded.table)
      do {
        try checkKeys(of: table)
        try setFault(nil, of: table.name)
      } catch ReplicaError.cannotTrack(_, let reason) {
        try setFault(reason, of: table.name)
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
      let isUpload = try uploadTables().contains(table)
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
          try setFault(
            "its row '\(change.key.record)' cannot be recorded: \(error.message)", of: table)
          result.left += 1
          continue
        }
        try keepLost(decision.lost, of: change.key, there: change.state, decision.losesRow)
        if decision.takesServer { try refresh([change.key]) }
        result.recorded += decision.isInserted || !decision.edited.isEmpty ? 1 : 0
        result.fetched += decision.takesServer ? 1 : 0
      }
      return result
    }
  }

  /// Returns the values that a record's pending operations gave to columns up to a place in the queue,
  /// unless a later one writes the column, or one is more than a value.
  private func pendingValues(of key: RecordKey, upTo order: Int64) throws -> [Column] {
    var values: [Name: Value?] = [:]
    let operations = try connection.rows(
      "\(OperationTable.selection) WHERE record = ? AND tbl = ? ORDER BY seq", key.record, key.table
    ) { (order: $0.int64(0), operation: try queue.pending($0).operation) }
    for (place, operation) in operations {
      let made = operation.increments.union(operation.originals.map(\.name))
      for column in operation.columns {
        let isValue = place <= order && !made.contains(column.name)
        values[column.name] = .some(isValue ? column.value : nil)
      }
    }
    return values.sorted { $0.key < $1.key }.compactMap { name, value in
      value.map { Column(name, $0) }
    }
  }

  /// Returns the pending operations of a record.
  private func pendingWrites(of key: RecordKey) throws -> Reconciliation.Pending {
    let operations = try markConcurrent(key)
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
    // Each row is a transaction of its own: nothing shows which rows were written together.
    capture.endTransaction()
  }

  /// Notes that a table was compared as a whole: its writes are recorded again.
  func endReconciling(_ unrecorded: UnrecordedTable, _ result: ReconciledRows) throws {
    try connection.transaction {
      if result.recorded + result.fetched > 0 {
        try note(
          "reconciled",
          "\(unrecorded.table): \(result.recorded) rows were recorded as edits of this device, and "
            + "\(result.fetched) were fetched from the server; `ferry conflicts` lists values that "
            + "other devices had changed")
      }
      // Otherwise the next sync compares it once more.
      guard result.left == 0, try unrecordedTables().contains(unrecorded) else { return }
      try connection.run(
        "UPDATE ferry_tables SET since = NULL, remade = 0, recorded = 0 WHERE name = ? AND fault IS NULL",
        unrecorded.table)
      guard connection.changes > 0 else { return }
      try connection.run("UPDATE ferry_columns SET is_new = 0 WHERE tbl = ?", unrecorded.table)
    }
  }

  // MARK: Keeping values readable

  /// Keeps unrecorded values of rows that deferred changes of others are about to replace.
  func keepOverwritten(in table: TableSchema) throws {
    guard let unrecorded = try unrecordedTables().first(where: { $0.table == table.name }) else {
      return
    }
    var place = KeptPlace.start
    while let next = try kept.next(.ofTable(table.name), after: place) {
      place = KeptPlace(next.change)
      try keepOverwritten(by: next.change, in: unrecorded)
    }
  }

  /// Keeps unrecorded values of a row that a change of others is about to replace. Nobody knows which
  /// values of such a row are old ones that this device had received.
  func keepOverwritten(by change: Change, in unrecorded: UnrecordedTable) throws {
    let (key, there) = (change.key, change.state)
    let isDeleted = there.deleted != nil && !there.isAlive
    if isDeleted && !unrecorded.isRemade { return }
    let table = try schema(of: key.table)
    let names = table.columns.map(\.name).filter {
      unrecorded.isRemade || unrecorded.newColumns.contains($0)
    }
    guard !names.isEmpty, case .updates(let pending) = try pendingWrites(of: key) else { return }
    let row = try connection.first(
      "SELECT \(names.map { table.column($0).read() }.joined(separator: ", ")) "
        + "FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))", key.record
    ) { row in
      names.enumerated().map { Column($1, row.value(Int32($0))) }
    }
    let lost = (row ?? []).filter { column in
      guard column.value != .null, !pending.contains(column.name) else { return false }
      if isDeleted { return true }
      return there.columns.contains { $0.name == column.name && $0.value != column.value }
    }
    try keepLost(lost, of: key, there: there, isDeleted && row != nil)
  }

  /// Keeps values of a row that the server's version replaces, as conflicts: the user can read them
  /// and choose them again.
  ///
  /// - Parameter isRowLost: whether the row itself is deleted.
  func keepLost(
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
      try note(conflict, of: operation, on: key)
    }
    guard isRowLost else { return }
    let conflict = Conflict(
      column: nil, lost: .null, loser: loser, winner: there?.deleted?.stamp ?? unknown)
    try note(conflict, of: operation, on: key)
  }
}

/// A tracked table that cannot sync in its present form.
public struct TableFault: Sendable, Equatable {
  /// The table.
  public var table: Name
  /// The reason, such as "there is no such table".
  public var reason: String
}
