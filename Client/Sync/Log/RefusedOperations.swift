import FerryProtocol
import FerrySQLite

/// Operations the server can never apply: the driver of ``RefusalSpread``.
///
/// They leave the queue with their transactions and all that depends on them, so everything else
/// continues. After the next pull the records show the server's values; the rejected operations stay
/// readable in the quarantine.
struct RefusedOperations {
  let operations: OperationLog
  let chain: PacketChain
  let quarantine: QuarantineTable
  let refreshes: RefreshTable
  let tables: LocalTables
  let wallClock: () -> Int64

  private var connection: SQLiteConnection { tables.connection }
  private var queue: OperationTable { operations.queue }
  private var packets: PacketTable { operations.packets }

  /// Removes a packet's rejected operations from the queue, and opens the packets from this one on
  /// again. Returns the number of removed operations.
  func remove(from number: Int64, _ refusals: [Refusal]) throws -> Int {
    try connection.transaction {
      guard let row = try packets.packet(number) else { return 0 }
      // An answer may name an operation of an earlier packet, too.
      let first = try refusals.compactMap { try openPacket(of: $0.operation) }
        .min { $0.number < $1.number }
      try chain.reopenPackets(from: first.map { $0.number < row.number ? $0 : row } ?? row)
      return try remove(refusals, in: row.orders)
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

  /// Removes a whole packet from the queue, if no operation is named: the packet's only transaction
  /// cannot be sent.
  func removePacket(_ number: Int64, code: RefusalCode, detail: String) throws -> Int {
    let packet = try packets.packet(number)
    guard let first = try packet.map(operations.operations)?.first else { return 0 }
    let refusal = Refusal(
      operation: first.id, code: code, detail: detail, table: first.key.table,
      record: first.key.record)
    return try remove(from: number, [refusal])
  }

  private func remove(_ refusals: [Refusal], in orders: ClosedRange<Int64>) throws -> Int {
    let refusals = try refusals.map { try naming(batchOf: $0) }
    var spread = RefusalSpread(refused: try refusals.map { try places(of: $0, in: orders) })
    try spread.spread(over: forEachPending)
    try refreshes.add(spread.keys)
    try operations.rememberClock()
    let leaving = Dictionary(grouping: spread.leaving.keys, by: { spread.leaving[$0] ?? 0 })
    for (number, orders) in leaving.sorted(by: { $0.key < $1.key }) {
      let refusal = refusals[number]
      try quarantine.add(orders.sorted(), refusal, now: wallClock())
      try tables.log(
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
    let rules = try tables.parentRules()
    try connection.forEach("\(OperationTable.selection) ORDER BY seq") { row in
      guard let kind = OperationKind(rawValue: row.text(6)), let id = row.uniqueID(1) else {
        return
      }
      var operation = RefusalSpread.Operation(
        order: row.int64(0), group: row.int64(2),
        key: RecordKey(table: row.name(4), record: row.name(5)), kind: kind,
        isReupload: id.timestamp.milliseconds < 2)
      let links = rules.references(of: operation.key.table)
      if kind == .batch {
        let batch = try queue.pending(row).operation
        operation.isBatchDelete = batch.batch?.effect == .delete
        operation.formerParents = Set(
          links.filter { $0.mayLose(by: batch) }.compactMap(\.reference?.table))
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
}
