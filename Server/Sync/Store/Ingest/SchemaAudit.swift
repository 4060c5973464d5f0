import FerryProtocol

/// The check of existing records against the new requirements of a schema; pure. Records were
/// checked against the former requirements when they were written.
package struct SchemaAudit: Sendable {
  /// Records named by a refusal; the others are counted.
  static let recordsNamed = 10
  /// Faults named of a record; the others are counted.
  private static let faultsNamed = 3

  /// The new requirements for one table's records.
  package struct Table: Sendable, Equatable {
    let name: Name
    /// By name; only columns with new requirements.
    let columns: [Column]
    let keys: [[Name]]
  }

  struct Column: Sendable, Equatable {
    let name: Name
    let type: ColumnType
    let isRequired: Bool
  }

  /// By name; only tables with new requirements.
  package let tables: [Table]
  private var violations: [SchemaViolation] = []
  private var count = 0

  /// - Parameter keepsRecords: True if records may go on breaking types and required columns.
  ///   Unique keys hold for all records in any case, so each key has one holder.
  package init(from old: SpaceSchema, to new: SpaceSchema, keepsRecords: Bool) {
    let keys = SchemaChange.keysAdded(from: old, to: new)
    tables = new.tables.sorted { $0.key < $1.key }.compactMap { name, rules in
      let columns = keepsRecords ? [] : Self.columnsAdded(from: old.tables[name], to: rules)
      let keys = keys.first { $0.table == name }?.keys ?? []
      return columns.isEmpty && keys.isEmpty
        ? nil : Table(name: name, columns: columns, keys: keys)
    }
  }

  private static func columnsAdded(from old: TableRules?, to new: TableRules) -> [Column] {
    new.columns.sorted { $0.key < $1.key }.compactMap { name, rules in
      let before = old?.columns[name] ?? ColumnRules()
      let column = Column(
        name: name, type: before.type.isWithin(rules.type) ? .any : rules.type,
        isRequired: rules.isRequired && !before.isRequired)
      return column.type == .any && !column.isRequired ? nil : column
    }
  }

  /// Checks one record, and lets it claim new keys. A missing record breaks nothing. Returns the
  /// claims.
  ///
  /// - Parameter holder: Returns the record with a unique key; `nil` if there is none.
  mutating func look(
    at record: Name, _ state: RecordState, of table: Table,
    holder: (UniqueClaim) throws -> Name?
  ) rethrows -> [IngestEffects.ClaimRow] {
    guard state.isAlive else { return [] }
    var claims: [IngestEffects.ClaimRow] = []
    var taken: [(key: [Name], holder: Name)] = []
    for key in table.keys {
      guard let claim = state.claims(in: table.name, [key]).first else { continue }
      if let holder = try holder(claim) {
        taken.append((key, holder))
      } else {
        claims.append(IngestEffects.ClaimRow(claim: claim, record: record))
      }
    }
    recordTaken(taken, of: record, state, of: table)
    return claims
  }

  /// - Parameter taken: New keys with values of another record, and this record.
  private mutating func recordTaken(
    _ taken: [(key: [Name], holder: Name)], of record: Name, _ state: RecordState, of table: Table
  ) {
    var faults = table.columns.compactMap { Self.fault(in: $0, of: state) }
    faults += taken.map {
      "it has the same \($0.key.map(\.text).joined(separator: ", ")) as \($0.holder)"
    }
    if faults.isEmpty { return }
    count += 1
    guard violations.count < Self.recordsNamed else { return }
    let more = faults.count - Self.faultsNamed
    violations.append(
      SchemaViolation(
        table: table.name, record: record,
        detail: faults.prefix(Self.faultsNamed).joined(separator: ", ")
          + (more > 0 ? ", \(more) more" : ""),
        holder: taken.first?.holder))
  }

  private static func fault(in column: Column, of state: RecordState) -> String? {
    let value = state.value(of: column.name) ?? .null
    if value == .null {
      return column.isRequired ? "column \(column.name) is required and has no value" : nil
    }
    if column.type.admits(value) { return nil }
    return
      "column \(column.name) has the type \(column.type.rawValue), but the value is "
      + value.storageClass
  }

  /// The reason why the schema cannot be put in force; `nil` if it can.
  var problem: Problem? {
    guard count > 0 else { return nil }
    let named = violations.map { "\($0.table)/\($0.record): \($0.detail)" }
    let more = count - violations.count
    return Problem(
      .schemaConflict,
      (count == 1 ? "1 existing record does" : "\(count.grouped) existing records do")
        + " not fit the schema, so it is not applied: " + named.joined(separator: "; ")
        + (more > 0 ? "; and \(more.grouped) more" : ""),
      violations: violations, violationCount: count)
  }
}

extension ColumnType {
  /// Returns whether every value of this type is one of the other, too.
  fileprivate func isWithin(_ other: ColumnType) -> Bool {
    other == .any || other == self || (self == .integer && other == .real)
  }
}
