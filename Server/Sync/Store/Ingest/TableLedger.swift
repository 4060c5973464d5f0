import FerryProtocol

/// The tables of a space while a batch is applied: their number is limited (SPEC.md §10).
///
/// Tables of the space's schema do not count: an admin has named them, and a member who fills the
/// space with tables hinders none of them.
struct TableLedger {
  private let limit: Int
  private let declared: SpaceSchema?
  /// The tables with records. `nil` if the batch has no operation on another one.
  private var present: Set<Name>?
  private var count = 0

  init(_ context: IngestContext) {
    limit = context.limits.tables
    declared = context.schema
    present = context.tables
    count = context.tables?.count { isCounted($0) } ?? 0
  }

  private func isCounted(_ table: Name) -> Bool {
    !NameRule.isReserved(table: table) && declared?.tables[table] == nil
  }

  /// Adds the table of an operation that creates a record. Returns the refusal if the space has no
  /// room for one more.
  mutating func add(_ operation: SyncOperation) -> Refusal? {
    let table = operation.key.table
    guard let present, !present.contains(table), isCounted(table) else { return nil }
    guard count < limit else {
      return Refusal(
        operation, .tooManyTables,
        "the space has \(count) tables; \(limit) are allowed beside those of its schema")
    }
    self.present?.insert(table)
    count += 1
    return nil
  }
}

extension IngestContext {
  /// The most table names to load: those that count, those of a schema, and the server's own.
  var tablesLoadedMax: Int { limits.tables + limits.schemaTables + 16 }
}

extension [Packet] {
  /// The tables in which these packets may create records.
  var writtenTables: Set<Name> {
    var tables = Set<Name>()
    for packet in self {
      var last: Name?
      for operation in packet.operations
      where operation.batch == nil && operation.key.table != last {
        last = operation.key.table
        tables.insert(operation.key.table)
      }
    }
    return tables
  }
}
