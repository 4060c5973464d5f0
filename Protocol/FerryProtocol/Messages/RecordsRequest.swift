/// A request for the whole state of single records, independent of the device's cursor (SPEC.md
/// §15).
package struct RecordsRequest: Sendable, Equatable {
  /// One at least, ``Limits/recordsPerRequest`` at most, none of them twice.
  package var keys: [RecordKey]

  package init(keys: [RecordKey]) { self.keys = keys }

  /// Returns the encoded request.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 16 + keys.count * 64)
    json.object { json in
      json.key("records")
      json.array(of: keys) { json, key in json.pair(key.table, key.record) }
    }
    return json.finish()
  }

  /// Reads a request and checks it against `limits`.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      var keys: [RecordKey]?
      try reader.object { (member, reader) throws(MalformedMessage) in
        guard case "records" = member else {
          try reader.skip()
          return
        }
        guard keys == nil else { throw reader.malformed("records is a duplicate") }
        keys = try reader.recordKeys(limits: limits)
      }
      guard let keys, !keys.isEmpty else { throw reader.malformed("no record is named") }
      return RecordsRequest(keys: keys)
    }
  }
}

extension JSONReader {
  fileprivate mutating func recordKeys(
    limits: Limits
  ) throws(MalformedMessage) -> [RecordKey] {
    var keys: [RecordKey] = []
    var seen = Set<RecordKey>()
    try array { (reader) throws(MalformedMessage) in
      guard keys.count < limits.recordsPerRequest else {
        throw reader.malformed("more than \(limits.recordsPerRequest) records")
      }
      let key = try reader.recordKey(limits: limits)
      guard seen.insert(key).inserted else {
        throw reader.malformed("record \(key.record) of table \(key.table) is a duplicate")
      }
      keys.append(key)
    }
    return keys
  }

  /// Returns a table's name and a record's identifier, in an array of two.
  private mutating func recordKey(limits: Limits) throws(MalformedMessage) -> RecordKey {
    var table: Name?
    var record: Name?
    try array { (reader) throws(MalformedMessage) in
      if table == nil {
        table = try reader.tableName(limits: limits)
      } else if record == nil {
        record = try reader.recordName(limits: limits)
      } else {
        throw reader.malformed("a record is named by table and identifier")
      }
    }
    guard let table, let record else {
      throw malformed("a record is named by table and identifier")
    }
    return RecordKey(table: table, record: record)
  }
}

extension Change {
  /// Returns the answer for a missing record: a delete at time 0 by device 0, at sequence 0.
  package static func absent(_ key: RecordKey) -> Change {
    let nobody = Stamp(time: .zero, device: DeviceID(UniqueID(high: 0, low: 0)))
    return Change(
      sequence: 0, key: key,
      state: RecordState(deleted: SequencedStamp(stamp: nobody, sequence: 0)))
  }
}
