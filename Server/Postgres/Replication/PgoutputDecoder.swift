/// Decodes messages of the output plugin `pgoutput`; pure. Any bytes give a message or an error.
package enum PgoutputDecoder {
  package static func decode(
    _ bytes: ArraySlice<UInt8>
  ) throws(ReplicationFault) -> PgoutputMessage {
    var reader = ReplicationBytes(bytes)
    let message = try message(&reader)
    try reader.end()
    return message
  }

  private static func message(
    _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> PgoutputMessage {
    let kind = try reader.byte()
    switch kind {
    case UInt8(ascii: "B"):
      let (commit, time) = (try reader.position(), try reader.integer(Int64.self))
      return .begin(xid: try reader.integer(), commit: commit, time: time)
    case UInt8(ascii: "C"):
      _ = try reader.byte()
      let (commit, end) = (try reader.position(), try reader.position())
      return .commit(commit: commit, end: end, time: try reader.integer())
    case UInt8(ascii: "O"):
      _ = try reader.position()
      return .origin(try reader.text())
    case UInt8(ascii: "R"): return .relation(try relation(&reader))
    case UInt8(ascii: "Y"):
      let id = try reader.integer(UInt32.self)
      (_, _) = (try reader.text(), try reader.text())
      return .type(id: id)
    case UInt8(ascii: "I"):
      let id = try reader.integer(UInt32.self)
      try expect("N", &reader)
      return .insert(relation: id, new: try row(&reader))
    case UInt8(ascii: "U"): return try update(&reader)
    case UInt8(ascii: "D"):
      let id = try reader.integer(UInt32.self)
      guard let old = try old(try reader.byte(), &reader) else {
        throw ReplicationFault("a delete names no row")
      }
      return .delete(relation: id, old: old)
    case UInt8(ascii: "T"): return .truncate(relations: try truncated(&reader))
    case UInt8(ascii: "M"):
      let flags = try reader.byte()
      _ = try reader.position()
      let prefix = try reader.text()
      return .message(
        isTransactional: flags & 1 == 1, prefix: prefix, content: [UInt8](try reader.counted()))
    default: throw ReplicationFault("a message has the unknown kind \(kind)")
    }
  }

  private static func relation(
    _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> PgoutputRelation {
    let id = try reader.integer(UInt32.self)
    let (schema, name) = (try reader.text(), try reader.text())
    let identity = try reader.byte()
    var columns: [PgoutputRelation.Column] = []
    // Nothing is reserved: the count may be wrong.
    for _ in 0..<(try reader.count16()) {
      let flags = try reader.byte()
      let name = try reader.text()
      let type = try reader.integer(UInt32.self)
      _ = try reader.integer(Int32.self)
      columns.append(.init(name: name, type: type, isKey: flags & 1 == 1))
    }
    return PgoutputRelation(
      id: id, schema: schema, name: name, identity: identity, columns: columns)
  }

  private static func update(
    _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> PgoutputMessage {
    let id = try reader.integer(UInt32.self)
    let kind = try reader.byte()
    if kind == UInt8(ascii: "N") {
      return .update(relation: id, old: nil, new: try row(&reader))
    }
    let old = try old(kind, &reader)
    try expect("N", &reader)
    return .update(relation: id, old: old, new: try row(&reader))
  }

  private static func old(
    _ kind: UInt8, _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> PgoutputOld? {
    switch kind {
    case UInt8(ascii: "K"): return .key(try row(&reader))
    case UInt8(ascii: "O"): return .row(try row(&reader))
    default: throw ReplicationFault("a former row has the unknown kind \(kind)")
    }
  }

  private static func row(
    _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> [PgoutputValue] {
    var values: [PgoutputValue] = []
    for _ in 0..<(try reader.count16()) {
      switch try reader.byte() {
      case UInt8(ascii: "n"): values.append(.null)
      case UInt8(ascii: "u"): values.append(.unchanged)
      case UInt8(ascii: "t"): values.append(.text(try reader.counted()))
      case let kind: throw ReplicationFault("a value has the unknown kind \(kind)")
      }
    }
    return values
  }

  private static func truncated(
    _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> [UInt32] {
    let count = try reader.count32()
    _ = try reader.byte()
    guard count <= reader.count / 4 else {
      throw ReplicationFault("a truncate names \(count) tables, and has fewer")
    }
    var relations: [UInt32] = []
    for _ in 0..<count { relations.append(try reader.integer()) }
    return relations
  }

  private static func expect(
    _ letter: Unicode.Scalar, _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) {
    let found = try reader.byte()
    guard found == UInt8(ascii: letter) else {
      throw ReplicationFault("a row begins with \(found)")
    }
  }
}
