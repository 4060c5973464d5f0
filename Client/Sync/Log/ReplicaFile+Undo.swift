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

  /// Returns own operations with this beginning of the identifier, newest first.
  func ownOperations(beginningWith prefix: UniqueIDPrefix, limit: Int) throws -> [OwnOperation] {
    try connection.rows(
      "\(Self.select) WHERE state <= 1 AND id BETWEEN ? AND ? ORDER BY seq DESC LIMIT ?",
      prefix.first, prefix.last, limit
    ) { try ownOperation($0) }
  }

  func hasOperation(_ id: OperationID) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_operations WHERE state <= 1 AND id = ?", id.value)
  }

  /// Returns the identifiers of all own operations in the file.
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

  /// Undoes an operation of this device: values that nothing has changed since become the former values
  /// again. If the server accepts no operation, the undone one leaves the queue; otherwise the undo is an
  /// ordinary operation. Returns the number of undone columns.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the operation is not here (any more);
  ///   ``ReplicaError/cannotAnswer(_:advice:)`` if it has no value left to undo.
  func undo(_ id: OperationID) throws -> Int {
    try write { _ in try revert(id) }
  }

  /// Undoes an operation within an open transaction.
  func revert(_ id: OperationID) throws -> Int {
    let own = try connection.first(
      "\(Self.select) WHERE state <= 1 AND id = ? ORDER BY state LIMIT 1", id.value
    ) {
      try ownOperation($0)
    }
    guard let own else {
      throw ReplicaError.notFound(.operation("\(id)"))
    }
    return try revert(own)
  }

  private func revert(_ own: OwnOperation) throws -> Int {
    let (operation, key) = (own.operation, own.operation.key)
    let plan = ApplyPlan(
      table: try schema(of: key.table), rules: .standard, connection: connection)
    let present = operation.columns.map(\.name).filter(plan.known.contains)
    let decision = UndoDecision(own, on: try row(key, plan.table, present))
    if let order = try pendingOrder(of: own.operation.id),
      decision.removesOperation(at: try place(of: key, at: order, decision))
    {
      return try remove(own, at: order, decision, plan)
    }
    switch decision {
    case .restore(let columns):
      try returnParents(of: key, columns)
      try namingForeignKeys(of: key) {
        try plan.upsert(key.record, plan.unstamped(columns), isWhole: true, kept: [])
      }
    case .delete: try namingForeignKeys(of: key) { try plan.delete(key.record) }
    case .set(let former):
      try returnParents(of: key, former)
      _ = try namingForeignKeys(of: key) { try plan.update(key.record, plan.unstamped(former)) }
      return former.count
    case .replaced:
      throw ReplicaError.cannotAnswer(
        "later changes of \(key.table) \(key.record) replaced the operation's values",
        advice: "write the values that you want")
    case .gone:
      throw ReplicaError.cannotAnswer(
        "\(key.table) \(key.record) does not exist any more", advice: try adviceForDeleted(key))
    case .batch:
      throw ReplicaError.cannotAnswer(
        "the replica has no former values of a batch", advice: "make another batch")
    }
    return operation.columns.count
  }

  /// Returns the way back to a deleted record.
  private func adviceForDeleted(_ key: RecordKey) throws -> String {
    let isLost = try connection.exists(
      "SELECT 1 FROM ferry_conflicts WHERE record = ? AND tbl = ? AND resolved IS NULL", key.record,
      key.table)
    if isLost { return "the conflicts list its lost values; answer them" }
    if let deletion = try queue.newestDelete(of: key) {
      return "this device deleted it; undo the delete first, operation \(deletion.id)"
    }
    return "insert it again if you need it"
  }

  // MARK: Operations that the server does not accept

  private func pendingOrder(of id: OperationID) throws -> Int64? {
    try connection.first("SELECT seq FROM ferry_pending WHERE id = ?", id.value) { $0.int64(0) }
  }

  private func packet(at order: Int64) throws -> FrozenPacket? {
    try packets.current().first { $0.orders.contains(order) }
  }

  private func place(
    of key: RecordKey, at order: Int64, _ decision: UndoDecision
  ) throws -> UndoDecision.Place {
    let isAccepted = try writesRefused() == nil || tracked.uploads().contains(key.table)
    guard !isAccepted, let plan = try plan(for: key.table) else {
      return UndoDecision.Place(isAccepted: true)
    }
    let isSent = try packet(at: order).map { $0.state != .frozen } ?? false
    let hasLater = try connection.exists(
      """
      SELECT 1 FROM ferry_pending
      WHERE seq > ? AND tbl = ? AND (record = ? OR kind = 'batch') LIMIT 1
      """, order, key.table, key.record)
    return UndoDecision.Place(
      isSent: isSent, hasLater: hasLater,
      concernsOthers: try plan.concernsOthers(key.record), hasFollowers: !plan.followers.isEmpty,
      lacksParents: try decision.written.map { try !missingParents(of: key, $0).isEmpty } ?? false)
  }

  /// Removes an operation from the queue, with the values that it wrote. The next pull fetches the record, or
  /// those of a batch.
  private func remove(
    _ own: OwnOperation, at order: Int64, _ decision: UndoDecision, _ plan: ApplyPlan
  ) throws -> Int {
    let key = own.operation.key
    if let packet = try packet(at: order) { try chain.reopenPackets(from: packet) }
    let before = capture.mode
    defer { capture.mode = before }
    capture.mode = .applying
    capture.beginApplying(key, decision == .delete ? .delete : .values)
    var count = own.operation.columns.count
    switch decision {
    case .restore(let columns):
      try namingForeignKeys(of: key) {
        try plan.upsert(key.record, plan.unstamped(columns), isWhole: true, kept: [])
      }
    case .set(let former):
      _ = try namingForeignKeys(of: key) { try plan.update(key.record, plan.unstamped(former)) }
      count = former.count
    case .delete: try namingForeignKeys(of: key) { try plan.delete(key.record) }
    case .replaced, .gone, .batch: break
    }
    try queue.forget(order...order)
    if decision == .batch { try queue.releaseBatches() } else { try refreshes.add([key]) }
    return count
  }
}
