/// Header fields in the order of the message; names compare without regard to ASCII case.
package struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// One field line.
  package struct Field: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }

    /// Returns `true` if it has this name, in any case of the letters.
    func isNamed(_ other: String) -> Bool { HTTPHeaders.same(name, other) }
  }

  /// Every field line; a name may occur more than once.
  package private(set) var fields: [Field]

  package init(_ fields: [Field] = []) {
    self.fields = fields
  }

  package init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { Field(name: $0.0, value: $0.1) }
  }

  /// Reads the first value with this name. Writing replaces all of them, and `nil` removes them.
  package subscript(name: String) -> String? {
    get { fields.first { Self.same($0.name, name) }?.value }
    set {
      fields.removeAll { Self.same($0.name, name) }
      if let newValue { fields.append(Field(name: name, value: newValue)) }
    }
  }

  /// Adds a field line and keeps those of the same name.
  package mutating func append(_ name: String, _ value: String) {
    fields.append(Field(name: name, value: value))
  }

  /// Returns all values of one name, in order.
  package func values(of name: String) -> [String] {
    fields.filter { Self.same($0.name, name) }.map(\.value)
  }

  /// Returns the values of a list-valued field as one list (RFC 9110 §5.3), or nil when it is
  /// absent.
  package func list(of name: String) -> String? {
    let values = values(of: name)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  private static func same(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count
      && zip(left.utf8, right.utf8).allSatisfy { lowercased($0) == lowercased($1) }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
