import FerryPlatform

/// A JSON object with access to members by their paths.
struct JSONObject {
  private let root: KeyedDecodingContainer<MemberName>

  /// Throws if the decoder is at another kind of value.
  init(_ decoder: any Decoder) throws { root = try decoder.container(keyedBy: MemberName.self) }

  /// Returns a text, a number or a truth value as text; `nil` for other values and for none.
  func text(at path: String) -> String? {
    guard let (object, name) = try? member(path) else { return nil }
    if let text = try? object.decode(String.self, forKey: name) { return text }
    if let truth = try? object.decode(Bool.self, forKey: name) { return truth ? "true" : "false" }
    if let number = try? object.decode(Int64.self, forKey: name) { return String(number) }
    if let number = try? object.decode(Double.self, forKey: name) { return String(number) }
    return nil
  }

  /// Returns true if there is a value other than `null`.
  func hasValue(at path: String) -> Bool {
    guard let (object, name) = try? member(path), object.contains(name) else { return false }
    return (try? object.decodeNil(forKey: name)) == false
  }

  /// Decodes the value at a path. A missing value is `nil` for optional types.
  func value<Value: Decodable>(at path: String) throws -> Value {
    do {
      let (object, name) = try member(path)
      return try object.decode(Value.self, forKey: name)
    } catch DecodingError.keyNotFound(let name, let context) where name is MemberName {
      if let optional = Value.self as? any ExpressibleByNilLiteral.Type,
        let none = optional.init(nilLiteral: ()) as? Value
      {
        return none
      }
      throw DecodingError.keyNotFound(name, context)
    }
  }

  private func member(
    _ path: String
  ) throws -> (KeyedDecodingContainer<MemberName>, MemberName) {
    let names = path.parts(at: ".").map(String.init)
    var object = root
    for name in names.dropLast() {
      object = try object.nestedContainer(
        keyedBy: MemberName.self, forKey: MemberName(name, in: object))
    }
    return (object, MemberName(names.last ?? "", in: object))
  }
}

/// The name of a member, also of one shown by the decoder in camel case (`convertFromSnakeCase`).
private struct MemberName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }

  init?(intValue: Int) { nil }

  init(_ name: String, in object: KeyedDecodingContainer<MemberName>) {
    let plain = MemberName(stringValue: name)
    let words = name.words(at: "_")
    let camel = MemberName(
      stringValue: (words.first.map(String.init) ?? "")
        + words.dropFirst().map { $0.prefix(1).uppercasedASCII + $0.dropFirst() }.joined())
    self = !object.contains(plain) && object.contains(camel) ? camel : plain
  }
}
