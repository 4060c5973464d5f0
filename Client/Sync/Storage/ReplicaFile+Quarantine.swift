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
      guard let row = try packets(where: "number = \(number)").first else { return 0 }
      // An answer may name an operation of an earlier packet, too.
      let first = try refusals.compactMap { try openPacket(of: $0.operation) }
        .min { $0.number < $1.number }
      try reopenPackets(from: first.map { $0.number < row.number ? $0 : row } ?? row)
      try connection.execute(
        "CREATE TABLE IF NOT EXISTS temp.ferry_poisoned(seq INTEGER PRIMARY KEY)")
      var count = 0
      for refusal in refusals {
        count += try quarantine(refusal, in: row.orders)
      }
      return count
    }
  }

  /// Returns the packet with an operation, if it is not confirmed.
  private func openPacket(of operation: OperationID) throws -> PacketRow? {
    try connection.first(
      """
      SELECT number FROM ferry_pending JOIN ferry_current_packets ON seq BETWEEN from_order AND to_order
      WHERE id = ? AND state <> 'acknowledged'
      """, operation
    ) { $0.int64(0) }.flatMap { try packets(where: "number = \($0)").first }
  }

  /// Removes a whole packet for which the server named no operation from the queue: its only
  /// transaction cannot be sent.
  func quarantine(packet number: Int64, _ problem: Problem) throws -> Int {
    try quarantine(
      packet: number, code: RefusalCode(rawValue: problem.code.rawValue), detail: problem.detail)
  }

  /// Removes a whole packet from the queue, for a given reason.
  func quarantine(packet number: Int64, code: RefusalCode, detail: String) throws -> Int {
    let operations = try packets(where: "number = \(number)").first.map {
      try packet($0).operations
    }
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
      guard let row = try packets(where: "number = \(number)").first else { return }
      try reopenPackets(from: row)
    }
  }

  /// Returns the number of a packet's transactions.
  func transactionCount(ofPacket number: Int64) throws -> Int {
    try count(
      """
      SELECT count(DISTINCT grp) FROM ferry_pending JOIN ferry_current_packets
      ON seq BETWEEN from_order AND to_order WHERE number = \(number)
      """)
  }

  /// Opens a rejected packet and all packets after it again, in a chain under a new identifier.
  ///
  /// The server has stored nothing of this packet. So no later packet can be in the history, except
  /// through a copy of this file, whose operations the server recognises by their identifiers.
  /// Earlier cut packets may still be on their way: in the new chain they never find a place. The
  /// server has dropped the first parts of this packet's transaction; they are opened as well.
  ///
  /// Unconfirmed packets before this one stay unchanged, at the start of the new chain. The server
  /// may have applied them, and recognises their operations only as they were merged.
  private func reopenPackets(from row: PacketRow) throws {
    var kept = try openPackets().filter { $0.number < row.number }
    var first = row
    while let part = kept.last, part.continues { first = kept.removeLast() }
    try connection.execute(
      """
      UPDATE ferry_operations SET apart = 0
      WHERE state = 0 AND apart <> 0 AND seq >= \(first.orders.lowerBound);
      DELETE FROM ferry_packets WHERE number >= \(first.number)
      """)
    _ = try beginChain(with: kept)
  }

  private func quarantine(_ refusal: Refusal, in orders: ClosedRange<Int64>) throws -> Int {
    try connection.execute("DELETE FROM temp.ferry_poisoned")
    try connection.run(
      """
      INSERT INTO temp.ferry_poisoned SELECT seq FROM ferry_pending
      WHERE record = ?1 AND tbl = ?2 AND (id = ?3 OR seq BETWEEN ?4 AND ?5)
      """, refusal.record, refusal.table, refusal.operation, orders.lowerBound, orders.upperBound)
    // Another rejection of the same packet may have removed it already.
    guard connection.changes > 0 else { return 0 }
    try addDependants()
    let keys = try connection.rows(
      """
      SELECT DISTINCT tbl, record FROM ferry_pending
      WHERE seq IN (SELECT seq FROM temp.ferry_poisoned)
      """
    ) { RecordKey(table: $0.text(0), record: $0.text(1)) }
    try refresh(keys)
    let count = try movePoisoned(refusal)
    try note(
      "quarantined",
      "\(refusal.table) \(refusal.record): \(refusal.code): \(refusal.detail) (\(count) operations)"
    )
    return count
  }

  /// Adds dependent operations until none is left:
  ///
  /// - the rest of the transactions,
  /// - later operations on the same records,
  /// - operations that refer to records whose insert is among them,
  /// - later deletes of records that have references again without these operations.
  ///
  /// Re-uploaded rows (at time 1 ms) belong to no transaction of the user's: each is rejected by
  /// itself.
  private func addDependants() throws {
    let links = try foreignKeyLinks()
    var before = -1
    while true {
      let size = try count("SELECT count(*) FROM temp.ferry_poisoned")
      if size == before { return }
      before = size
      try connection.execute(
        """
        INSERT OR IGNORE INTO temp.ferry_poisoned SELECT seq FROM ferry_pending WHERE grp IN
          (SELECT grp FROM ferry_pending WHERE seq IN (SELECT seq FROM temp.ferry_poisoned)
            AND id >= x'000000000002');
        INSERT OR IGNORE INTO temp.ferry_poisoned SELECT later.seq
          FROM temp.ferry_poisoned AS p JOIN ferry_pending AS bad ON bad.seq = p.seq
          JOIN ferry_pending AS later ON later.record = bad.record AND later.tbl = bad.tbl
            AND later.seq > bad.seq
        """)
      for link in links {
        try addChildren(link)
        try addParents(link)
      }
    }
  }

  private func addChildren(_ link: ForeignKeyLink) throws {
    try connection.run(
      """
      INSERT OR IGNORE INTO temp.ferry_poisoned SELECT child.seq FROM ferry_pending AS child
      WHERE child.tbl = ?1 AND child.kind <> 'delete' AND json_extract(child.data, ?2) IN (
        SELECT bad.record FROM ferry_pending AS bad
        WHERE bad.seq IN (SELECT seq FROM temp.ferry_poisoned) AND bad.tbl = ?3
          AND bad.kind = 'insert')
      """, link.child, "$.\(quoted(link.column))", link.parent)
  }

  /// Adds a parent's delete if it depends on the removal of its children. Without that removal it
  /// would leave orphans on the server, which no replica can have.
  private func addParents(_ link: ForeignKeyLink) throws {
    try connection.run(
      """
      INSERT OR IGNORE INTO temp.ferry_poisoned SELECT parent.seq FROM ferry_pending AS parent
      WHERE parent.tbl = ?3 AND parent.kind = 'delete' AND EXISTS (
        SELECT 1 FROM ferry_pending AS bad
        WHERE bad.seq IN (SELECT seq FROM temp.ferry_poisoned) AND bad.seq < parent.seq
          AND bad.tbl = ?1 AND parent.record = json_extract(
            CASE bad.kind WHEN 'delete' THEN bad.data WHEN 'update' THEN bad.was END, ?2)
          AND NOT EXISTS (SELECT 1 FROM ferry_pending AS born
            WHERE born.record = bad.record AND born.tbl = bad.tbl AND born.kind = 'insert'
              AND born.seq < bad.seq
              AND born.seq IN (SELECT seq FROM temp.ferry_poisoned)))
      """, link.child, "$.\(quoted(link.column))", link.parent)
  }

  private func movePoisoned(_ refusal: Refusal) throws -> Int {
    try connection.run(
      """
      INSERT INTO ferry_failures(seq, entry, code, detail, holder, at)
      SELECT seq, (SELECT coalesce(max(entry), 0) + 1 FROM ferry_failures
          WHERE entry IS NOT NULL),
        iif(record = ?1 AND tbl = ?2, ?3, NULL), iif(record = ?1 AND tbl = ?2, ?4, NULL),
        iif(record = ?1 AND tbl = ?2, ?5, NULL), ?6
      FROM ferry_pending WHERE seq IN (SELECT seq FROM temp.ferry_poisoned)
      """, refusal.record, refusal.table, refusal.code.rawValue, refusal.detail, refusal.holder,
      wallClock())
    let count = connection.changes
    try rememberClock()
    try connection.execute(
      "UPDATE ferry_operations SET state = 3 WHERE seq IN (SELECT seq FROM temp.ferry_poisoned)")
    return count
  }

  // MARK: Looking and answering

  /// Returns the number of entries.
  func quarantinedCount() throws -> Int { try count("SELECT count(*) FROM ferry_quarantine") }

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
      entry.operations.append(try pending(row).operation)
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
        if try requeue(operation, of: number, changing: isRefused ? changes : []) { continue }
        try replay(isRefused ? operation.changing(changes) : operation, in: database)
      }
      try removeEntry(number)
    }
  }

  /// Removes an entry with its operations. Returns whether it existed.
  @discardableResult
  private func removeEntry(_ number: Int64) throws -> Bool {
    try connection.run(
      """
      DELETE FROM ferry_operations
      WHERE state = 3 AND seq IN (SELECT seq FROM ferry_failures WHERE entry = ?)
      """, number)
    return try connection.run("DELETE FROM ferry_failures WHERE entry = ?", number) > 0
  }

  /// Writes the content of an operation to its table, as a write of the user's.
  func replay(_ operation: SyncOperation, in database: Database) throws {
    if let batch = operation.batch { return try replay(batch, operation, in: database) }
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

  private func replay(_ batch: Batch, _ operation: SyncOperation, in database: Database) throws {
    let table = operation.key.table
    switch batch.effect {
    case .set:
      let columns = Dictionary(
        operation.columns.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
      _ = try database.batch(table, where: batch.predicate, set: columns)
    case .delete: _ = try database.batchDelete(table, where: batch.predicate)
    }
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
