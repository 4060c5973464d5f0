import FerryProtocol

/// Merges a device's operations on one record into as few as say the same (seed row S1.9).
///
/// insert+update → insert; update+update → one update; insert+delete → nothing; update+delete →
/// delete. Where the server has told of the record meanwhile, an insert and its delete are a
/// delete: it has something to delete. A delete followed by an insert stays as it is: the record
/// begins anew. Each column keeps the time at which it was written, so merging never changes who
/// wins. Nothing is merged across a batch operation on the same table.
///
/// Operations that together would be larger than one may be stay apart, and so do those of which
/// the server would decide otherwise by its policies if they were one, and a delete that came back
/// to the queue behind a later write.
struct OperationMerger {
  private let limits: Limits
  private let schema: SpaceSchema
  private var slots: [Operation?] = []
  private var positions: [RecordKey: Int] = [:]
  private var met: Set<RecordKey> = []
  /// Operations left after merging.
  private(set) var count = 0
  /// About the bytes that they take in a packet.
  private(set) var bytes = 0

  init(limits: Limits = .standard, schema: SpaceSchema = .empty) {
    self.limits = limits
    self.schema = schema
  }

  /// What is left, ids ascending.
  var operations: [Operation] { slots.compactMap { $0 } }

  /// - Parameters:
  ///   - isMet: whether the server has told of the record since the operation was made.
  ///   - isApart: whether a packet that holds the operation kept it apart from the one before it.
  /// - Returns: whether the operation stays apart from the one before it on its record, although
  ///   the two could be one under other rules, or with other bases. A packet remembers that: what
  ///   its authors had seen may be forgotten before it is sent again.
  @discardableResult
  mutating func add(_ operation: Operation, isMet: Bool = false, isApart: Bool = false) -> Bool {
    if operation.batch != nil {
      separate(by: operation)
      return false
    }
    if isMet { met.insert(operation.key) }
    guard let position = positions[operation.key], let earlier = slots[position],
      operation.kind != .delete || earlier.time <= operation.time
    else {
      append(operation)
      return false
    }
    switch (earlier.kind, operation.kind) {
    case (.insert, .update), (.update, .update), (.insert, .insert), (.update, .insert):
      // A rescued row is recorded after what was written to it, and is older than that.
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
    case (.insert, .delete) where !met.contains(operation.key):
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

  /// A batch stands between the operations of its table before and after it: what it does depends
  /// on what they have made of their records by then.
  private mutating func separate(by batch: Operation) {
    for key in positions.keys.filter({ $0.isIn(tableOf: batch.key) }) { positions[key] = nil }
    slots.append(batch)
    count += 1
    bytes += batch.packetBytes
  }

  private mutating func append(_ operation: Operation) {
    positions[operation.key] = slots.count
    slots.append(operation)
    count += 1
    bytes += operation.packetBytes
  }

  private mutating func replace(_ position: Int, with operation: Operation) {
    bytes += operation.packetBytes - (slots[position]?.packetBytes ?? 0)
    slots[position] = operation
  }

  private mutating func remove(_ position: Int) {
    bytes -= slots[position]?.packetBytes ?? 0
    slots[position] = nil
    count -= 1
  }
}

extension Operation {
  /// The bytes that the operation takes in a packet, or a few more.
  var packetBytes: Int {
    // What a delete has of its row stays here.
    if kind == .delete { return 240 + key.record.utf8.count + key.table.utf8.count }
    let added = increments.reduce(0) { $0 + $1.utf8.count + 4 } + predicateBytes
    return (originals.isEmpty ? columns : columns + originals).reduce(
      240 + key.record.utf8.count + key.table.utf8.count + added
    ) { $0 + $1.name.utf8.count + $1.value.wireBytes + 40 }
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
  /// The bytes that the value takes as JSON, or a few more.
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
