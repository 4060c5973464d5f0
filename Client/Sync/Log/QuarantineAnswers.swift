import FerryProtocol
import FerrySQLite

/// The user's answers to entries of the quarantine (SPEC.md §12).
struct QuarantineAnswers {
  let quarantine: QuarantineTable
  let failedUploads: FailedUploads
  let operations: OperationLog
  let batches: BatchWriter
  let rows: RecordRows
  let spaces: FileSpaces

  private var connection: SQLiteConnection { quarantine.connection }
  private var tables: LocalTables { rows.tables }

  /// Deletes an entry. Returns true if it existed.
  func discard(_ number: Int64) throws -> Bool {
    try connection.transaction {
      let isFound = try quarantine.remove(number)
      if isFound { try tables.log("discarded", "entry \(number) of the quarantine") }
      return isFound
    }
  }

  /// Writes an entry's operations to the tables again, as the user would, in one transaction.
  ///
  /// - Parameter changes: values to replace rejected ones.
  /// - Throws: ``ReplicaError/notFound(_:)``; ``ReplicaError/cannotRetry(entry:_:)`` if a record is
  ///   gone; ``ReplicaError/cannotAnswer(_:advice:)`` if the changes do not fit the operation;
  ///   ``ReplicaError/database(_:code:)`` if the tables reject them. Then the entry stays.
  func retry(_ number: Int64, changing changes: [Column]) throws {
    guard let entry = try quarantine.entry(number) else {
      throw ReplicaError.notFound(.quarantineEntry(number))
    }
    _ = try spaces.write { _ in
      try connection.deferForeignKeys()
      let capture = operations.queue.capture
      defer { capture.reason = nil }
      for operation in entry.operations {
        capture.reason = operation.reason
        let isRefused = entry.refused.contains(operation.id)
        let changes = try isRefused ? edits(changes, of: operation) : []
        if try requeue(operation, of: number, changing: changes) { continue }
        try replay(operation, changing: changes, of: number)
      }
      try quarantine.remove(number)
    }
  }

  /// Returns the values that replace some of a rejected operation, with the names in the space.
  ///
  /// - Throws: ``ReplicaError/cannotAnswer(_:advice:)`` if the operation has no values, or the table
  ///   lacks a column.
  private func edits(_ changes: [Column], of operation: SyncOperation) throws -> [Column] {
    if changes.isEmpty { return [] }
    let table = operation.key.table
    guard operation.kind != .delete, operation.batch?.effect != .delete else {
      throw ReplicaError.cannotAnswer(
        "the entry deletes records of \(table), and has no values to change",
        advice: "retry the entry as it is, or discard it")
    }
    let plan = try tables.plainPlan(for: table)
    let edits = plan.table.spaceColumns(changes)
    try plan.checkKnown(edits)
    return edits
  }

  /// Writes the content of an operation to the table, as a user's write.
  private func replay(
    _ operation: SyncOperation, changing changes: [Column], of entry: Int64
  ) throws {
    let key = operation.key
    if let batch = operation.batch {
      let columns = operation.repeated(changing: changes) { _ in nil }
      return try batches.record(batch, columns, in: key.table)
    }
    let plan = try tables.plainPlan(for: key.table)
    let columns = try operation.repeated(changing: changes) { name in
      plan.known.contains(name) ? try rows.value(of: name, in: key) : nil
    }
    let states = plan.unstamped(columns)
    switch operation.kind {
    case .insert: try plan.upsert(key.record, states, isWhole: true, kept: [])
    case .update:
      guard try states.isEmpty || plan.update(key.record, states) else {
        throw ReplicaError.cannotRetry(
          entry: entry, "\(key.table) \(key.record) does not exist any more")
      }
    case .delete: try plan.delete(key.record)
    case .batch: break
    }
  }
  /// Sends a rejected operation of an upload-only table again unchanged: the row is still there.
  /// Changes are written to the row and recorded. Returns `false` for an operation to write to the
  /// table again.
  private func requeue(
    _ operation: SyncOperation, of entry: Int64, changing changes: [Column]
  ) throws -> Bool {
    let table = operation.key.table
    guard operation.batch == nil, try tables.tracked.uploads().contains(table),
      let order = try quarantine.order(of: operation.id, in: entry)
    else { return false }
    try operations.rememberClock()
    try failedUploads.requeue(order, .present)
    guard !changes.isEmpty, operation.kind != .delete else { return true }
    let plan = try tables.plainPlan(for: table)
    let known = changes.filter { plan.known.contains($0.name) }
    if !known.isEmpty { _ = try plan.update(operation.key.record, plan.unstamped(known)) }
    return true
  }
}
