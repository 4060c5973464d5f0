import FerryProtocol
import Foundation

extension ServiceValue {
  /// The deepest nesting of a value.
  static let depthMax = 32

  /// Reads a whole message.
  init(json bytes: [UInt8]) throws(MalformedMessage) {
    self = try Self.read(bytes) { (reader) throws(MalformedMessage) in
      let value = try ServiceValue(from: &reader)
      try reader.end()
      return value
    }
  }

  /// Reads bytes with a reader of JSON.
  static func read<T>(
    _ bytes: [UInt8], _ body: (inout JSONReader) throws(MalformedMessage) -> T
  ) throws(MalformedMessage) -> T {
    let result = bytes.withUnsafeBytes { bytes -> Result<T, MalformedMessage> in
      var reader = JSONReader(bytes, depth: depthMax)
      do throws(MalformedMessage) {
        return .success(try body(&reader))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  /// The value in JSON.
  var json: [UInt8] {
    var json = JSONWriter()
    write(to: &json)
    return json.finish()
  }

  /// Returns a value of a Swift type.
  ///
  /// ```swift
  /// let filter = try call.argument.decoded(as: Filter.self)
  /// ```
  public func decoded<T: Decodable>(as type: T.Type) throws -> T {
    try JSONDecoder().decode(type, from: Data(json))
  }

  /// Creates a value from one of a Swift type.
  public init(encoding value: some Encodable) throws {
    try self.init(json: Array(JSONEncoder().encode(value)))
  }
}

extension ServiceValue: JSONWritable {
  package func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.raw("null")
    case .bool(let bool): json.bool(bool)
    case .integer(let integer): json.number(integer)
    case .number(let number):
      if number.isFinite { json.raw(number.description.utf8) } else { json.raw("null") }
    case .text(let text): json.string(text)
    case .list(let elements): json.array(of: elements)
    case .object(let members): json.object(of: members) { $1.write(to: &$0) }
    }
  }
}

extension ServiceValue {
  /// Reads any value; an object has each member once.
  init(from reader: inout JSONReader) throws(MalformedMessage) {
    switch try reader.peek() {
    case UInt8(ascii: "{"):
      var members: [Name: ServiceValue] = [:]
      try reader.object { (key, reader) throws(MalformedMessage) in
        let name = try key.name()
        guard members[name] == nil else { throw reader.malformed("a member is a duplicate") }
        members[name] = try ServiceValue(from: &reader)
      }
      self = .object(members)
    case UInt8(ascii: "["):
      var elements: [ServiceValue] = []
      try reader.array { (reader) throws(MalformedMessage) in
        elements.append(try ServiceValue(from: &reader))
      }
      self = .list(elements)
    case UInt8(ascii: "\""): self = .text(try reader.string())
    case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .bool(try reader.bool())
    case UInt8(ascii: "n"):
      _ = try reader.null()
      self = .null
    default:
      switch try reader.number() {
      case .integer(let integer): self = .integer(integer)
      case .real(let real): self = .number(real)
      case .null, .text, .blob: throw reader.malformed("a number was expected")
      }
    }
  }
}
