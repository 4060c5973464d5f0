import FerryProtocol

/// An estimate of the bytes that merges of sets and texts, and unique keys, read while packets are applied.
///
/// A set is read whole for each operation on it, a text several times, and so are the columns of a unique key.
/// A packet of some kilobytes can so need seconds over large records.
struct MergeWork {
  private static let readsOfText = 16

  private let schema: SpaceSchema
  private let records: [RecordKey: RecordState]
  /// The sizes of columns after the operations so far.
  private var sizes: [RecordKey: [Name: Int]] = [:]
  private(set) var bytes = 0

  /// - Returns: `nil` for a space whose schema has no rules.
  init?(_ context: IngestContext) {
    guard let schema = context.schema else { return nil }
    (self.schema, records) = (schema, context.records)
  }

  /// Adds the work of a packet, which comes after those before.
  mutating func add(_ packet: Packet) {
    for operation in packet.operations where operation.batch == nil {
      guard let rules = schema.tables[operation.key.table] else { continue }
      add(operation, rules)
    }
  }

  private mutating func add(_ operation: SyncOperation, _ rules: TableRules) {
    let merged = operation.columns.filter {
      [.setUnion, .textMerge].contains(rules.policy(of: $0.name))
    }
    let keys = operation.mayChange(rules.unique) ? rules.unique : []
    if merged.isEmpty && keys.isEmpty { return }
    var known = sizes[operation.key] ?? sizesBefore(of: operation.key)
    for column in merged {
      let isText = rules.policy(of: column.name) == .textMerge
      let both = known[column.name, default: 0] + column.value.byteCount
      bytes += isText ? both * Self.readsOfText : both
      known[column.name] = isText ? column.value.byteCount : both
    }
    for column in operation.columns where !merged.contains(where: { $0.name == column.name }) {
      known[column.name] = column.value.byteCount
    }
    for key in keys { bytes += key.reduce(0) { $0 + known[$1, default: 0] } }
    sizes[operation.key] = known
  }

  private func sizesBefore(of key: RecordKey) -> [Name: Int] {
    var found: [Name: Int] = [:]
    for column in records[key]?.columns ?? [] { found[column.name] = column.value.byteCount }
    return found
  }
}
