import FerryProtocol
import FerrySQLite

/// The operations in the queue of a replica's file: `ferry_pending`, a view of `ferry_operations`
/// (SPEC.md §4).
struct OperationTable {
  let connection: SQLiteConnection
  let limits: Limits
  let capture: CaptureContext

  // MARK: Counting

  func isEmpty() throws -> Bool {
    try !connection.exists("SELECT 1 FROM ferry_pending LIMIT 1")
  }

  /// Returns the number of operations not confirmed yet by the server.
  func count() throws -> Int {
    if try isEmpty() { return 0 }
    return try connection.count(
      """
      SELECT count(*) FROM ferry_pending WHERE seq > \(Self.confirmedOrder)
      """)
  }

  /// The place of the last operation in the confirmed packets before the first unconfirmed one.
  private static let confirmedOrder = """
    coalesce((SELECT max(to_order) FROM ferry_current_packets WHERE state = 'acknowledged'
      AND number < coalesce((SELECT min(number) FROM ferry_current_packets
        WHERE state <> 'acknowledged'), 9223372036854775807)), 0)
    """

  /// Returns the newest operation of the file with its stamp; `nil` without operations.
  ///
  /// - Parameter device: this device.
  func newest(by device: DeviceID) throws -> (id: OperationID, stamp: Stamp)? {
    let id = try connection.first("SELECT id FROM ferry_operations ORDER BY seq DESC LIMIT 1") {
      $0.uniqueID(0)
    }
    guard let id = id ?? nil else { return nil }
    return (OperationID(id), Stamp(time: id.timestamp, device: device))
  }

  /// Returns the place of the newest operation ever recorded.
  func newestOrder() throws -> Int64 {
    try connection.first("SELECT \(OperationRecorder.newestOrder)") { $0.int64(0) } ?? 0
  }

  /// Stores the newest place before operations are removed, so no other operation gets it.
  func storeNewestOrder() throws {
    capture.operationsAreRemoved()
    try connection.run("UPDATE ferry_replica SET removed_order = \(OperationRecorder.newestOrder)")
  }

  /// Selects the pending rows of `ferry_operations` in no packet. Packets are in the order of their
  /// operations, so the scan begins after the last one.
  static let isUnfrozen = "state = 0 AND seq > \(PacketTable.frozenOrder)"

  /// Returns the number of unconfirmed operations up to a place. Re-uploaded rows count;
  /// upload-only operations waiting for the user do not.
  func unconfirmedCount(through order: Int64) throws -> Int {
    if try isEmpty() { return 0 }
    return try connection.first(
      """
      SELECT count(*) FROM ferry_pending WHERE (seq <= ? OR id < x'000000000002')
        AND seq > \(Self.confirmedOrder)
        AND NOT EXISTS (SELECT 1 FROM ferry_failed WHERE ferry_failed.seq = ferry_pending.seq)
      """, order
    ) { Int($0.int64(0)) } ?? 0
  }

  /// Returns true if there is anything to send outside of packets buffered by the server.
  func hasUnsent() throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_current_packets WHERE state = 'frozen'
      UNION ALL SELECT 1 FROM ferry_operations AS o WHERE \(Self.isUnfrozen)
        AND NOT EXISTS (SELECT 1 FROM ferry_failed AS f WHERE f.seq = o.seq) LIMIT 1
      """)
  }

  // MARK: Reading

  private static let columns =
    "seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks, reason"

  static let selection = "SELECT \(columns) FROM ferry_pending"

  /// The same, with the operation on which each one depends.
  private static let chain = "SELECT \(columns), dependency FROM ferry_pending"

  /// A condition: the pending operation is one on record `?1` of table `?2`, or a batch with
  /// changes to it.
  static let concernsRecord = """
    seq IN (
      SELECT seq FROM ferry_pending WHERE record = ?1 AND tbl = ?2
      UNION ALL SELECT seq FROM ferry_batch_rows WHERE record = ?1 AND tbl = ?2)
    """

  /// Returns the pending operations on a record, with the effects of batches on it, in order.
  func operations(on key: RecordKey) throws -> [SyncOperation] {
    try connection.rows(
      "\(Self.selection) WHERE \(Self.concernsRecord) ORDER BY seq", key.record, key.table
    ) { row in
      let operation = try pending(row).operation
      return operation.batchEffect(on: key.record) ?? operation
    }
  }

  /// Returns a batch that the file still has, also one outside of the queue.
  func batch(_ id: OperationID) throws -> Batch? {
    try connection.first(
      "SELECT \(Self.columns) FROM ferry_operations WHERE id = ? AND kind = 'batch' LIMIT 1", id
    ) { try pending($0).operation.batch } ?? nil
  }

  /// Returns this device's newest delete of a record that the file still has; the columns are the
  /// row before it.
  func newestDelete(of key: RecordKey) throws -> SyncOperation? {
    try connection.first(
      """
      SELECT \(Self.columns)
      FROM ferry_operations WHERE record = ? AND tbl = ? AND kind = 'delete' AND state <= 1
      ORDER BY seq DESC LIMIT 1
      """, key.record, key.table
    ) { try pending($0).operation }
  }

  /// Returns the place of a pending operation.
  func order(of id: OperationID) throws -> Int64? {
    try connection.first("SELECT seq FROM ferry_pending WHERE id = ?", id.value) { $0.int64(0) }
  }

  /// Returns pending operations, oldest first, with the operations on which they depend.
  func oldest(_ limit: Int) throws -> [PendingOperation] {
    try connection.rows("\(Self.chain) ORDER BY seq LIMIT ?", limit) { row in
      var operation = try pending(row)
      if operation.operation.kind == .update { operation.former = try formerColumns(row, at: 9) }
      operation.dependency = row.optionalText(12).flatMap { UniqueID($0) }.map(OperationID.init)
      return operation
    }
  }

  /// Reads a row of ``selection``.
  func pending(_ row: SQLiteStatement) throws -> PendingOperation {
    guard let id = row.uniqueID(1), let kind = OperationKind(rawValue: row.text(6)) else {
      throw ReplicaError.database(
        "ferry_operations contains a row that is not an operation", code: 11)
    }
    var columns: [Column] = []
    var batch: Batch?
    if kind == .batch {
      var reader = JSONReader(row.textBytes(7), depth: limits.depth)
      (batch, columns) = try Batch.stored(from: &reader, limits: limits)
    } else if !row.isNull(7) {
      var reader = JSONReader(row.textBytes(7), depth: limits.depth)
      columns = try reader.columns(limits: limits)
    }
    var operation = SyncOperation(
      id: OperationID(id), key: RecordKey(table: row.name(4), record: row.name(5)), kind: kind,
      time: id.timestamp, columns: columns, base: row.int64(3))
    operation.batch = batch
    if kind == .update && !row.isNull(10) { try readMarks(row, into: &operation) }
    if let reason = row.optionalText(11) { operation.reason = reason }
    return PendingOperation(
      operation: operation, order: row.int64(0), group: row.int64(2),
      isConcurrent: row.int64(8) == 1)
  }

  /// Returns the columns in a field of a row, such as the former values of an update's columns;
  /// empty if they are not known.
  func formerColumns(_ row: SQLiteStatement, at index: Int32) throws -> [Column] {
    if row.isNull(index) { return [] }
    var reader = JSONReader(row.textBytes(index), depth: limits.depth)
    return try reader.columns(limits: limits)
  }

  private func readMarks(_ row: SQLiteStatement, into operation: inout SyncOperation) throws {
    var texts: [Name] = []
    var reader = JSONReader(row.textBytes(10), depth: limits.depth)
    try reader.array { (reader) throws(MalformedMessage) in
      let mark = try reader.string().unicodeScalars
      let name = Name(String(mark.dropFirst()))
      if mark.first != Unicode.Scalar("+") {
        texts.append(name)
      } else {
        operation.increments.insert(name)
      }
    }
    guard !texts.isEmpty else { return }
    operation.originals = try formerColumns(row, at: 9).filter { texts.contains($0.name) }
  }

  /// Returns a packet's operations in the queue, merged as they were.
  ///
  /// - Parameter schema: the one at the time of the packet's merge.
  func operations(of row: FrozenPacket, schema: SpaceSchema) throws -> [SyncOperation] {
    var merger = OperationMerger(limits: limits, schema: schema)
    var plain: [SyncOperation] = []
    try connection.forEach(
      """
      SELECT \(Self.columns), apart
      FROM ferry_pending WHERE seq BETWEEN ? AND ? ORDER BY seq
      """, row.orders.lowerBound, row.orders.upperBound
    ) { pendingRow in
      let next = try pending(pendingRow)
      if row.isMerged {
        merger.add(
          next.operation, isConcurrent: next.isConcurrent, isApart: pendingRow.int64(12) == 1)
      } else {
        plain.append(next.operation)
      }
    }
    var operations = row.isMerged ? merger.operations : plain
    for index in operations.indices where operations[index].kind == .delete {
      operations[index].columns = []
    }
    return operations
  }

  // MARK: Writing

  /// Marks the operations on a record. Frozen ones stay merged as they were.
  func markMet(_ key: RecordKey) throws {
    try connection.run(
      """
      UPDATE ferry_operations
      SET concurrent = iif(seq > \(PacketTable.frozenOrder), 1, 2)
      WHERE state = 0 AND record = ?1 AND tbl = ?2 AND concurrent = 0
      """, key.record, key.table)
  }

  /// Freezes the next packets. Returns true if there was anything to freeze.
  ///
  /// - Parameters:
  ///   - cut: special sizes of the packets.
  ///   - schema: the rules for merging operations.
  func freezeNext(_ cut: PacketCut, schema: SpaceSchema) throws -> Bool {
    var limits = limits
    limits.packetBytesTarget = cut.bytesTarget(limits)
    var planner = PacketPlanner(
      limits: limits, schema: schema, groupsMax: cut.groupsMax)
    var group: [PendingOperation] = []
    var isFull = false
    let waiting = try connection.statement(
      "SELECT \(Self.columns) FROM ferry_operations WHERE \(Self.isUnfrozen) ORDER BY seq")
    defer { waiting.reset() }
    while try !isFull && waiting.step() {
      var next = try pending(waiting)
      if next.operation.batch != nil { next.matches = try matches(ofBatch: next.order) }
      if let current = group.first?.group, current != next.group {
        isFull = !planner.fits(group)
        if !isFull { planner.add(group) }
        group = []
      }
      group.append(next)
    }
    if !isFull && planner.fits(group) { planner.add(group) }
    waiting.reset()
    let plans = planner.plans()
    for plan in plans { try save(plan) }
    return !plans.isEmpty
  }

  /// Returns the number of records that a batch has changed here.
  func matches(ofBatch order: Int64) throws -> Int {
    try connection.first("SELECT count(*) FROM ferry_batch_rows WHERE seq = ?", order) {
      Int($0.int64(0))
    } ?? 0
  }

  private func save(_ plan: PacketPlanner.Plan) throws {
    guard let tail = plan.operations.last?.id else { return try forget(plan.orders) }
    try PacketTable(connection: connection).append(plan, tail: tail)
    try Spellings(connection: connection).share(plan.operations)
    let keep = try connection.statement("UPDATE ferry_operations SET apart = 1 WHERE seq = ?")
    for order in plan.apart { try keep.run(order) }
  }

  /// Removes operations that cancelled each other out before they were sent.
  func forget(_ orders: ClosedRange<Int64>) throws {
    try storeNewestOrder()
    try connection.run(
      "DELETE FROM ferry_operations WHERE state = 0 AND seq BETWEEN ? AND ?", orders.lowerBound,
      orders.upperBound)
  }

  /// Makes the next pull fetch the records changed here by confirmed batches, and stops shielding
  /// them. The same holds for batches no longer pending for another reason.
  func releaseBatches() throws {
    guard try connection.exists("SELECT 1 FROM ferry_batch_rows LIMIT 1") else { return }
    let settled = """
      (SELECT b.seq FROM (SELECT DISTINCT seq FROM ferry_batch_rows) AS b
       WHERE NOT EXISTS (SELECT 1 FROM ferry_pending WHERE seq = b.seq)
         OR EXISTS (SELECT 1 FROM ferry_current_packets
                    WHERE state = 'acknowledged' AND b.seq BETWEEN from_order AND to_order))
      """
    // text: two statements without a name from outside
    try connection.execute(
      """
      INSERT INTO ferry_refresh(tbl, record)
        SELECT tbl, record FROM ferry_batch_rows WHERE seq IN \(settled) AND \(TrackedTables.isTwoWay)
        ON CONFLICT(tbl, record) DO UPDATE SET fetched = 0;
      DELETE FROM ferry_batch_rows WHERE seq IN \(settled)
      """)
  }
}

/// Own operations in the queue or the archive.
extension OperationTable {
  private static let own = "FROM ferry_operations WHERE state <= 1"
  private static let ownSelection = "SELECT \(columns), state \(own)"

  /// Returns own operations, newest first; confirmed ones as long as the archive has them.
  func newestOwn(_ limit: Int) throws -> [OwnOperation] {
    try connection.rows("\(Self.ownSelection) ORDER BY seq DESC LIMIT ?", limit, row: ownOperation)
  }

  /// Returns own operations with this beginning of the identifier, newest first.
  func newestOwn(_ limit: Int, beginningWith prefix: UniqueIDPrefix) throws -> [OwnOperation] {
    try connection.rows(
      "\(Self.ownSelection) AND id BETWEEN ? AND ? ORDER BY seq DESC LIMIT ?", prefix.first,
      prefix.last, limit, row: ownOperation)
  }

  /// Returns an own operation; `nil` if it is not here.
  func own(_ id: OperationID) throws -> OwnOperation? {
    try connection.first(
      "\(Self.ownSelection) AND id = ? ORDER BY state LIMIT 1", id.value, row: ownOperation)
  }

  func hasOwn(_ id: OperationID) throws -> Bool {
    try connection.exists("SELECT 1 \(Self.own) AND id = ?", id.value)
  }

  /// Returns the identifiers of all own operations.
  func ownIDs() throws -> UniqueIDAbbreviations {
    UniqueIDAbbreviations(
      try connection.rows("SELECT id \(Self.own)") {
        $0.uniqueID(0) ?? UniqueID(high: 0, low: 0)
      })
  }

  private func ownOperation(_ row: SQLiteStatement) throws -> OwnOperation {
    OwnOperation(
      operation: try pending(row).operation, former: try formerColumns(row, at: 9),
      isConfirmed: OperationState(rawValue: row.int64(12)) == .confirmed)
  }
}
