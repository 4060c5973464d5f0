import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Operations the server can never apply. They leave the queue with their transactions and all that
/// depends on them, so everything else continues. After the next pull the records show the server's
/// values; the rejected operations stay readable here.
extension ReplicaFile {
  var quarantine: QuarantineTable { QuarantineTable(connection: connection, queue: queue) }

  /// Removes a packet's rejected operations from the queue, and opens the packets from this one on
  /// again. Returns the number of removed operations.
  func quarantine(packet number: Int64, _ refusals: [Refusal]) throws -> Int {
    try connection.transaction {
      guard let row = try packets.packet(number) else { return 0 }
      // An answer may name an operation of an earlier packet, too.
      let first = try refusals.compactMap { try openPacket(of: $0.operation) }
        .min { $0.number < $1.number }
      try chain.reopenPackets(from: first.map { $0.number < row.number ? $0 : row } ?? row)
      return try quarantine(refusals, in: row.orders)
    }
  }

  /// Returns the packet with an operation, if it is not confirmed.
  private func openPacket(of operation: OperationID) throws -> FrozenPacket? {
    try connection.first(
      """
      SELECT number FROM ferry_pending JOIN ferry_current_packets ON seq BETWEEN from_order AND to_order
      WHERE id = ? AND state <> 'acknowledged'
      """, operation
    ) { $0.int64(0) }.flatMap { try packets.packet($0) }
  }

  /// Removes a whole packet from the queue, if the server named no operation in it: the packet's
  /// only transaction cannot be sent.
  func quarantine(packet number: Int64, _ problem: Problem) throws -> Int {
    try quarantine(
      packet: number, code: RefusalCode(rawValue: problem.code.rawValue), detail: problem.detail)
  }

  /// Removes a whole packet from the queue, for a given reason.
  func quarantine(packet number: Int64, code: RefusalCode, detail: String) throws -> Int {
    let operations = try packets.packet(number).map {
      try self.operations.packet($0, of: identity().device).operations
    }
    guard let first = operations?.first else { return 0 }
    let refusal = Refusal(
      operation: first.id, code: code, detail: detail, table: first.key.table,
      record: first.key.record)
    return try quarantine(packet: number, [refusal])
  }

  /// Reopens a rejected packet, to be cut smaller. The server then names the rejected operation.
  func reopen(packet number: Int64) throws {
    try connection.transaction {
      guard let row = try packets.packet(number) else { return }
      try chain.reopenPackets(from: row)
    }
  }

  private func quarantine(_ refusals: [Refusal], in orders: ClosedRange<Int64>) throws -> Int {
    let refusals = try refusals.map { try naming(batchOf: $0) }
    var spread = RefusalSpread(refused: try refusals.map { try places(of: $0, in: orders) })
    try spread.spread(over: forEachPending)
    try refreshes.add(spread.keys)
    try operations.rememberClock()
    let leaving = Dictionary(grouping: spread.leaving.keys, by: { spread.leaving[$0] ?? 0 })
    for (number, orders) in leaving.sorted(by: { $0.key < $1.key }) {
      let refusal = refusals[number]
      try quarantine.add(orders.sorted(), refusal, now: wallClock())
      try log(
        "quarantined",
        "\(refusal.table) \(refusal.record.isEmpty ? "(batch)" : refusal.record): "
          + "\(refusal.code): \(refusal.detail) (\(orders.count.counted("operation")))")
    }
    try queue.releaseBatches()
    return spread.leaving.count
  }

  /// Returns a refusal of a batch as one of no record: a server may name the record for which it
  /// refuses the batch.
  private func naming(batchOf refusal: Refusal) throws -> Refusal {
    let isBatch = try connection.exists(
      "SELECT 1 FROM ferry_pending WHERE record = '' AND tbl = ? AND id = ? AND kind = 'batch'",
      refusal.table, refusal.operation)
    guard isBatch else { return refusal }
    return Refusal(
      operation: refusal.operation, code: refusal.code, detail: refusal.detail,
      table: refusal.table, record: "", holder: refusal.holder)
  }

  /// Returns the places of a rejected operation, and of others merged with it. A batch is
  /// never merged.
  private func places(of refusal: Refusal, in orders: ClosedRange<Int64>) throws -> [Int64] {
    try connection.rows(
      """
      SELECT seq FROM ferry_pending
      WHERE record = ?1 AND tbl = ?2
        AND (id = ?3 OR kind <> 'batch' AND seq BETWEEN ?4 AND ?5)
      """, refusal.record, refusal.table, refusal.operation, orders.lowerBound, orders.upperBound
    ) { $0.int64(0) }
  }

  /// Passes all pending operations, in order, with the references of their rows.
  private func forEachPending(_ body: (RefusalSpread.Operation) -> Void) throws {
    let links = Dictionary(grouping: try foreignKeyLinks(), by: \.child)
    try connection.forEach("\(OperationTable.selection) ORDER BY seq") { row in
      guard let kind = OperationKind(rawValue: row.text(6)), let id = row.uniqueID(1) else {
        return
      }
      var operation = RefusalSpread.Operation(
        order: row.int64(0), group: row.int64(2),
        key: RecordKey(table: row.name(4), record: row.name(5)), kind: kind,
        isReupload: id.timestamp.milliseconds < 2)
      let links = links[operation.key.table] ?? []
      if kind == .batch {
        let batch = try queue.pending(row).operation
        operation.isBatchDelete = batch.batch?.effect == .delete
        operation.formerParents = Set(links.filter { $0.mayLose(by: batch) }.map(\.parent))
      } else if !links.isEmpty {
        let columns = try queue.formerColumns(row, at: 7)
        let former = kind == .update ? try queue.formerColumns(row, at: 9) : columns
        let record = operation.key.record
        if kind != .delete {
          operation.references = links.compactMap { $0.parent(of: record, columns) }
        }
        if kind != .insert {
          operation.formerReferences = links.compactMap { $0.parent(of: record, former) }
        }
      }
      body(operation)
    }
  }

  // MARK: Answering

  /// Deletes an entry. Returns true if it existed.
  func discardQuarantined(_ number: Int64) throws -> Bool {
    try connection.transaction {
      let isFound = try quarantine.remove(number)
      if isFound { try log("discarded", "entry \(number) of the quarantine") }
      return isFound
    }
  }

  /// Writes an entry's operations to the tables again, as the user would, in one transaction.
  ///
  /// - Parameter changes: values to replace rejected ones.
  /// - Throws: ``ReplicaError/notFound(_:)``; ``ReplicaError/cannotRetry(entry:_:)`` if a record is
  ///   gone; ``ReplicaError/cannotAnswer(_:advice:)`` if the changes do not fit the operation;
  ///   ``ReplicaError/database(_:code:)`` if the tables reject them. Then the entry stays.
  func retryQuarantined(_ number: Int64, changing changes: [Column]) throws {
    guard let entry = try quarantine.entry(number) else {
      throw ReplicaError.notFound(.quarantineEntry(number))
    }
    _ = try write { database in
      try connection.deferForeignKeys()
      for operation in entry.operations {
        let isRefused = entry.refused.contains(operation.id)
        let changes = try isRefused ? edits(changes, of: operation) : []
        if try requeue(operation, of: number, changing: changes) { continue }
        try replay(operation.changing(changes), of: number, in: database)
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
    let edits = try named(changes, in: table)
    try checkKnown(edits, plainPlan(for: table))
    return edits
  }

  /// Returns values of the user's with the names in the space of their columns. The user may know a
  /// column by either name; the one in this file counts first.
  func named(_ columns: [Column], in table: Name) throws -> [Column] {
    guard let schema = try? schema(of: table) else { return columns }
    return columns.map { column in
      let info = schema.columns.first { $0.local == column.name }
      return Column(info?.name ?? column.name, column.value)
    }
  }

  /// Writes the content of an operation to the table, as a user's write.
  private func replay(
    _ operation: SyncOperation, of entry: Int64, in database: Database
  ) throws {
    if let batch = operation.batch {
      return try recordBatch(batch, operation.columns, in: operation.key.table)
    }
    let table = try schema(of: operation.key.table)
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
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
    if case .integer(let value) = try value(of: column.name, in: operation.key) {
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
