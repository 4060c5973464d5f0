import FerryProtocol

/// Merges a device's operations on one record into as few as say the same (seed row S1.9).
///
/// insert+update → insert; update+update → one update; insert+delete → nothing; update+delete →
/// delete. Where the server has told of the record meanwhile, an insert and its delete are a
/// delete: it has something to delete. A delete followed by an insert stays as it is: the record
/// begins anew. Each column keeps the time at which it was written, so merging never changes who
/// wins.
///
/// Operations that together would be larger than one may be stay apart.
struct OperationMerger {
  private let limits: Limits
  private var slots: [Operation?] = []
  private var positions: [RecordKey: Int] = [:]
  private var met: Set<RecordKey> = []
  /// Operations left after merging.
  private(set) var count = 0
  /// About the bytes that they take in a packet.
  private(set) var bytes = 0

  init(limits: Limits = .standard) { self.limits = limits }

  /// What is left, ids ascending.
  var operations: [Operation] { slots.compactMap { $0 } }

  /// - Parameter isMet: whether the server has told of the record since the operation was made.
  mutating func add(_ operation: Operation, isMet: Bool = false) {
    if isMet { met.insert(operation.key) }
    guard let position = positions[operation.key], let earlier = slots[position] else {
      return append(operation)
    }
    switch (earlier.kind, operation.kind) {
    case (.insert, .update), (.update, .update), (.insert, .insert), (.update, .insert):
      guard earlier.packetBytes + operation.packetBytes <= limits.operationBytes else {
        return append(operation)
      }
      if operation.time < earlier.time {
        // A rescued row is recorded after what was written to it, and is older than that.
        replace(position, with: Self.joined(operation, earlier))
      } else {
        remove(position)
        append(Self.joined(earlier, operation))
      }
    case (.insert, .delete) where !met.contains(operation.key):
      remove(position)
      positions[operation.key] = nil
    case (.insert, .delete), (.update, .delete):
      remove(position)
      append(operation)
    case (.delete, _):
      append(operation)
    }
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

  /// One operation with the later one's id and time, and the columns of both.
  private static func joined(_ earlier: Operation, _ later: Operation) -> Operation {
    var joined = later
    joined.kind = earlier.kind == .insert || later.kind == .insert ? .insert : .update
    joined.base = min(earlier.base, later.base)
    joined.columns = earlier.columns.filter { column in
      !later.columns.contains { $0.name == column.name }
    }
    for column in joined.columns {
      joined.columnTimes[column.name] = earlier.time(of: column.name)
    }
    joined.columns += later.columns
    return joined
  }
}

extension Operation {
  /// The bytes that the operation takes in a packet, or a few more.
  var packetBytes: Int {
    columns.reduce(240 + key.record.utf8.count + key.table.utf8.count) {
      $0 + $1.name.utf8.count + $1.value.wireBytes + 40
    }
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
