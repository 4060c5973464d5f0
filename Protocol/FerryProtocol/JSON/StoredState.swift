// The stored form of a record's state on servers: the writes of SPEC.md §5 in order. Their
// places and stamps are binary, and their columns are the JSON of a page. A head takes some 30 bytes
// in place of 120, and a server still sends a state without reading the values.
//
//     write  = flags sequence time device [origin] [shared] [length] columns
//     flags  = the kind in bits 0 and 1 (0 columns alone, 1 insert, 2 delete), bit 2 if there is an
//              origin, bit 3 if there is a `shared`, bit 4 if it is the last write
//     time   = eight bytes, device = sixteen bytes, both big endian
//
// Sequence, origin, shared and length are integers of 7 bits a byte, the lowest first; the highest
// bit of a byte is set if another follows. The last write has no length: its columns reach to the
// end.

extension RecordState {
  /// Returns the state as a server keeps it; ``init(stored:limits:)`` reads it.
  package func stored() -> [UInt8] {
    let keys = writeKeys
    // Large states are not moved while they grow.
    var json = JSONWriter(capacity: 16 + keys.count * 48 + columns.reduce(0) { $0 + $1.jsonBytes })
    for (index, key) in keys.enumerated() {
      let isLast = index == keys.count - 1
      let kind = kind(of: key)
      json.storedHead(key, kind, isLast: isLast)
      if kind == .delete { continue }
      if isLast {
        json.columns(of: self, in: key, isOnly: keys.count == 1)
      } else {
        let size = columns.reduce(0) { WriteKey($1) == key ? $0 + $1.jsonBytes : $0 }
        var data = JSONWriter(capacity: size)
        data.columns(of: self, in: key, isOnly: false)
        json.varint(UInt64(data.count))
        json.raw(data.finish())
      }
    }
    return json.finish()
  }

  /// Reads a stored state of a server.
  ///
  /// - Throws: `MalformedMessage` if the bytes are not a state.
  package init(stored bytes: UnsafeRawBufferPointer, limits: Limits) throws(MalformedMessage) {
    self.init()
    var writes = StoredWrites(bytes)
    var count = 0
    while let write = try writes.next() {
      count += 1
      let sequenced = SequencedStamp(
        stamp: write.key.stamp, sequence: write.key.sequence, origin: write.key.origin)
      switch write.kind {
      case .insert: inserted = sequenced
      case .delete: deleted = sequenced
      case .update, .batch: break
      }
      if write.kind != .delete { try apply(write, limits) }
    }
    if count > 1 { columns.sort { $0.name < $1.name } }
  }

  private mutating func apply(_ write: StoredWrite, _ limits: Limits) throws(MalformedMessage) {
    var reader = JSONReader(write.data, depth: limits.depth)
    let key = write.key
    try reader.eachColumn(limits: limits) { name, value in
      columns.append(
        ColumnState(
          name: name, value: value, stamp: key.stamp, sequence: key.sequence, origin: key.origin,
          shared: key.shared))
    }
    try reader.end()
  }
}

extension JSONWriter {
  /// Writes a stored state as on the wire, without reading the values.
  ///
  /// - Throws: `MalformedMessage` if the bytes are not a state; the output is then useless.
  package mutating func state(stored bytes: UnsafeRawBufferPointer) throws(MalformedMessage) {
    var writes = StoredWrites(bytes)
    beginArray()
    while let write = try writes.next() {
      element()
      beginWrite(write.key, kind: write.kind)
      raw(write.data)
      endObject()
    }
    endArray()
  }

  fileprivate mutating func storedHead(_ key: WriteKey, _ kind: OperationKind?, isLast: Bool) {
    var flags = StoredWrites.code(of: kind)
    if key.origin != key.sequence { flags |= StoredWrites.hasOrigin }
    if key.shared != 0 { flags |= StoredWrites.hasShared }
    if isLast { flags |= StoredWrites.isLast }
    byte(flags)
    varint(UInt64(bitPattern: key.sequence))
    let device = key.stamp.device.value
    withUnsafeBytes(
      of: (key.stamp.time.rawValue.bigEndian, device.high.bigEndian, device.low.bigEndian)
    ) { raw($0) }
    if key.origin != key.sequence { varint(UInt64(bitPattern: key.origin)) }
    if key.shared != 0 { varint(UInt64(bitPattern: key.shared)) }
  }

  fileprivate mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      byte(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    byte(UInt8(truncatingIfNeeded: rest))
  }
}

/// One write of a kept state.
private struct StoredWrite {
  let kind: OperationKind
  let key: WriteKey
  /// The columns as JSON; empty for a delete.
  let data: UnsafeRawBufferPointer
}

/// The writes of a kept state, one after another.
private struct StoredWrites {
  static let hasOrigin: UInt8 = 1 << 2
  static let hasShared: UInt8 = 1 << 3
  static let isLast: UInt8 = 1 << 4
  private static let knownFlags: UInt8 = 0x1F
  /// Bytes of time and device.
  private static let stampBytes = 24

  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  private var isAtEnd = false

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  static func code(of kind: OperationKind?) -> UInt8 {
    switch kind {
    case .insert: 1
    case .delete: 2
    case .update, .batch, nil: 0
    }
  }

  /// Returns the next write; `nil` after the last one, or if there are no bytes.
  mutating func next() throws(MalformedMessage) -> StoredWrite? {
    if isAtEnd || bytes.isEmpty { return nil }
    guard position < bytes.count else { throw malformed() }
    let flags = bytes[position]
    position += 1
    guard flags & ~Self.knownFlags == 0 else { throw malformed() }
    isAtEnd = flags & Self.isLast != 0
    let kind: OperationKind =
      switch flags & 3 {
      case 0: .update
      case 1: .insert
      case 2: .delete
      default: throw malformed()
      }
    let sequence = try integer()
    guard bytes.count - position >= Self.stampBytes else { throw malformed() }
    let stamp = Stamp(
      time: HybridTimestamp(rawValue: word(at: 0)),
      device: DeviceID(UniqueID(high: word(at: 8), low: word(at: 16))))
    position += Self.stampBytes
    let origin = flags & Self.hasOrigin == 0 ? sequence : try integer()
    let shared = flags & Self.hasShared == 0 ? 0 : try integer()
    let key = WriteKey(sequence: sequence, stamp: stamp, origin: origin, shared: shared)
    let start = position
    if kind == .delete {
      if isAtEnd && position < bytes.count { throw malformed() }
      return StoredWrite(
        kind: kind, key: key, data: UnsafeRawBufferPointer(rebasing: bytes[start..<start]))
    }
    let count = isAtEnd ? bytes.count - start : Int(try integer())
    let end = (isAtEnd ? start : position).addingReportingOverflow(count)
    guard !end.overflow, end.partialValue <= bytes.count else { throw malformed() }
    let data = bytes[end.partialValue - count..<end.partialValue]
    position = end.partialValue
    return StoredWrite(kind: kind, key: key, data: UnsafeRawBufferPointer(rebasing: data))
  }

  /// Reads a non-negative integer.
  private mutating func integer() throws(MalformedMessage) -> Int64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 63, by: 7) {
      guard position < bytes.count else { throw malformed() }
      let byte = bytes[position]
      position += 1
      value |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return Int64(value) }
    }
    throw malformed()
  }

  private func word(at offset: Int) -> UInt64 {
    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: position + offset, as: UInt64.self))
  }

  private func malformed() -> MalformedMessage {
    MalformedMessage(reason: "the bytes are no state of a record", offset: position)
  }
}
