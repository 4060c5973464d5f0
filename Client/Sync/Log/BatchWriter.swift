import FerryProtocol
import FerrySQLite

/// Batch operations on the device: one pending operation with an effect visible at once.
///
/// The operation keeps the records changed here. Until the server has confirmed the batch, it
/// shields the columns it sets on them, as any own write does. Then they are fetched again, since
/// the server may have decided differently: it knows records and edits new to this device.
struct BatchWriter {
  let tables: LocalTables
  let queue: OperationTable
  let kept: KeptChanges

  private var connection: SQLiteConnection { tables.connection }
  private var capture: CaptureContext { queue.capture }
  private var limits: Limits { queue.limits }

  /// Records a batch and shows the effect, within the user's transaction. Returns the number of
  /// records changed here.
  func record(_ request: BatchRequest) throws -> Int {
    guard try connection.hasTable(request.table) else {
      throw ReplicaError.notFound(.table(request.table.text))
    }
    let table = try tables.schema(local: request.table)
    let plan = try plan(for: table.name)
    let rules = rules(of: table)
    let columns = try rules.columns(request.columns, request.effect)
    let predicate = try rules.predicate(request.predicate(table.key))
    return try record(Batch(request.effect, where: predicate), columns, with: plan)
  }

  /// Records a batch again, with the names of the space.
  func record(_ batch: Batch, _ columns: [Column], in table: Name) throws {
    let plan = try plan(for: table)
    if let unknown = columns.first(where: { !plan.known.contains($0.name) }) {
      throw ReplicaError.invalidBatch(plan.table.lacks(unknown.name))
    }
    _ = try record(batch, columns, with: plan)
  }

  private func plan(for table: Name) throws -> ApplyPlan {
    if let plan = try tables.plan(for: table) { return plan }
    throw ReplicaError.invalidBatch("table \(table) is not tracked")
  }

  private func rules(of table: TableSchema) -> BatchRules {
    BatchRules(table: table, limits: limits) {
      [numbers = KeyNumbers(connection: connection)] in
      guard let found = try numbers.record(of: $0, in: $1), found.transaction == nil else {
        return nil
      }
      return found.record
    }
  }

  private func record(_ batch: Batch, _ columns: [Column], with plan: ApplyPlan) throws -> Int {
    try connection.execute("SAVEPOINT ferry_batch")
    do {
      let order = try insert(batch, columns, into: plan.table.name)
      try recordRows(matching: batch.predicate, of: plan.table, order: order)
      try rules(of: plan.table).check(matches: queue.matches(ofBatch: order))
      let count = try show(batch, columns, with: plan, order: order)
      try connection.execute("RELEASE ferry_batch")
      return count
    } catch {
      // The user may catch the error and commit. An error may also have ended the transaction.
      if connection.isInTransaction {
        try connection.execute("ROLLBACK TO ferry_batch; RELEASE ferry_batch")
      }
      throw error
    }
  }

  // MARK: Recording

  /// Inserts a batch. Returns the operation's place among the pending ones.
  private func insert(_ batch: Batch, _ columns: [Column], into table: Name) throws -> Int64 {
    let shape = SyncOperation(
      id: OperationID(UniqueID(high: 0, low: 0)), table: table, batch: batch, time: .zero,
      columns: columns)
    var json = JSONWriter(capacity: 256)
    json.storedBatch(batch, of: shape)
    guard json.count <= limits.operationBytes else {
      throw ReplicaError.invalidBatch(
        "a batch takes at most \(limits.operationBytes >> 20) MiB")
    }
    try connection.run(
      """
      INSERT INTO ferry_operations(seq, id, grp, base, tbl, record, kind, data)
      VALUES (\(OperationRecorder.newestOrder) + 1, ferry_operation(), ferry_group(), ferry_base(), ?, '', 'batch', ?)
      """, table, SQLiteText(json.bytes))
    if let refusal = capture.addBytes(json.count) {
      throw ReplicaError.database(refusal.message, code: refusal.code)
    }
    return try connection.first("SELECT max(seq) FROM ferry_operations") { $0.int64(0) } ?? 0
  }

  private func recordRows(
    matching predicate: RecordPredicate, of schema: TableSchema, order: Int64
  ) throws {
    let place = quoted(schema.local)
    let record = schema.record(of: place)
    let sql = predicate.sql { field in
      switch field {
      case .column(let name): schema.column(name).read(place)
      case .record: record
      }
    }
    // text: the predicate quotes the names in it
    try connection.prepare(
      """
      INSERT INTO ferry_batch_rows(seq, tbl, record)
      SELECT ?, \(quoted(literal: schema.name.text)), \(record)
      FROM \(place) WHERE \(schema.own("typeof(\(record)) = 'text'", in: place)) AND \(sql.text)
      """
    ).run(order, SQLiteList(sql.values))
  }

  /// Changes the rows without recording each one. Records further changes by the schema or the
  /// user's triggers.
  private func show(
    _ batch: Batch, _ columns: [Column], with plan: ApplyPlan, order: Int64
  ) throws -> Int {
    return try capture.during(.batching) {
      let values = plan.unstamped(columns)
      var count = 0
      try connection.prepare(
        "SELECT record FROM ferry_batch_rows WHERE seq = ? ORDER BY record"
      ).forEach(order) { row in
        let key = RecordKey(table: plan.table.name, record: row.name(0))
        capture.beginApplying(key, batch.effect == .delete ? .delete : .values)
        switch batch.effect {
        case .set:
          _ = try tables.foreignKeys.naming(key) { try plan.update(key.record, values) }
        case .delete:
          try tables.foreignKeys.naming(key) { try plan.delete(key.record) }
          // Deferred changes of the record would restore parts of it. The server has them.
          try kept.forget(key)
        }
        count += 1
      }
      return count
    }
  }
}

extension SyncOperation {
  /// Returns the effect of an own batch on one record as an own write; `nil` for any other kind.
  func batchEffect(on record: Name) -> SyncOperation? {
    batch.map { effect(on: record, id: id, of: $0) }
  }
}
