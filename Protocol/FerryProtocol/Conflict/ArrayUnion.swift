/// The union of JSON arrays of scalars, for ``ConflictPolicy/setUnion``.
package enum ArrayUnion: Sendable, Equatable {
  /// Both are arrays: their elements, each once, by their canonical JSON text in the order of the
  /// bytes. Equal texts stay as they are.
  case union(Value)
  /// Only the first is an array of scalars.
  case first
  /// Only the second is.
  case second
  /// Neither is, or the union would be larger than a value may be.
  case neither

  package static func of(_ first: Value, _ second: Value) -> ArrayUnion {
    let (left, right) = (elements(of: first), elements(of: second))
    switch (left, right) {
    case (nil, nil): return .neither
    case (_?, nil): return .first
    case (nil, _?): return .second
    case (let left?, let right?):
      if first == second { return .union(first) }
      return text(of: left + right).map { .union($0) } ?? .neither
    }
  }

  /// Returns the canonical texts of an array's elements; `nil` if it is no array of scalars.
  private static func elements(of value: Value) -> [[UInt8]]? {
    guard case .text(var text) = value else { return nil }
    return text.withUTF8 { bytes in
      var reader = JSONReader(UnsafeRawBufferPointer(bytes), depth: 1)
      var elements: [[UInt8]] = []
      do throws(MalformedMessage) {
        try reader.array { (reader) throws(MalformedMessage) in
          elements.append(try canonicalScalar(from: &reader))
        }
        try reader.end()
      } catch { return nil }
      return elements
    }
  }

  private static func text(of elements: [[UInt8]]) -> Value? {
    let sorted = elements.sorted { $0.lexicographicallyPrecedes($1) }
    var json = JSONWriter(capacity: elements.reduce(2) { $0 + $1.count + 1 })
    json.array { json in
      for (index, element) in sorted.enumerated() where index == 0 || sorted[index - 1] != element {
        json.element()
        json.raw(element)
      }
    }
    guard json.count <= Limits.standard.valueBytes else { return nil }
    return .text(String(decoding: json.finish(), as: UTF8.self))
  }

  /// Reads a string, number, `true`, `false` or `null`, and returns it in Ferry's own form.
  private static func canonicalScalar(
    from reader: inout JSONReader
  ) throws(MalformedMessage) -> [UInt8] {
    var json = JSONWriter()
    switch try reader.peek() {
    case 0x22: json.string(try reader.string())
    case 0x74, 0x66: json.bool(try reader.bool())
    case 0x6E:
      _ = try reader.null()
      json.raw("null")
    default:
      switch try reader.number() {
      case .integer(let integer): json.number(integer)
      case .real(let real): json.raw(real.description.utf8)
      default: throw reader.malformed("a number was expected")
      }
    }
    return json.finish()
  }
}
