// The form of a value in JSON (SPEC.md §3): text as a string; an integer within ±(2^53 − 1) as a
// number without point or exponent, others as {"int": "…"}; a real with a fraction as a number,
// others as {"real": "…"}; a blob as {"blob": base64}. So every value survives JSON readers with
// doubles only, and integer 1 stays apart from real 1.0.

import FerryPlatform

/// Integers outside of this are sent in a string.
package let exactIntegers: ClosedRange<Int64> = -9_007_199_254_740_991...9_007_199_254_740_991

extension JSONWriter {
  package mutating func value(_ value: Value) {
    switch value {
    case .null: raw("null")
    case .integer(let integer): self.integerValue(integer)
    case .real(let real): self.realValue(real)
    case .text(let text): string(text)
    case .blob(let blob): blob.withUnsafeBytes { blobValue($0) }
    }
  }

  package mutating func integerValue(_ integer: Int64) {
    if exactIntegers.contains(integer) {
      number(integer)
    } else {
      object { $0.member("int", digits: integer) }
    }
  }

  package mutating func realValue(_ real: Double) {
    // Swift prints the shortest text that reads back as the same double.
    let text = real.description
    if real.isFinite && real != real.rounded() {
      raw(text.utf8)
    } else if real.isFinite && abs(real) >= 1e16 && text.has("e") {
      raw(text.utf8)
    } else {
      object { $0.member("real", text) }
    }
  }

  package mutating func blobValue(_ blob: UnsafeRawBufferPointer) {
    object { json in
      json.key("blob")
      json.base64(blob)
    }
  }

  package mutating func columns(_ columns: [Column]) {
    object { json in
      for column in columns {
        json.key(named: column.name)
        json.value(column.value)
      }
    }
  }
}

extension JSONReader {
  /// Reads one value, within the limit on the size.
  package mutating func value(limits: Limits) throws(MalformedMessage) -> Value {
    switch try peek() {
    case 0x22:
      let text = try string()
      try check(text.utf8.count, limits)
      return .text(text)
    case 0x6E:
      _ = try null()
      return .null
    case 0x7B: return try taggedValue(limits)
    case 0x74, 0x66: throw malformed("true and false are not values; write 1 and 0")
    case 0x5B: throw malformed("an array is not a value")
    default: return try number()
    }
  }

  private mutating func taggedValue(_ limits: Limits) throws(MalformedMessage) -> Value {
    var found: Value?
    try object { (key, reader) throws(MalformedMessage) in
      guard found == nil else { throw reader.malformed("a value with two tags") }
      switch key {
      case "int": found = .integer(try reader.integerString())
      case "real": found = .real(try reader.realText())
      case "blob":
        let blob = try reader.base64()
        try reader.check(blob.count, limits)
        found = .blob(blob)
      default: throw reader.malformed("a value's tag is int, real or blob")
      }
    }
    guard let found else { throw malformed("a value without a tag") }
    return found
  }

  private mutating func realText() throws(MalformedMessage) -> Double {
    let text = try string()
    switch text {
    case "inf": return .infinity
    case "-inf": return -.infinity
    default: break
    }
    // Double(_:) reads more than JSON's numbers: "0x1p3", "infinity", "nan".
    let isDecimal = text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x2B, 0x2D, 0x2E, 0x65, 0x45: true
      default: false
      }
    }
    guard isDecimal, let value = Double(text), value.isFinite else {
      throw malformed("not a real")
    }
    return value
  }

  private func check(_ count: Int, _ limits: Limits) throws(MalformedMessage) {
    guard count <= limits.valueBytes else {
      throw malformed("a value has \(count) bytes; \(limits.valueBytes) are allowed")
    }
  }

  /// Returns a record's columns: names within their limit, each once.
  package mutating func columns(limits: Limits) throws(MalformedMessage) -> [Column] {
    var columns: [Column] = []
    try eachColumn(limits: limits) { columns.append(Column($0, $1)) }
    try refuseRepeats(columns.count) { columns[$0].name }
    return columns
  }

  /// Reads a record's columns one by one. The caller refuses duplicate names.
  mutating func eachColumn(
    limits: Limits, _ column: (Name, Value) -> Void
  ) throws(MalformedMessage) {
    var count = 0
    try object { (key, reader) throws(MalformedMessage) in
      let name = try reader.columnName(key, at: count, limits)
      guard count < limits.columns else {
        throw reader.malformed("more than \(limits.columns) columns")
      }
      count += 1
      column(name, try reader.value(limits: limits))
    }
  }

  @inline(__always)
  private func columnName(
    _ key: JSONKey, at place: Int, _ limits: Limits
  ) throws(MalformedMessage) -> Name {
    if let known = recent?.name(at: place, key.span) { return known }
    let name = try key.name()
    if let fault = NameRule.fault(in: name, limits: limits) { throw malformed(fault) }
    recent?.add(name, at: place)
    return name
  }

  /// Throws an error if a name is a duplicate among `count` of them.
  func refuseRepeats(_ count: Int, name: (Int) -> Name) throws(MalformedMessage) {
    let ascend = stride(from: 1, to: count, by: 1).allSatisfy { name($0 - 1) < name($0) }
    if ascend { return }
    if count < 12 {
      for index in stride(from: 1, to: count, by: 1) {
        for earlier in 0..<index where name(earlier) == name(index) {
          throw malformed("column \(name(index)) is a duplicate")
        }
      }
    } else if Set((0..<count).map(name)).count != count {
      throw malformed("a column is a duplicate")
    }
  }
}
