import FerryProtocol

/// An argument or a result of a service: a value of JSON.
///
/// ```swift
/// let argument: ServiceValue = ["list": "home", "open": true]
/// let list = argument["list"]?.text
/// ```
public enum ServiceValue: Sendable, Equatable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// A number with a fraction or an exponent. An infinite number or NaN travels as `null`.
  case number(Double)
  case text(String)
  case list([ServiceValue])
  case object([Name: ServiceValue])

  /// The member of an object; `nil` if the value is no object or has no such member.
  public subscript(name: Name) -> ServiceValue? {
    if case .object(let members) = self { members[name] } else { nil }
  }

  /// The text; `nil` for another kind of value.
  public var text: String? { if case .text(let text) = self { text } else { nil } }

  /// The integer; `nil` for another kind of value.
  public var integer: Int64? { if case .integer(let integer) = self { integer } else { nil } }

  /// The truth; `nil` for another kind of value.
  public var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }

  /// The elements; `nil` for another kind of value.
  public var list: [ServiceValue]? { if case .list(let list) = self { list } else { nil } }

  /// A word for the kind, as messages name it.
  var kind: String {
    switch self {
    case .null: "null"
    case .bool: "true or false"
    case .integer: "an integer"
    case .number: "a number"
    case .text: "a text"
    case .list: "a list"
    case .object: "an object"
    }
  }
}

extension ServiceValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral, ExpressibleByNilLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates a text.
  public init(stringLiteral value: String) { self = .text(value) }
  /// Creates an integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// Creates a truth.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates a number.
  public init(floatLiteral value: Double) { self = .number(value) }
  /// Creates `null`.
  public init(nilLiteral: ()) { self = .null }
  /// Creates a list.
  public init(arrayLiteral elements: ServiceValue...) { self = .list(elements) }
  /// Creates an object; of two equal names the later one wins.
  public init(dictionaryLiteral elements: (Name, ServiceValue)...) {
    self = .object(Dictionary(elements) { $1 })
  }

  /// Creates a text, or `null` for `nil`.
  public init(orNull text: String?) { self = text.map { .text($0) } ?? .null }
  /// Creates an integer, or `null` for `nil`.
  public init(orNull integer: Int64?) { self = integer.map { .integer($0) } ?? .null }
  /// Creates an integer.
  public init(_ count: Int) { self = .integer(Int64(count)) }
}
