import FerryPlatform

/// Header fields in the order of travel; names compare without case (RFC 9110 §5.1).
public struct TransportHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// One field line.
  public struct Field: Sendable, Equatable {
    /// The name as written.
    public var name: String
    /// The value without surrounding blanks.
    public var value: String

    /// Creates a field line.
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }

    /// Returns true if both fields are equal; the case of the names does not count.
    public static func == (one: Self, other: Self) -> Bool {
      one.isNamed(other.name) && one.value == other.value
    }

    /// Returns true if `other` is this field's name, without regard to ASCII case.
    public func isNamed(_ other: String) -> Bool {
      name.utf8.elementsEqual(other.utf8) { $0.asciiLowercased == $1.asciiLowercased }
    }
  }

  /// Every field line in order, repeated names included.
  public private(set) var fields: [Field] = []

  /// Creates an empty list.
  public init() {}

  /// Creates the fields of the literal in order; a repeated name stays repeated.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { Field(name: $0.0, value: $0.1) }
  }

  /// All values of `name` joined by `", "` (RFC 9110 §5.3), or nil; setting replaces them all.
  public subscript(name: String) -> String? {
    get {
      let values = values(of: name)
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
    set {
      fields.removeAll { $0.isNamed(name) }
      if let newValue { add(name, newValue) }
    }
  }

  /// Returns each value of `name`, in order.
  public func values(of name: String) -> [String] {
    fields.lazy.filter { $0.isNamed(name) }.map(\.value)
  }

  /// Appends a field line, also if the name exists already.
  public mutating func add(_ name: String, _ value: String) {
    fields.append(Field(name: name, value: value))
  }

  /// Returns the name of a field that HTTP cannot carry (RFC 9110 §5.1, §5.5), at most 40
  /// characters of it; `nil` if all can be sent.
  package var unsendableName: String? {
    let field = fields.first { field in
      field.name.isEmpty || !field.name.utf8.allSatisfy(\.isTokenByte)
        || field.value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
    }
    return field.map { String($0.name.prefix(40)) }
  }

  /// Continues the last field's value: a folded line (RFC 9112 §5.2).
  package mutating func extendLast(with text: String) {
    guard !fields.isEmpty else { return }
    fields[fields.count - 1].value += " " + text
  }
}

extension UInt8 {
  /// The lower-case letter for `A`…`Z`, every other byte unchanged.
  fileprivate var asciiLowercased: UInt8 {
    UInt8(ascii: "A") <= self && self <= UInt8(ascii: "Z") ? self | 0x20 : self
  }
}
