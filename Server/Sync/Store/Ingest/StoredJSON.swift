import FerryProtocol

// The stored form of parts of operations: the same JSON as on the wire.

extension Limits {
  /// Limits for reading stored data: it was checked when it came in, perhaps against other limits.
  static let stored: Limits = {
    var limits = Limits()
    limits.operationsPerPacket = .max
    limits.valueBytes = .max
    limits.operationBytes = .max / 4
    limits.columns = .max
    limits.nameBytes = .max
    limits.recordBytes = .max
    limits.predicateNodes = .max
    limits.reasonBytes = .max / 16
    return limits
  }()
}

extension [ColumnState] {
  /// Returns the columns as JSON, in the form of `operations.data`.
  func encodedColumns() -> [UInt8] {
    var json = JSONWriter(capacity: 16 + reduce(0) { $0 + $1.jsonBytes })
    json.columns(map { Column($0.name, $0.value) })
    return json.finish()
  }
}

extension SyncOperation {
  func encodedColumns() -> [UInt8] {
    var json = JSONWriter(capacity: 16 + columns.reduce(0) { $0 + $1.jsonBytes })
    json.columns(columns)
    return json.finish()
  }

  /// Returns the columns' own times, none later than the operation's if this was clamped.
  func encodedTimes(clampedTo stampTime: HybridTimestamp) -> [UInt8] {
    var json = JSONWriter(capacity: columnTimes.count * 40)
    json.object(of: columnTimes) { json, time in json.string(min(time, stampTime)) }
    return json.finish()
  }
}

extension Outcome {
  /// An outcome with more lost values than an answer quotes. The history has them.
  static let unquoted = Outcome(isOverruled: true, omitted: 1)

  func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 128)
    json.outcome(self)
    return json.finish()
  }

  /// Reads the output of ``encoded()``.
  init(stored bytes: UnsafeRawBufferPointer) throws(MalformedMessage) {
    var reader = JSONReader(bytes)
    try self.init(from: &reader, limits: .stored)
    try reader.end()
  }
}

extension DeviceChain {
  /// The recent tails as they are stored: sixteen bytes each, oldest first.
  var recentBytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(recent.count * 16)
    for tail in recent {
      withUnsafeBytes(of: (tail.value.high.bigEndian, tail.value.low.bigEndian)) {
        bytes.append(contentsOf: $0)
      }
    }
    return bytes
  }

  /// Creates a chain from stored parts.
  init(
    tail: OperationID, recentBytes: UnsafeRawBufferPointer, operations: Int64, isTrimmed: Bool
  ) {
    let recent = stride(from: 0, to: recentBytes.count - 15, by: 16).compactMap { offset in
      UniqueID(bytes: UnsafeRawBufferPointer(rebasing: recentBytes[offset..<offset + 16]))
    }
    self.init(
      tail: tail, recent: recent.map { OperationID($0) }, operations: operations,
      isTrimmed: isTrimmed)
  }
}
