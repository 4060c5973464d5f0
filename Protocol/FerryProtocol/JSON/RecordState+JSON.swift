// A record's state in JSON is the list of the remaining writes, oldest place in the order first.
// Each has a sequence, a stamp and all columns not overwritten by a later write (SPEC.md §5).

extension RecordState {
  /// Returns the state as on the wire.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 160 + columns.count * 32)
    json.state(self)
    return json.finish()
  }

  package init(decoding bytes: UnsafeRawBufferPointer, limits: Limits) throws(MalformedMessage) {
    var reader = JSONReader(bytes, depth: limits.depth)
    try self.init(from: &reader, limits: limits)
    try reader.end()
  }

  /// Returns only the parts missing on a device that has applied everything up to `cursor`; `nil`
  /// if it lacks nothing. With an `insert` the result is the whole record, with a `delete` the
  /// record is gone.
  package func since(_ cursor: SequenceNumber) -> RecordState? {
    guard isAlive else {
      guard let deleted, deleted.sequence > cursor else { return nil }
      return RecordState(deleted: deleted)
    }
    let fresh = columns.filter { $0.sequence > cursor }
    let inserted = inserted.flatMap { $0.sequence > cursor ? $0 : nil }
    if fresh.isEmpty && inserted == nil { return nil }
    return RecordState(inserted: inserted, columns: fresh)
  }

  /// A device with a cursor below this needs the whole state. The server then sends the stored
  /// values without reading them. 0 if there is no such cursor.
  package var wholeBelow: SequenceNumber {
    guard isAlive, deleted == nil, let inserted else {
      return deleted != nil && inserted == nil && columns.isEmpty ? deleted?.sequence ?? 0 : 0
    }
    var oldest = inserted.sequence
    for column in columns { oldest = min(oldest, column.sequence) }
    return oldest
  }
}

/// The place of a write in the list, with the common facts of all parts.
struct WriteKey: Hashable, Comparable {
  let sequence: SequenceNumber
  let stamp: Stamp
  let origin: SequenceNumber
  let shared: SequenceNumber

  static func < (left: WriteKey, right: WriteKey) -> Bool {
    (left.sequence, left.stamp, left.origin, left.shared)
      < (right.sequence, right.stamp, right.origin, right.shared)
  }
}

extension RecordState {
  /// The remaining writes, in order.
  var writeKeys: [WriteKey] {
    if let inserted, deleted == nil {
      let key = WriteKey(inserted)
      if columns.allSatisfy({ WriteKey($0) == key }) { return [key] }
    }
    var keys = Set(columns.map { WriteKey($0) })
    if let inserted { keys.insert(WriteKey(inserted)) }
    if let deleted { keys.insert(WriteKey(deleted)) }
    return keys.sorted()
  }

  /// Returns whether a write inserts or deletes the record; `nil` if it only sets columns.
  func kind(of key: WriteKey) -> OperationKind? {
    if let deleted, key == WriteKey(deleted) { return .delete }
    if let inserted, key == WriteKey(inserted) { return .insert }
    return nil
  }
}

extension JSONWriter {
  package mutating func state(_ state: RecordState) {
    let keys = state.writeKeys
    array(of: keys) { json, key in
      let kind = state.kind(of: key)
      json.beginWrite(key, kind: kind)
      if kind != .delete { json.columns(of: state, in: key, isOnly: keys.count == 1) }
      json.endObject()
    }
  }

  /// Writes the head of a write. Columns follow unless it is a delete, then ``endObject()``.
  mutating func beginWrite(_ key: WriteKey, kind: OperationKind?) {
    block { text in
      text.append(#"{"sequence":""#)
      text.append(decimal: key.sequence)
      text.append(#"","time":""#)
      text.append(hex: key.stamp.time.rawValue)
      text.append(#"","device":""#)
      text.append(key.stamp.device.value)
      if key.origin != key.sequence {
        text.append(#"","origin":""#)
        text.append(decimal: key.origin)
      }
      if key.shared != 0 {
        text.append(#"","shared":""#)
        text.append(decimal: key.shared)
      }
      switch kind {
      case .delete: text.append(#"","kind":"delete""#)
      case .insert: text.append(#"","kind":"insert","data":"#)
      case .update, .batch, nil: text.append(#"","data":"#)
      }
    }
  }

  /// Writes the remaining columns of this write.
  mutating func columns(of state: RecordState, in key: WriteKey, isOnly: Bool) {
    object { json in
      for column in state.columns where isOnly || WriteKey(column) == key {
        json.key(named: column.name)
        json.value(column.value)
      }
    }
  }
}

extension WriteKey {
  init(_ stamp: SequencedStamp) {
    self.init(sequence: stamp.sequence, stamp: stamp.stamp, origin: stamp.origin, shared: 0)
  }

  init(_ column: ColumnState) {
    self.init(
      sequence: column.sequence, stamp: column.stamp, origin: column.origin, shared: column.shared)
  }
}

extension RecordState {
  package init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var state = RecordState()
    var count = 0
    var last: WriteKey?
    try reader.array { (reader) throws(MalformedMessage) in
      let key = try state.readWrite(from: &reader, limits: limits)
      if let last, !(last < key) {
        throw reader.malformed("a record's writes are not in the order of sequence and stamp")
      }
      last = key
      count += 1
    }
    // A single write has been looked at.
    if count > 1 && !state.columns.ascend {
      state.columns.sort { $0.name < $1.name }
      guard state.columns.ascend else {
        throw reader.malformed("a column is in two writes of its record")
      }
    }
    self = state
  }

  /// Reads a write. Refuses one that ``RecordState`` cannot hold as it is: the state would be
  /// stored and sent as another one.
  ///
  /// - Returns: The place of the write.
  private mutating func readWrite(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> WriteKey {
    var sequence: SequenceNumber?
    var time: HybridTimestamp?
    var device: DeviceID?
    var origin: SequenceNumber?
    var shared: SequenceNumber = 0
    var kind: OperationKind = .update
    var hasData = false
    let first = columns.count
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "sequence": sequence = try reader.sequence()
      case "time": time = try reader.timestamp()
      case "device": device = DeviceID(try reader.uniqueID())
      case "origin": origin = try reader.sequence()
      case "shared": shared = try reader.sequence()
      case "kind": kind = OperationKind(try reader.word()) ?? .update
      case "data":
        hasData = true
        if first == 0 { columns.reserveCapacity(reader.recent?.count ?? 0) }
        columns.removeSubrange(first...)
        // Stamp and sequence may come behind the data; they are filled in below.
        try reader.eachColumn(limits: limits) { name, value in
          columns.append(
            ColumnState(name: name, value: value, stamp: unknownStamp, sequence: 0))
        }
      default: try reader.skip()
      }
    }
    if !(first == 0 && columns.ascend(readBy: reader)) {
      try reader.refuseRepeats(columns.count - first) { columns[first + $0].name }
      if first == 0 { columns.sort { $0.name < $1.name } }
    }
    guard let sequence, let time, let device else {
      throw reader.malformed("a write without sequence, time or device")
    }
    let stamp = Stamp(time: time, device: device)
    let sequenced = SequencedStamp(stamp: stamp, sequence: sequence, origin: origin)
    switch kind {
    case .insert:
      guard inserted == nil else { throw reader.malformed("a record has two inserts") }
      inserted = sequenced
    case .delete:
      guard deleted == nil else { throw reader.malformed("a record has two deletes") }
      guard !hasData else { throw reader.malformed("a delete has no data") }
      deleted = sequenced
    case .update, .batch: break
    }
    guard shared == 0 || kind == .update || kind == .batch else {
      throw reader.malformed("an insert or a delete is not shared by several devices")
    }
    for index in first..<columns.count {
      columns[index].stamp = stamp
      columns[index].sequence = sequence
      columns[index].origin = sequenced.origin
      columns[index].shared = shared
    }
    return WriteKey(
      sequence: sequence, stamp: stamp, origin: sequenced.origin, shared: shared)
  }
}

extension [ColumnState] {
  /// Returns `true` if the columns read last ascend. Names stored by the reader are in the places
  /// in which it has compared them.
  @inline(__always)
  fileprivate func ascend(readBy reader: JSONReader) -> Bool {
    if let recent = reader.recent, recent.ascend(count) { return true }
    return ascend
  }

  /// True if the names ascend. By index: a loop over the columns would copy each one.
  fileprivate var ascend: Bool {
    for index in indices.dropFirst() where !(self[index - 1].name < self[index].name) {
      return false
    }
    return true
  }
}

private let unknownStamp = Stamp(
  time: .zero, device: DeviceID(UniqueID(high: 0, low: 0)))
