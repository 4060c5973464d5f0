import FerryProtocol

/// An estimate of the work for a decision about packets, besides one step for each operation.
///
/// - A set is read whole for each operation on it, a text several times, and so are the columns of
///   a unique key. A packet of some kilobytes can so need seconds over large records.
/// - A batch examines each record touched by earlier operations.
/// - A record is encoded once for each packet with operations on it.
struct IngestWork {
  private static let readsOfText = 16
  /// Steps of a comparison of lines, whose number grows with the square of the edits, for each
  /// byte.
  private static let stepsPerByte = 4
  /// The work for a value, besides the bytes.
  private static let valueCost = 16

  private struct Touched {
    /// The bytes of the state after the operations so far.
    var bytes: Int
    /// The last packet that touched it.
    var packet = 0
    /// The sizes of all columns; `nil` before an operation needs them.
    var columns: [Name: Int]?
  }

  private let context: IngestContext
  private let limit: Int
  private var touched: [RecordKey: Touched] = [:]
  private var packets = 0
  /// Operations not in the history yet.
  private(set) var operations = 0
  /// Bytes read by merges and unique keys; the cost of predicates counts like bytes.
  private(set) var read = 0
  /// Bytes of encoded states.
  private(set) var encoded = 0

  /// - Parameters:
  ///   - context: With all data for the packets.
  ///   - limit: The bytes in ``read`` at which counting stops.
  init(_ context: IngestContext, upTo limit: Int) {
    (self.context, self.limit) = (context, limit)
  }

  /// Adds the work of a packet, which comes after those before.
  mutating func add(_ packet: Packet) {
    packets += 1
    for operation in packet.operations where context.known[operation.id] == nil {
      if read > limit { return }
      operations += 1
      let rules = context.schema?.tables[operation.key.table]
      if let batch = operation.batch {
        expand(operation, batch, rules)
      } else {
        add(operation, on: operation.key, rules)
      }
    }
  }

  /// Adds the effects of a batch: on the matching stored records, and on touched ones, which may
  /// match.
  private mutating func expand(_ operation: SyncOperation, _ batch: Batch, _ rules: TableRules?) {
    let (cost, overflows) = batch.predicate.cost.multipliedReportingOverflow(by: touched.count)
    read += overflows ? limit : min(cost, limit)
    let stored = context.matches[operation.id] ?? []
    let others = touched.keys.filter { $0.table == operation.key.table }
    for key in Set(stored).union(others) {
      if read > limit { return }
      add(operation, on: key, rules)
    }
  }

  private mutating func add(
    _ operation: SyncOperation, on key: RecordKey, _ rules: TableRules?
  ) {
    var record = touched[key] ?? Touched(bytes: context.recordBytes[key] ?? 0)
    let more = operation.columnBytes
    record.bytes += more
    encoded += record.packet == packets ? more : record.bytes
    record.packet = packets
    if let rules { merge(operation, into: &record, of: key, rules) }
    touched[key] = record
  }

  private mutating func merge(
    _ operation: SyncOperation, into record: inout Touched, of key: RecordKey, _ rules: TableRules
  ) {
    let merged = operation.columns.filter {
      [.setUnion, .textMerge].contains(rules.policy(of: $0.name))
    }
    let keys = operation.mayChange(rules.unique) ? rules.unique : []
    if merged.isEmpty && keys.isEmpty { return }
    let isFirst = record.columns == nil
    var sizes = record.columns ?? sizesBefore(of: key)
    record.columns = nil
    for column in merged {
      let isText = rules.policy(of: column.name) == .textMerge
      let both = sizes[column.name, default: 0] + column.value.byteCount
      let isConflict = isText && !(isFirst && extends(operation, column.name, of: key))
      read += Self.valueCost + (isConflict ? Self.merging(both, operation, column.name) : both)
      sizes[column.name] = isText ? column.value.byteCount : both
    }
    for column in operation.columns where !merged.contains(where: { $0.name == column.name }) {
      sizes[column.name] = column.value.byteCount
    }
    for key in keys { read += key.reduce(0) { $0 + Self.valueCost + sizes[$1, default: 0] } }
    record.columns = sizes
  }

  /// Returns `true` if a text replaces the value known to the author, so nothing is merged.
  private func extends(_ operation: SyncOperation, _ column: Name, of key: RecordKey) -> Bool {
    operation.original(of: column) == context.records[key]?.value(of: column)
  }

  /// Returns the bytes for a merge of a text, at most: each line of it may differ.
  private static func merging(_ both: Int, _ operation: SyncOperation, _ column: Name) -> Int {
    let bytes = both + (operation.original(of: column)?.byteCount ?? 0)
    let edits = min(bytes / 2, TextMerge.editsMax)
    return bytes * readsOfText + edits * edits / stepsPerByte
  }

  private func sizesBefore(of key: RecordKey) -> [Name: Int] {
    var found: [Name: Int] = [:]
    for column in context.records[key]?.columns ?? [] {
      found[column.name] = column.value.byteCount
    }
    return found
  }
}
