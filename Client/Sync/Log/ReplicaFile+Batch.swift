import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Batch operations on the device: one pending operation with an effect visible at once.
///
/// The operation keeps the records changed here. Until the server has confirmed the batch, it
/// shields the columns it sets on them, as any own write does. Then they are fetched again, since
/// the server may have decided differently: it knows records and edits new to this device.
extension ReplicaFile {
  /// Records a batch and shows the effect, within the user's transaction. Returns the number of
  /// records changed here.
  func recordBatch(_ request: BatchRequest) throws -> Int {
    guard suspension == nil else {
      throw ReplicaError.invalidBatch(
        "a step of a migration makes no batch unless it is recorded; add it with recorded: true")
    }
    try refreshTriggersOfNewSchema()
    guard try connection.hasTable(request.table) else {
      throw ReplicaError.notFound(.table(request.table.text))
    }
    let schema = try schema(local: request.table)
    guard let plan = try plan(for: schema.name) else {
      throw ReplicaError.invalidBatch("table \(schema.name) is not tracked")
    }
    let columns = try resolved(request.columns, of: schema, request.effect)
    let predicate = try resolved(try request.predicate(schema.key), of: schema)
    return try record(Batch(request.effect, where: predicate), columns, with: plan)
  }

  /// Records a batch again, with the names of the space.
  func recordBatch(_ batch: Batch, _ columns: [Column], in table: Name) throws {
    guard let plan = try plan(for: table) else {
      throw ReplicaError.invalidBatch("table \(table) is not tracked")
    }
    if let unknown = columns.first(where: { !plan.known.contains($0.name) }) {
      throw ReplicaError.invalidBatch(plan.table.lacks(unknown.name))
    }
    _ = try record(batch, columns, with: plan)
  }

  private func record(_ batch: Batch, _ columns: [Column], with plan: ApplyPlan) throws -> Int {
    try connection.execute("SAVEPOINT ferry_batch")
    do {
      let order = try insert(batch, columns, into: plan.table.name)
      try recordRows(matching: batch.predicate, of: plan.table, order: order)
      try checkMatches(of: order, in: plan.table)
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

  // MARK: Checks

  /// Throws if a batch matches more records than the server accepts: it would refuse the batch.
  private func checkMatches(of order: Int64, in schema: TableSchema) throws {
    let count = try queue.matches(ofBatch: order)
    guard count > limits.batchRecords else { return }
    throw ReplicaError.invalidBatch(
      "it matches \(count.grouped) records of \(schema.local), and a batch may match "
        + "\(limits.batchRecords.grouped): write several batches with narrower predicates")
  }

  private func resolved(
    _ columns: [Column], of schema: TableSchema, _ effect: Batch.Effect
  ) throws -> [Column] {
    var resolved: [Column] = []
    for column in columns {
      let isOfSpace = schema.share?.column.folded == column.name.folded
      guard !isOfSpace, case .column(let name) = try field(column.name, of: schema) else {
        throw ReplicaError.invalidBatch(
          isOfSpace
            ? "a record's space \(column.name) cannot be set; move the rows one by one"
            : "a record's key \(column.name) cannot be set")
      }
      guard !resolved.contains(where: { $0.name == name }) else {
        throw ReplicaError.invalidBatch("column \(name) is set twice")
      }
      guard column.value.byteCount <= limits.valueBytes else {
        throw ReplicaError.invalidBatch(
          "column \(name) is set to \(column.value.byteCount.grouped) bytes; "
            + "\(limits.valueBytes.grouped) can be synced")
      }
      // SQLite stores NaN as NULL.
      if case .real(let real) = column.value, real.isNaN {
        resolved.append(Column(name, .null))
      } else {
        let value = try identifier(column.value, for: .column(name), of: schema)
        resolved.append(Column(name, value))
      }
    }
    guard effect == .delete || !resolved.isEmpty else {
      throw ReplicaError.invalidBatch("a batch sets at least one column")
    }
    return resolved
  }

  private func resolved(_ predicate: RecordPredicate, of schema: TableSchema) throws
    -> RecordPredicate
  {
    let resolved = try predicate.mapFields { (field) throws(ReplicaError) in
      guard case .column(let name) = field else { return field }
      return try self.field(name, of: schema)
    }.mapValues { field, comparison, value in
      let found = try identifier(value, for: field, of: schema)
      guard found == value || comparison == .equal || comparison == .unequal else {
        throw ReplicaError.invalidBatch(
          "numbers of this device have no order that others know; compare them with = or <>")
      }
      return found
    }
    if let fault = resolved.fault(limits: limits) { throw ReplicaError.invalidBatch(fault) }
    return resolved
  }

  /// Returns the name in the space of a column of this file; SQL ignores case.
  private func field(
    _ name: Name, of schema: TableSchema
  ) throws(ReplicaError) -> PredicateField {
    let wanted = name.folded
    if schema.keys.contains(where: { $0.local.folded == wanted }) {
      if schema.keys.count == 1 { return .record }
      throw .invalidBatch("a batch cannot look at \(name), a part of the key of \(schema.local)")
    }
    guard let column = schema.columns.first(where: { $0.local.folded == wanted }) else {
      throw .invalidBatch(schema.lacks(name))
    }
    return .column(column.name)
  }

  /// Returns the identifier for a value of this file's key or reference. Texts are identifiers
  /// already.
  private func identifier(
    _ value: Value, for field: PredicateField, of schema: TableSchema
  ) throws -> Value {
    if value == .null { return value }
    var table: Name?
    switch field {
    case .record where schema.identity == .mapped: table = schema.name
    case .record where schema.identity == .value:
      if let numbers = schema.keys[0].numbers {
        table = numbers
      } else {
        return KeyCodec.record(for: [value]).map { .text($0) } ?? value
      }
    case .record: break
    case .column(let name): table = schema.column(name).numbers
    }
    guard let table, case .integer(let number) = value else { return value }
    let known = try KeyNumbers(connection: connection).record(of: number, in: table)
    guard let found = known, found.transaction == nil else {
      throw ReplicaError.invalidBatch("there is no record \(number) of \(table) here")
    }
    return .text(found.record)
  }

  // MARK: Recording

  /// Inserts a batch. Returns the operation's place among the pending ones.
  private func insert(_ batch: Batch, _ columns: [Column], into table: Name) throws -> Int64 {
    let shape = SyncOperation(
      id: OperationID(UniqueID(high: 0, low: 0)), table: table, batch: batch, time: .zero,
      columns: columns)
    var json = JSONWriter(capacity: 256)
    json.keptBatch(batch, of: shape)
    guard json.count <= limits.operationBytes else {
      throw ReplicaError.invalidBatch("a batch takes at most \(limits.operationBytes >> 20) MiB")
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
    let before = capture.mode
    capture.mode = .batching
    defer { capture.mode = before }
    let unstamped = Stamp(time: .zero, device: try identity().device)
    let values = columns.map {
      ColumnState(name: $0.name, value: $0.value, stamp: unstamped, sequence: 0)
    }
    var count = 0
    try connection.prepare(
      "SELECT record FROM ferry_batch_rows WHERE seq = ? ORDER BY record"
    ).forEach(order) { row in
      let key = RecordKey(table: plan.table.name, record: row.name(0))
      capture.beginApplying(key, batch.effect == .delete ? .delete : .values)
      switch batch.effect {
      case .set:
        _ = try namingForeignKeys(of: key) { try plan.update(key.record, values) }
      case .delete:
        try namingForeignKeys(of: key) { try plan.delete(key.record) }
        // Deferred changes of the record would restore parts of it. The server has them.
        try kept.forget(key)
      }
      count += 1
    }
    return count
  }
}

extension SyncOperation {
  /// Returns the effect of an own batch on one record as an own write; `nil` for any other kind.
  func batchEffect(on record: Name) -> SyncOperation? {
    batch.map { effect(on: record, id: id, of: $0) }
  }
}
