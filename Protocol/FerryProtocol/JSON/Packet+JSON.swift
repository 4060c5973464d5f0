extension Packet {
  /// Returns the encoded packet (SPEC.md §4).
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256 + operations.count * 256)
    json.packetHead(self)
    let base = operations.first?.base ?? 0
    for operation in operations {
      json.element()
      json.operation(operation, packetBase: base)
    }
    json.endArray()
    json.endObject()
    return json.finish()
  }

  /// Reads a packet and checks it against `limits`.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      try Packet(from: &reader, limits: limits)
    }
  }

  init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var device: DeviceID?
    var dependency: OperationID?
    var continues = false
    var isAuthoritative = false
    var base: SequenceNumber = 0
    var operations: [SyncOperation] = []
    var seen = MembersSeen()
    var unknown = Set<[UInt8]>()
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "device":
        try seen.add("device", 0, reader)
        device = DeviceID(try reader.uniqueID())
      case "dependency":
        try seen.add("dependency", 1, reader)
        if try !reader.null() { dependency = OperationID(try reader.uniqueID()) }
      case "continues":
        try seen.add("continues", 2, reader)
        continues = try reader.bool()
      case "authority":
        try seen.add("authority", 5, reader)
        isAuthoritative = try reader.bool()
      case "base":
        try seen.add("base", 3, reader)
        base = try reader.sequence()
      case "operations":
        try seen.add("operations", 4, reader)
        operations = try SyncOperation.list(from: &reader, limits: limits)
      default: try reader.skipUnknown(key, &unknown)
      }
    }
    guard let device else { throw reader.malformed("the packet names no device") }
    guard device != .server else {
      throw reader.malformed("device \(device) is the server's own; a device takes another one")
    }
    guard !operations.isEmpty else { throw reader.malformed("the packet has no operations") }
    try checkIdentifiers(of: operations, reader)
    // Members come in any order, so the packet's base may come after the operations.
    for index in operations.indices where operations[index].base == unstatedBase {
      operations[index].base = base
    }
    self.init(
      device: device, dependency: dependency, operations: operations, continues: continues,
      isAuthoritative: isAuthoritative)
  }
}

/// A placeholder for the packet's base before it is known.
private let unstatedBase: SequenceNumber = -1

/// The members of an object read so far. Readers of JSON differ in the meaning of a duplicate
/// member (RFC 8259 §4), so it is refused.
private struct MembersSeen {
  private var bits: UInt16 = 0

  mutating func add(
    _ name: StaticString, _ bit: UInt16, _ reader: JSONReader
  ) throws(MalformedMessage) {
    guard bits & (1 << bit) == 0 else { throw reader.malformed("\(name) is a duplicate") }
    bits |= 1 << bit
  }
}

/// Throws an error unless the ids in one packet ascend, as the device's clock does; so none is a
/// duplicate. Ids of a batch's effects are the server's own (SPEC.md §14).
private func checkIdentifiers(
  of operations: [SyncOperation], _ reader: JSONReader
) throws(MalformedMessage) {
  var seen = Set<OperationID>(minimumCapacity: operations.count)
  for operation in operations {
    guard seen.insert(operation.id).inserted else {
      throw reader.malformed("operation \(operation.id) is a duplicate")
    }
    guard operation.id.value.version != UniqueID.effectVersion else {
      throw reader.malformed(
        "operation \(operation.id) is a UUID of version 8, which the server keeps for the effects "
          + "of batches; a device takes version 7")
    }
  }
}

/// Runs a reader over `bytes` and makes sure that nothing is left over.
package func decode<T>(
  _ bytes: [UInt8], depth: Int = Limits.standard.depth,
  _ body: (inout JSONReader) throws(MalformedMessage) -> T
) throws(MalformedMessage) -> T {
  let result = bytes.withUnsafeBytes { buffer -> Result<T, MalformedMessage> in
    Result { () throws(MalformedMessage) -> T in
      var reader = JSONReader(buffer, depth: depth, hasManyRecords: true)
      let message = try body(&reader)
      try reader.end()
      return message
    }
  }
  return try result.get()
}

extension JSONWriter {
  /// Writes all of a packet up to the operations.
  package mutating func packetHead(_ packet: Packet) {
    packetHead(
      device: packet.device, dependency: packet.dependency, continues: packet.continues,
      isAuthoritative: packet.isAuthoritative, base: packet.operations.first?.base ?? 0)
  }

  package mutating func packetHead(
    device: DeviceID, dependency: OperationID?, continues: Bool, isAuthoritative: Bool = false,
    base: SequenceNumber
  ) {
    beginObject()
    member("device", device.value)
    member("dependency", dependency?.value)
    if continues { member("continues", true) }
    if isAuthoritative { member("authority", true) }
    member("base", digits: base)
    key("operations")
    beginArray()
  }

  package mutating func operation(_ operation: SyncOperation, packetBase: SequenceNumber) {
    object { json in
      json.member("id", operation.id.value)
      json.member("table", operation.key.table)
      if operation.batch == nil { json.member("record", operation.key.record) }
      json.member("kind", operation.kind.rawValue)
      json.member("time", operation.time)
      if operation.base != packetBase { json.member("base", digits: operation.base) }
      if let batch = operation.batch {
        json.batchMembers(batch, of: operation)
      } else if operation.kind != .delete {
        json.key("data")
        json.columns(operation.columns)
      }
      if !operation.columnTimes.isEmpty {
        json.key("times")
        json.object(of: operation.columnTimes) { $0.string($1) }
      }
      if !operation.increments.isEmpty {
        json.key("adds")
        json.increments(operation.increments)
      }
      if !operation.originals.isEmpty {
        json.key("originals")
        json.columns(operation.originals)
      }
      if let reason = operation.reason { json.member("reason", reason) }
    }
  }
}

extension JSONReader {
  /// Returns a change's place in the space: a string with an integer from 0 up.
  package mutating func sequence() throws(MalformedMessage) -> SequenceNumber {
    let value = try integerString()
    guard value >= 0 else { throw malformed("a sequence below zero") }
    guard value <= Limits.sequenceMax else {
      throw malformed("a sequence above 2^62, which no history reaches")
    }
    return value
  }

  package mutating func tableName(limits: Limits) throws(MalformedMessage) -> Name {
    let key = try word()
    if let known = recent?.table(key.span) { return known }
    let name = try key.name()
    if let fault = NameRule.fault(in: name, limits: limits) { throw malformed(fault) }
    recent?.add(table: name)
    return name
  }

  package mutating func recordName(limits: Limits) throws(MalformedMessage) -> Name {
    let record = try self.name()
    if let fault = NameRule.fault(inRecord: record, limits: limits) { throw malformed(fault) }
    return record
  }
}

extension SyncOperation {
  fileprivate static func list(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> [SyncOperation] {
    var operations: [SyncOperation] = []
    try reader.array { (reader) throws(MalformedMessage) in
      guard operations.count < limits.operationsPerPacket else {
        throw reader.malformed("more than \(limits.operationsPerPacket) operations")
      }
      operations.append(try SyncOperation(from: &reader, limits: limits))
    }
    return operations
  }

  private init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var id: OperationID?
    var table: Name?
    var record: Name?
    var kind: OperationKind?
    var time: HybridTimestamp?
    var columns: [Column]?
    var times: [Name: HybridTimestamp] = [:]
    var increments: Set<Name> = []
    var originals: [Column] = []
    var reason: String?
    var base = unstatedBase
    var batchParts = BatchParts()
    var seen = MembersSeen()
    var unknown = Set<[UInt8]>()
    let start = reader.position
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "id":
        try seen.add("id", 0, reader)
        id = OperationID(try reader.uniqueID())
      case "table":
        try seen.add("table", 1, reader)
        table = try reader.tableName(limits: limits)
      case "record":
        try seen.add("record", 2, reader)
        record = try reader.recordName(limits: limits)
      case "kind":
        try seen.add("kind", 3, reader)
        kind = try OperationKind(from: &reader)
      case "time":
        try seen.add("time", 4, reader)
        time = try reader.timestamp()
      case "base":
        try seen.add("base", 5, reader)
        base = try reader.sequence()
      case "data":
        try seen.add("data", 6, reader)
        columns = try reader.columns(limits: limits)
      case "times":
        try seen.add("times", 7, reader)
        times = try Self.times(from: &reader, limits: limits)
      case "adds":
        try seen.add("adds", 8, reader)
        increments = try Self.increments(from: &reader, limits: limits)
      case "originals":
        try seen.add("originals", 9, reader)
        originals = try reader.columns(limits: limits)
      case "reason":
        try seen.add("reason", 10, reader)
        reason = try Self.reason(from: &reader, limits: limits)
      case "where":
        try seen.add("where", 14, reader)
        batchParts.predicate = try RecordPredicate(from: &reader, limits: limits)
      case "effect":
        try seen.add("effect", 15, reader)
        batchParts.effect = try Batch.Effect(from: &reader)
      default: try reader.skipUnknown(key, &unknown)
      }
    }
    guard let id else { throw reader.malformed("an operation without id") }
    guard let table, record != nil || kind == .batch else {
      throw reader.malformed("operation \(id) names no record")
    }
    guard let kind, let time else { throw reader.malformed("operation \(id) lacks kind or time") }
    let batch = try batchParts.batch(
      of: kind, id, record: record, columns: columns, hasTimes: !times.isEmpty, reader)
    guard batch != nil || (kind == .delete) == (columns == nil) else {
      throw reader.malformed("operation \(id): an insert or update has data, a delete has none")
    }
    self.init(
      id: id, key: RecordKey(table: table, record: record ?? ""), kind: kind, time: time,
      columns: columns ?? [], columnTimes: times, base: base, increments: increments,
      originals: originals)
    self.batch = batch
    if let reason { self.reason = reason }
    guard reader.position - start <= limits.operationBytes * 2, valueBytes <= limits.operationBytes
    else {
      throw reader.malformed(
        "operation \(id) has more than \(limits.operationBytes) bytes of values")
    }
    try checkColumnTimes(reader)
    if let fault = policyFault { throw reader.malformed("operation \(id): \(fault)") }
  }

  private func checkColumnTimes(_ reader: JSONReader) throws(MalformedMessage) {
    guard !columnTimes.isEmpty else { return }
    guard columnTimes.allSatisfy({ $0.value <= time }) else {
      throw reader.malformed("operation \(id): a column's time is later than the operation's")
    }
    guard Set(columns.map(\.name)).isSuperset(of: columnTimes.keys) else {
      throw reader.malformed("operation \(id): a time is given for a column that is not written")
    }
  }

  private static func times(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> [Name: HybridTimestamp] {
    var times: [Name: HybridTimestamp] = [:]
    try reader.object { (key, reader) throws(MalformedMessage) in
      guard times.count < limits.columns else { throw reader.malformed("too many times") }
      let name = try key.name()
      guard times.updateValue(try reader.timestamp(), forKey: name) == nil else {
        throw reader.malformed("a column's time is a duplicate")
      }
    }
    return times
  }
}

extension OperationKind {
  init(from reader: inout JSONReader) throws(MalformedMessage) {
    let word = try reader.word()
    guard let kind = OperationKind(word) else {
      let text = try word.text().prefix(40)
      throw reader.malformed("kind is insert, update, delete or batch, not '\(text)'")
    }
    self = kind
  }

  /// Creates a kind from the word in a message; `nil` for another word.
  init?(_ word: JSONKey) {
    switch word {
    case "insert": self = .insert
    case "update": self = .update
    case "delete": self = .delete
    case "batch": self = .batch
    default: return nil
    }
  }
}
