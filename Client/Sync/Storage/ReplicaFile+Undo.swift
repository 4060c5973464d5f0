import FerryProtocol
import FerrySQLite

/// This device's own operations, as far as they are still here, and how to undo one.
extension ReplicaFile {
  private static let select = """
    SELECT seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks, state
    FROM ferry_operations
    """

  /// Returns own operations, newest first; confirmed ones as long as the archive keeps them.
  func ownOperations(limit: Int) throws -> [OwnOperation] {
    try connection.rows("\(Self.select) WHERE state <= 1 ORDER BY seq DESC LIMIT ?", limit) {
      try ownOperation($0)
    }
  }

  /// Returns own operations whose identifier has this beginning, newest first.
  func ownOperations(beginningWith prefix: UniqueIDPrefix, limit: Int) throws -> [OwnOperation] {
    try connection.rows(
      "\(Self.select) WHERE state <= 1 AND id BETWEEN ? AND ? ORDER BY seq DESC LIMIT ?",
      prefix.first, prefix.last, limit
    ) { try ownOperation($0) }
  }

  /// Returns the identifiers of all own operations that are kept.
  func ownOperationIDs() throws -> UniqueIDAbbreviations {
    UniqueIDAbbreviations(
      try connection.rows("SELECT id FROM ferry_operations WHERE state <= 1") {
        $0.uniqueID(0) ?? UniqueID(high: 0, low: 0)
      })
  }

  private func ownOperation(_ row: SQLiteStatement) throws -> OwnOperation {
    OwnOperation(
      operation: try pending(row).operation, former: try formerColumns(row, at: 9),
      isConfirmed: OperationState(rawValue: row.int64(11)) == .confirmed)
  }

  /// Undoes an operation of this device with an ordinary operation: values that nothing has changed
  /// since become the former values again. Returns the number of undone columns.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the operation is not here (any more), or has no
  ///   value left to undo.
  func undo(_ id: OperationID) throws -> Int {
    let own = try connection.first(
      "\(Self.select) WHERE state <= 1 AND id = ? ORDER BY state LIMIT 1", id.value
    ) {
      try ownOperation($0)
    }
    guard let own else {
      throw ReplicaError.notFound("this device's history has no operation \(id)")
    }
    return try write { _ in try takeBack(own) }
  }

  private func takeBack(_ own: OwnOperation) throws -> Int {
    let operation = own.operation
    let key = operation.key
    let table = try schema(of: key.table)
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
    switch operation.kind {
    case .batch:
      throw ReplicaError.notFound("the replica has no former values of a batch: make another batch")
    case .delete:
      guard try !plan.exists(key.record) else { throw changedSince(key) }
      let columns = plan.unstamped(operation.columns)
      try plan.upsert(key.record, columns, isWhole: true, kept: [])
      return operation.columns.count
    case .insert:
      for column in operation.columns where plan.known.contains(column.name) {
        guard try value(of: column.name, in: key) == column.value else { throw changedSince(key) }
      }
      guard try plan.exists(key.record) else { throw changedSince(key) }
      try plan.delete(key.record)
      return operation.columns.count
    case .update:
      let former = try standing(own, plan)
      guard !former.isEmpty else { throw changedSince(key) }
      _ = try plan.update(key.record, plan.unstamped(former))
      return former.count
    }
  }

  /// Returns the former values of the columns that still have the operation's values.
  private func standing(_ own: OwnOperation, _ plan: ApplyPlan) throws -> [Column] {
    let operation = own.operation
    return try operation.columns.compactMap { column -> Column? in
      guard plan.known.contains(column.name),
        let current = try value(of: column.name, in: operation.key)
      else { return nil }
      if operation.increments.contains(column.name) {
        guard case .integer(let sum) = current, case .integer(let added) = column.value else {
          return nil
        }
        return Column(column.name, .integer(sum &- added))
      }
      guard current == column.value else { return nil }
      return own.former.first { $0.name == column.name }
    }
  }

  private func changedSince(_ key: RecordKey) -> ReplicaError {
    .notFound("later changes of \(key.table) \(key.record) replaced the operation's values")
  }
}
