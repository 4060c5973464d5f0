import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The user's answers to entries of the quarantine (SPEC.md §12).
struct QuarantineAnswers {
  let file: ReplicaFile

  private var connection: SQLiteConnection { file.connection }
  private var quarantine: QuarantineTable { file.quarantine }

  /// Deletes an entry. Returns true if it existed.
  func discard(_ number: Int64) throws -> Bool {
    try connection.transaction {
      let isFound = try quarantine.remove(number)
      if isFound { try file.log("discarded", "entry \(number) of the quarantine") }
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
    _ = try file.write { _ in
      try connection.deferForeignKeys()
      for operation in entry.operations {
        let isRefused = entry.refused.contains(operation.id)
        let changes = try isRefused ? edits(changes, of: operation) : []
        if try file.uploads.requeue(operation, of: number, changing: changes) { continue }
        try replay(operation.changing(changes), of: number)
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
    let plan = try file.tables.plainPlan(for: table)
    let edits = plan.table.spaceColumns(changes)
    try plan.checkKnown(edits)
    return edits
  }

  /// Writes the content of an operation to the table, as a user's write.
  private func replay(
    _ operation: SyncOperation, of entry: Int64
  ) throws {
    if let batch = operation.batch {
      return try file.batches.record(batch, operation.columns, in: operation.key.table)
    }
    let plan = try file.tables.plainPlan(for: operation.key.table)
    let columns = plan.unstamped(operation.columns)
    switch operation.kind {
    case .insert: try plan.upsert(operation.key.record, columns, isWhole: true, kept: [])
    case .update:
      let sums = try columns.map { try summed($0, operation) }
      guard try columns.isEmpty || plan.update(operation.key.record, sums) else {
        throw ReplicaError.cannotRetry(
          entry: entry, "\(operation.key.table) \(operation.key.record) does not exist any more")
      }
    case .delete: try plan.delete(operation.key.record)
    case .batch: break
    }
  }

  /// Returns an increment as the sum in the row after it.
  private func summed(_ column: ColumnState, _ operation: SyncOperation) throws -> ColumnState {
    guard operation.increments.contains(column.name), case .integer(let added) = column.value
    else { return column }
    var sum = column
    if case .integer(let value) = try file.rows.value(of: column.name, in: operation.key) {
      sum.value = .integer(value &+ added)
    }
    return sum
  }
}

extension SyncOperation {
  /// Returns the operation with other values for the columns, and with more columns.
  fileprivate func changing(_ changes: [Column]) -> SyncOperation {
    guard kind != .delete else { return self }
    var changed = self
    changed.columns.removeAll { column in changes.contains { $0.name == column.name } }
    changed.columns += changes
    return changed
  }
}
