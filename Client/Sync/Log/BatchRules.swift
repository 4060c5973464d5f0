import FerryProtocol

/// The rules of a batch on one table (SPEC.md §14): a pure machine. It names columns and records as
/// the space does.
///
/// ```swift
/// let rules = BatchRules(table: table, limits: .standard) { number, table in nil }
/// try rules.columns([Column("done", 1)], .set)
/// ```
struct BatchRules {
  let table: TableSchema
  let limits: Limits
  /// Returns the identifier of the record with a number of this device; `nil` if it is not known.
  let record: (_ number: Int64, _ table: Name) throws -> String?

  // MARK: Columns

  /// Returns the values to set, with the names in the space.
  ///
  /// - Throws: ``ReplicaError/invalidBatch(_:)``, also for an effect without columns.
  func columns(_ columns: [Column], _ effect: Batch.Effect) throws -> [Column] {
    var found: [Column] = []
    for column in columns {
      let next = try self.column(column)
      guard !found.contains(where: { $0.name == next.name }) else {
        throw ReplicaError.invalidBatch("column \(next.name) is set twice")
      }
      found.append(next)
    }
    guard effect == .delete || !found.isEmpty else {
      throw ReplicaError.invalidBatch("a batch sets at least one column")
    }
    return found
  }

  private func column(_ column: Column) throws -> Column {
    let isOfSpace = table.share?.column.folded == column.name.folded
    guard !isOfSpace, case .column(let name) = try field(column.name) else {
      throw ReplicaError.invalidBatch(
        isOfSpace
          ? "a record's space \(column.name) cannot be set; move the rows one by one"
          : "a record's key \(column.name) cannot be set")
    }
    guard column.value.byteCount <= limits.valueBytes else {
      throw ReplicaError.invalidBatch(
        "column \(name) is set to \(column.value.byteCount.grouped) bytes; "
          + "\(limits.valueBytes.grouped) can be synced")
    }
    // SQLite stores NaN as NULL.
    if case .real(let real) = column.value, real.isNaN { return Column(name, .null) }
    return Column(name, try identifier(column.value, for: .column(name)))
  }

  // MARK: Predicate

  /// Returns a predicate with the names in the space.
  ///
  /// - Throws: ``ReplicaError/invalidBatch(_:)``.
  func predicate(_ predicate: RecordPredicate) throws -> RecordPredicate {
    let found = try predicate.mapFields { (field) throws(ReplicaError) in
      guard case .column(let name) = field else { return field }
      return try self.field(name)
    }.mapValues { field, comparison, value in
      let found = try identifier(value, for: field)
      guard found == value || comparison == .equal || comparison == .unequal else {
        throw ReplicaError.invalidBatch(
          "numbers of this device have no order that others know; compare them with = or <>")
      }
      return found
    }
    if let fault = found.fault(limits: limits) { throw ReplicaError.invalidBatch(fault) }
    return found
  }

  /// Throws if a batch matches more records than the server accepts: it would refuse the batch.
  func check(matches count: Int) throws {
    guard count > limits.batchRecords else { return }
    throw ReplicaError.invalidBatch(
      "it matches \(count.grouped) records of \(table.local), and a batch may match "
        + "\(limits.batchRecords.grouped): write several batches with narrower predicates")
  }

  // MARK: Names

  /// Returns the name in the space of a column of this file; SQL ignores case.
  private func field(_ name: Name) throws(ReplicaError) -> PredicateField {
    let wanted = name.folded
    if table.keys.contains(where: { $0.local.folded == wanted }) {
      if table.keys.count == 1 { return .record }
      throw .invalidBatch("a batch cannot look at \(name), a part of the key of \(table.local)")
    }
    guard let column = table.columns.first(where: { $0.local.folded == wanted }) else {
      throw .invalidBatch(table.lacks(name))
    }
    return .column(column.name)
  }

  /// Returns the identifier for a value of this file's key or reference. Texts are identifiers
  /// already.
  private func identifier(_ value: Value, for field: PredicateField) throws -> Value {
    if value == .null { return value }
    if field == .record, table.identity == .value, table.keys[0].numbers == nil {
      return KeyCodec.record(for: [value]).map { .text($0) } ?? value
    }
    guard let numbered = numbered(field), case .integer(let number) = value else { return value }
    guard let found = try record(number, numbered) else {
      throw ReplicaError.invalidBatch("there is no record \(number) of \(numbered) here")
    }
    return .text(found)
  }

  /// Returns the mapped table with the numbers in a field; `nil` without numbers.
  private func numbered(_ field: PredicateField) -> Name? {
    switch (field, table.identity) {
    case (.record, .mapped): table.name
    case (.record, .value): table.keys[0].numbers
    case (.record, .text): nil
    case (.column(let name), _): table.column(name).numbers
    }
  }
}
