import FerryProtocol

/// The columns of a space's tables while a batch is applied: their number is limited (SPEC.md §10).
///
/// Columns in the space's schema do not count: an admin has named them, and a member who fills a
/// table with columns hinders none of them.
struct ColumnLedger {
  private let limit: Int
  private let schema: SpaceSchema?
  /// The tables to which the batch adds columns.
  private var tables: [Name: NewColumns]
  /// The rows for the store to write, in the order of their operations.
  private(set) var rows: [IngestEffects.ColumnRow] = []

  init(_ context: IngestContext) {
    limit = context.limits.tableColumns
    schema = context.schema
    tables = context.newColumns
  }

  /// Adds the columns of an operation. Returns the refusal if the table has no room for one more.
  ///
  /// - Parameter batch: For a batch's effect: the operation to name in the refusal.
  mutating func add(_ operation: SyncOperation, for batch: OperationID? = nil) -> Refusal? {
    if tables.isEmpty || operation.kind == .delete { return nil }
    let table = operation.key.table
    for column in operation.columns {
      guard tables[table]?.names.contains(column.name) == true, let count = tables[table]?.count
      else { continue }
      let isDeclared = schema?.tables[table]?.names(column: column.name) ?? false
      guard isDeclared || count < limit else {
        return Refusal(
          operation.named(batch), .tooManyColumns,
          "table \(table) has \(count) columns, but not \(column.name); \(limit) are allowed "
            + "beside those of its schema")
      }
      tables[table]?.names.remove(column.name)
      if !isDeclared { tables[table]?.count += 1 }
      rows.append(
        IngestEffects.ColumnRow(table: table, name: column.name, isDeclared: isDeclared))
    }
    return nil
  }
}

/// New columns of a table, written by a batch.
package struct NewColumns: Sendable, Equatable {
  var names: Set<Name>
  /// The columns of the table that count.
  var count: Int
}

extension IngestContext {
  /// Adds the columns of a table that the store lacks.
  mutating func addNewColumns(_ names: Set<Name>, of table: Name, besides count: Int) {
    newColumns[table, default: NewColumns(names: [], count: count)].names.formUnion(names)
  }
}

extension TableRules {
  /// Returns whether the rules or the definition name a column.
  fileprivate func names(column: Name) -> Bool {
    columns[column] != nil || definition?.columns.contains { $0.name == column } == true
  }
}

extension [Packet] {
  /// The columns written by these packets, by table.
  var writtenColumns: [Name: Set<Name>] {
    var tables: [Name: Set<Name>] = [:]
    for packet in self {
      var last: (table: Name, columns: [Column])?
      for operation in packet.operations where operation.kind != .delete {
        // Most operations write the same columns as the one before.
        if let last, last.table == operation.key.table,
          last.columns.haveNames(of: operation.columns)
        {
          continue
        }
        last = (operation.key.table, operation.columns)
        tables[operation.key.table, default: []].formUnion(operation.columns.lazy.map(\.name))
      }
    }
    return tables.filter { !$0.value.isEmpty }
  }
}

extension [Column] {
  fileprivate func haveNames(of other: [Column]) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0.name == $1.name }
  }
}
