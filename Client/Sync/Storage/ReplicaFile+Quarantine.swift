import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Operations that the server can never apply. They leave the queue with their transactions and all
/// that depends on them, so that everything else continues. After the next pull the records show
/// the server's values; the rejected operations stay readable here.
extension ReplicaFile {
  /// Removes a packet's rejected operations from the queue, and opens the packets from this one on
  /// again. Returns the number of removed operations.
  func quarantine(packet number: Int64, _ refusals: [Refusal]) throws -> Int {
    try connection.transaction {
      guard let row = try packets.packet(number) else { return 0 }
      // An answer may name an operation of an earlier packet, too.
      let first = try refusals.compactMap { try openPacket(of: $0.operation) }
        .min { $0.number < $1.number }
      try reopenPackets(from: first.map { $0.number < row.number ? $0 : row } ?? row)
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

  /// Removes a whole packet for which the server named no operation from the queue: its only
  /// transaction cannot be sent.
  func quarantine(packet number: Int64, _ problem: Problem) throws -> Int {
    try quarantine(
      packet: number, code: RefusalCode(rawValue: problem.code.rawValue), detail: problem.detail)
  }

  /// Removes a whole packet from the queue, for a given reason.
  func quarantine(packet number: Int64, code: RefusalCode, detail: String) throws -> Int {
    let operations = try packets.packet(number).map { try packet($0).operations }
    guard let first = operations?.first else { return 0 }
    let refusal = Refusal(
      operation: first.id, code: code, detail: detail, table: first.key.table,
      record: first.key.record)
    return try quarantine(packet: number, [refusal])
  }

  /// Opens a rejected packet again, to be cut smaller. The server then names the operation that it
  /// rejects.
  func reopen(packet number: Int64) throws {
    try connection.transaction {
      guard let row = try packets.packet(number) else { return }
      try reopenPackets(from: row)
    }
  }

  /// Returns the number of a packet's transactions.
  func transactionCount(ofPacket number: Int64) throws -> Int {
    try connection.count(
      """
      SELECT count(DISTINCT grp) FROM ferry_pending JOIN ferry_current_packets
      ON seq BETWEEN from_order AND to_order WHERE number = \(number)
      """)
  }

  private func quarantine(_ refusals: [Refusal], in orders: ClosedRange<Int64>) throws -> Int {
    var spread = RefusalSpread(refused: try refusals.map { try places(of: $0, in: orders) })
    try spread.spread(over: forEachPending)
    try refresh(spread.keys)
    try rememberClock()
    let leaving = Dictionary(grouping: spread.leaving.keys, by: { spread.leaving[$0] ?? 0 })
    for (number, orders) in leaving.sorted(by: { $0.key < $1.key }) {
      let refusal = refusals[number]
      try move(orders.sorted(), refusal)
      try note(
        "quarantined",
        "\(refusal.table) \(refusal.record): \(refusal.code): \(refusal.detail) "
          + "(\(orders.count) operations)")
    }
    return spread.leaving.count
  }

  /// Returns the places of a refused operation, and of others that it was merged with.
  private func places(of refusal: Refusal, in orders: ClosedRange<Int64>) throws -> [Int64] {
    try connection.rows(
      """
      SELECT seq FROM ferry_pending
      WHERE record = ?1 AND tbl = ?2 AND (id = ?3 OR seq BETWEEN ?4 AND ?5)
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
      if kind != .batch, let links = links[operation.key.table] {
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

  /// Moves operations to a new entry of the quarantine.
  private func move(_ orders: [Int64], _ refusal: Refusal) throws {
    let entry = try connection.count("SELECT coalesce(max(entry), 0) + 1 FROM ferry_failures")
    let note = try connection.statement(
      """
      INSERT INTO ferry_failures(seq, entry, code, detail, holder, at)
      SELECT seq, ?2, iif(record = ?3 AND tbl = ?4, ?5, NULL),
        iif(record = ?3 AND tbl = ?4, ?6, NULL), iif(record = ?3 AND tbl = ?4, ?7, NULL), ?8
      FROM ferry_operations WHERE seq = ?1
      """)
    let move = try connection.statement("UPDATE ferry_operations SET state = 3 WHERE seq = ?")
    for order in orders {
      try note.run(
        order, entry, refusal.record, refusal.table, refusal.code.rawValue, refusal.detail,
        refusal.holder, wallClock())
      try move.run(order)
    }
  }

  // MARK: Looking and answering

  /// Returns the number of entries.
  func quarantinedCount() throws -> Int {
    try connection.count("SELECT count(*) FROM ferry_quarantine")
  }

  /// Returns the rejected operations, oldest first.
  func quarantine(limit: Int) throws -> [QuarantineEntry] {
    try connection.rows(
      "SELECT DISTINCT entry FROM ferry_quarantine ORDER BY entry LIMIT ?", limit
    ) { $0.int64(0) }.compactMap { try quarantineEntry($0) }
  }

  /// Returns one entry with its dependent operations; `nil` if there is none of that number.
  func quarantineEntry(_ number: Int64) throws -> QuarantineEntry? {
    var entry = QuarantineEntry(number: number)
    try connection.forEach(
      """
      SELECT seq, id, grp, 0, tbl, record, kind, data, 0, was, marks, code, detail, holder, at
      FROM ferry_quarantine WHERE entry = ? ORDER BY seq
      """, number
    ) { row in
      entry.operations.append(try queue.pending(row).operation)
      guard let code = row.optionalText(11) else { return }
      entry.code = RefusalCode(rawValue: code)
      entry.detail = row.text(12)
      entry.holder = row.optionalName(13)
      entry.refusedAt = row.int64(14)
      entry.refused.append(OperationID(row.uniqueID(1) ?? UniqueID(high: 0, low: 0)))
    }
    return entry.operations.isEmpty ? nil : entry
  }

  /// Deletes an entry. Returns whether it existed.
  func discardQuarantined(_ number: Int64) throws -> Bool {
    try connection.transaction {
      let isFound = try removeEntry(number)
      if isFound { try note("discarded", "entry \(number) of the quarantine") }
      return isFound
    }
  }

  /// Writes an entry's operations to the tables again, as the user would, in one transaction.
  ///
  /// - Parameter changes: values that replace rejected ones.
  /// - Throws: ``ReplicaError/notFound(_:)``; ``ReplicaError/database(_:code:)`` if the tables
  ///   reject them. Then the entry stays.
  func retryQuarantined(_ number: Int64, changing changes: [Column]) throws {
    guard let entry = try quarantineEntry(number) else {
      throw ReplicaError.notFound("the quarantine has no entry \(number)")
    }
    _ = try write { database in
      try connection.deferForeignKeys()
      for operation in entry.operations {
        let isRefused = entry.refused.contains(operation.id)
        let changes = try isRefused ? named(changes, in: operation.key.table) : []
        if try requeue(operation, of: number, changing: changes) { continue }
        try replay(operation.changing(changes), in: database)
      }
      try removeEntry(number)
    }
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

  /// Removes an entry with its operations. Returns whether it existed.
  @discardableResult
  private func removeEntry(_ number: Int64) throws -> Bool {
    try queue.keepNewestOrder()
    try connection.run(
      """
      DELETE FROM ferry_operations
      WHERE state = 3 AND seq IN (SELECT seq FROM ferry_failures WHERE entry = ?)
      """, number)
    return try connection.run("DELETE FROM ferry_failures WHERE entry = ?", number) > 0
  }

  /// Writes the content of an operation to its table, as a write of the user's.
  func replay(_ operation: SyncOperation, in database: Database) throws {
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
        throw ReplicaError.notFound(
          "\(operation.key.table) \(operation.key.record) does not exist any more")
      }
    case .delete: try plan.delete(operation.key.record)
    case .batch: break
    }
  }

  /// Returns an increment as the sum that the row has after it.
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
  /// Returns the operation with other values for its columns, and with more columns.
  fileprivate func changing(_ changes: [Column]) -> SyncOperation {
    guard kind != .delete else { return self }
    var changed = self
    changed.columns.removeAll { column in changes.contains { $0.name == column.name } }
    changed.columns += changes
    return changed
  }
}
