import FerryProtocol
import FerrySQLite

/// The undo of this device's own operations: the driver of ``UndoDecision``.
struct UndoSteps {
  let queue: OperationTable
  let chain: PacketChain
  let refreshes: RefreshTable
  let rows: RecordRows
  let settings: ServerSettings
  let capture: CaptureContext
  let spaces: FileSpaces

  private var connection: SQLiteConnection { queue.connection }
  private var tables: LocalTables { rows.tables }
  private var formerParents: FormerParents {
    get throws {
      FormerParents(
        rows: rows, former: FormerRows(queue: queue), device: try settings.identity().device)
    }
  }

  /// Undoes an operation of this device: values that nothing has changed since become the former values
  /// again. If the server accepts no operation, the undone one leaves the queue; otherwise the undo is an
  /// ordinary operation. Returns the number of undone columns.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the operation is not here (any more);
  ///   ``ReplicaError/cannotAnswer(_:advice:)`` if it has no value left to undo.
  func undo(_ id: OperationID) throws -> Int {
    try spaces.write { _ in try revert(id) }
  }

  /// Undoes an operation within an open transaction.
  func revert(_ id: OperationID) throws -> Int {
    guard let own = try queue.own(id) else {
      throw ReplicaError.notFound(.operation("\(id)"))
    }
    return try revert(own)
  }

  private func revert(_ own: OwnOperation) throws -> Int {
    let (operation, key) = (own.operation, own.operation.key)
    let plan = try tables.plainPlan(for: key.table)
    let present = operation.columns.map(\.name).filter(plan.known.contains)
    let decision = UndoDecision(own, on: try rows.row(key, plan.table, present))
    if let order = try queue.order(of: own.operation.id),
      decision.removesOperation(at: try place(of: key, at: order, decision))
    {
      return try remove(own, at: order, decision, plan)
    }
    switch decision {
    case .restore, .set, .delete: break
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
    if let columns = decision.written { try formerParents.insert(for: key, columns) }
    try write(decision, to: key, plan)
    return decision.columnCount(of: operation)
  }

  /// Writes the former values to the record's row.
  private func write(_ decision: UndoDecision, to key: RecordKey, _ plan: ApplyPlan) throws {
    try tables.foreignKeys.naming(key) {
      switch decision {
      case .restore(let columns):
        try plan.upsert(key.record, plan.unstamped(columns), isWhole: true, kept: [])
      case .set(let former): _ = try plan.update(key.record, plan.unstamped(former))
      case .delete: try plan.delete(key.record)
      case .replaced, .gone, .batch: break
      }
    }
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

  private func packet(at order: Int64) throws -> FrozenPacket? {
    try PacketTable(connection: connection).current().first { $0.orders.contains(order) }
  }

  private func place(
    of key: RecordKey, at order: Int64, _ decision: UndoDecision
  ) throws -> UndoDecision.Place {
    let isAccepted =
      try settings.writesRefused() == nil || tables.tracked.uploads().contains(key.table)
    guard !isAccepted, let plan = try tables.plan(for: key.table) else {
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
      lacksParents: try decision.written.map {
        try !formerParents.missing(for: key, $0).isEmpty
      }
        ?? false)
  }

  /// Removes an operation from the queue, with the values that it wrote. The next pull fetches the record, or
  /// those of a batch.
  private func remove(
    _ own: OwnOperation, at order: Int64, _ decision: UndoDecision, _ plan: ApplyPlan
  ) throws -> Int {
    let key = own.operation.key
    if let packet = try packet(at: order) { try chain.reopenPackets(from: packet) }
    return try capture.during(.applying) {
      capture.beginApplying(key, decision == .delete ? .delete : .values)
      try write(decision, to: key, plan)
      try queue.forget(order...order)
      if decision == .batch { try queue.releaseBatches() } else { try refreshes.add([key]) }
      return decision.columnCount(of: own.operation)
    }
  }
}
