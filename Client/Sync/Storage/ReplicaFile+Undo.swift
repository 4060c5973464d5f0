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
      operation: try queue.pending(row).operation, former: try queue.formerColumns(row, at: 9),
      isConfirmed: OperationState(rawValue: row.int64(11)) == .confirmed)
  }

  /// Undoes an operation of this device with an ordinary operation: values that nothing has changed
  /// since become the former values again. Returns the number of undone columns.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the operation is not here (any more);
  ///   ``ReplicaError/cannotAnswer(_:advice:)`` if it has no value left to undo.
  func undo(_ id: OperationID) throws -> Int {
    try write { _ in try takeBack(id) }
  }

  /// Undoes an operation within an open transaction.
  func takeBack(_ id: OperationID) throws -> Int {
    let own = try connection.first(
      "\(Self.select) WHERE state <= 1 AND id = ? ORDER BY state LIMIT 1", id.value
    ) {
      try ownOperation($0)
    }
    guard let own else {
      throw ReplicaError.notFound(.operation("\(id)"))
    }
    return try takeBack(own)
  }

  private func takeBack(_ own: OwnOperation) throws -> Int {
    let (operation, key) = (own.operation, own.operation.key)
    let plan = ApplyPlan(
      table: try schema(of: key.table), rules: .standard, connection: connection)
    let present = operation.columns.map(\.name).filter(plan.known.contains)
    switch UndoDecision(own, on: try row(key, plan.table, present)) {
    case .restore(let columns):
      try returnParents(of: key, columns)
      try plan.upsert(key.record, plan.unstamped(columns), isWhole: true, kept: [])
    case .delete: try plan.delete(key.record)
    case .set(let former):
      try returnParents(of: key, former)
      _ = try plan.update(key.record, plan.unstamped(former))
      return former.count
    case .replaced:
      throw ReplicaError.cannotAnswer(
        "later changes of \(key.table) \(key.record) replaced the operation's values",
        advice: "write the values that you want")
    case .gone:
      throw ReplicaError.cannotAnswer(
        "\(key.table) \(key.record) does not exist any more",
        advice: "the conflicts list its lost values; answer them")
    case .batch:
      throw ReplicaError.cannotAnswer(
        "the replica has no former values of a batch", advice: "make another batch")
    }
    return operation.columns.count
  }
}
