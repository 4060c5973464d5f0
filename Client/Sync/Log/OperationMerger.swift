import FerryProtocol

/// Merges a device's operations on one record into the fewest equivalent ones (SPEC.md §4, §6).
///
/// | operations | result |
/// |---|---|
/// | insert, update | insert |
/// | update, update | one update |
/// | insert, delete | nothing; a delete if a change of the record has come from the server |
/// | update, delete | delete |
/// | delete, insert | both: the record starts again |
///
/// Each column keeps the time of the write, so merging never changes the winner. Operations stay
/// separate in these cases:
///
/// - between them is a batch operation on the same table,
/// - together they exceed the size of one operation,
/// - the server's policies would decide differently about one operation than about the two,
/// - a delete returned to the queue behind a later write,
/// - they have different reasons (SPEC.md §15).
struct OperationMerger {
  private let limits: Limits
  private let schema: SpaceSchema
  private var slots: [SyncOperation?] = []
  private var positions: [RecordKey: Int] = [:]
  private var concurrent: Set<RecordKey> = []
  /// The number of operations after merging.
  private(set) var count = 0
  /// Their approximate bytes in a packet.
  private(set) var bytes = 0

  init(limits: Limits = .standard, schema: SpaceSchema = .empty) {
    self.limits = limits
    self.schema = schema
  }

  /// The merged operations, in ascending order of ids.
  var operations: [SyncOperation] { slots.compactMap { $0 } }

  /// Adds an operation.
  ///
  /// - Parameters:
  ///   - isConcurrent: true if a change of the record has come from the server since the operation
  ///     was made.
  ///   - isApart: true if a packet with the operation kept it separate from the one before it.
  /// - Returns: True if the operation stays separate from the one before it on the same record,
  ///   although other rules or other bases could join the two. A packet records this, because the
  ///   device may forget the bases before it sends the packet again.
  @discardableResult
  mutating func add(_ operation: SyncOperation, isConcurrent: Bool = false, isApart: Bool = false)
    -> Bool
  {
    if operation.batch != nil {
      separate(by: operation)
      return false
    }
    if isConcurrent { concurrent.insert(operation.key) }
    guard let position = positions[operation.key], let earlier = slots[position],
      earlier.reason == operation.reason,
      operation.kind != .delete || earlier.time <= operation.time
    else {
      append(operation)
      return false
    }
    switch (earlier.kind, operation.kind) {
    case (.insert, .update), (.update, .update), (.insert, .insert), (.update, .insert):
      // A re-uploaded row is recorded after later writes to it, with an older time.
      let isRescue = operation.time < earlier.time
      let (older, newer) = isRescue ? (operation, earlier) : (earlier, operation)
      guard !isApart, earlier.packetBytes + operation.packetBytes <= limits.operationBytes,
        let joined = older.joined(with: newer, rules: schema.rules(for: operation.key.table))
      else {
        append(operation)
        return true
      }
      if isRescue {
        replace(position, with: joined)
      } else {
        remove(position)
        append(joined)
      }
    case (.insert, .delete) where !concurrent.contains(operation.key):
      remove(position)
      positions[operation.key] = nil
    case (.insert, .delete), (.update, .delete):
      remove(position)
      append(operation)
    case (.delete, _), (.batch, _), (_, .batch):
      append(operation)
    }
    return false
  }

  /// Keeps the operations of a batch's table before and after it separate: the effect depends on
  /// the records at that point.
  private mutating func separate(by batch: SyncOperation) {
    for key in positions.keys.filter({ $0.isIn(tableOf: batch.key) }) { positions[key] = nil }
    slots.append(batch)
    count += 1
    bytes += batch.packetBytes
  }

  private mutating func append(_ operation: SyncOperation) {
    positions[operation.key] = slots.count
    slots.append(operation)
    count += 1
    bytes += operation.packetBytes
  }

  private mutating func replace(_ position: Int, with operation: SyncOperation) {
    bytes += operation.packetBytes - (slots[position]?.packetBytes ?? 0)
    slots[position] = operation
  }

  private mutating func remove(_ position: Int) {
    bytes -= slots[position]?.packetBytes ?? 0
    slots[position] = nil
    count -= 1
  }
}

extension SyncOperation {
  /// An upper bound of the operation's bytes in a packet.
  var packetBytes: Int {
    // The row in a delete's columns stays on the device.
    if kind == .delete {
      return 240 + key.record.utf8.count + key.table.utf8.count + reasonBytes
    }
    let added = increments.reduce(reasonBytes) { $0 + $1.utf8.count + 4 } + predicateBytes
    return (originals.isEmpty ? columns : columns + originals).reduce(
      240 + key.record.utf8.count + key.table.utf8.count + added
    ) { $0 + $1.name.utf8.count + $1.value.wireBytes + 40 }
  }

  private var reasonBytes: Int { Self.packetBytes(ofReason: reason) }

  /// Returns an upper bound of a reason's bytes in a packet, with the name of the member.
  static func packetBytes(ofReason reason: String?) -> Int {
    reason.map { Value.text($0).wireBytes + 12 } ?? 0
  }

  private var predicateBytes: Int {
    guard let batch else { return 0 }
    var json = JSONWriter()
    json.predicate(batch.predicate)
    return json.count
  }
}

extension RecordKey {
  fileprivate func isIn(tableOf other: RecordKey) -> Bool {
    table == other.table
  }
}

extension Value {
  /// An upper bound of the value's bytes as JSON.
  fileprivate var wireBytes: Int {
    switch self {
    case .null, .integer, .real: 32
    case .blob(let bytes): (bytes.count + 2) / 3 * 4 + 12
    case .text(let text):
      text.utf8.reduce(2) { count, byte in
        count + (byte < 0x20 ? 6 : byte == 0x22 || byte == 0x5C ? 2 : 1)
      }
    }
  }
}
