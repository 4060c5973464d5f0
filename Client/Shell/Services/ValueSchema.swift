import FerryProtocol

/// The form of a service's arguments and results. The bridge checks each value against it, so a
/// handler gets only values of this form.
///
/// ```swift
/// let filter = ValueSchema.object([
///   .required("list", .text(max: 64)), .optional("limit", .integer(1...1_000)),
/// ])
/// ```
public indirect enum ValueSchema: Sendable, Equatable {
  /// A member of an object.
  public struct Member: Sendable, Equatable {
    /// The member's name.
    public var name: Name
    /// The form of the member's value.
    public var schema: ValueSchema
    /// True if the object must have it.
    public var isRequired: Bool

    /// Creates a required member of an object.
    public static func required(_ name: Name, _ schema: ValueSchema) -> Member {
      Member(name: name, schema: schema, isRequired: true)
    }

    /// Creates a member that may be absent or `null`.
    public static func optional(_ name: Name, _ schema: ValueSchema) -> Member {
      Member(name: name, schema: schema, isRequired: false)
    }
  }

  /// Any value.
  case any
  /// `null`, or no argument at all.
  case nothing
  case bool
  /// An integer in a range.
  case integer(ClosedRange<Int64>)
  /// Any number, integers included.
  case number
  /// A text of at most so many bytes of UTF-8.
  case text(max: Int)
  /// One of these texts.
  case choice([String])
  /// At most `max` elements of one form.
  case list(of: ValueSchema, max: Int)
  /// An object with these members and no others.
  case object([Member])
  /// An object with any names, at most `max` members, and values of one form.
  case map(of: ValueSchema, max: Int)
  /// A value of the first matching form.
  case either([ValueSchema])

  /// `null`, or a value of a form.
  public static func orNull(_ schema: ValueSchema) -> ValueSchema { .either([.nothing, schema]) }

  /// Any integer.
  public static var anyInteger: ValueSchema { .integer(.min ... .max) }

  /// Returns the reason why a value does not have this form, with the place; `nil` if it has.
  public func fault(in value: ServiceValue) -> String? { fault(in: value, at: "the value") }

  private func fault(in value: ServiceValue, at place: String) -> String? {
    switch (self, value) {
    case (.any, _), (.nothing, .null), (.bool, .bool), (.number, .integer), (.number, .number):
      return nil
    case (.integer(let range), .integer(let integer)):
      if range ~= integer { return nil }
      return "\(place) is outside of \(range.lowerBound) to \(range.upperBound)"
    case (.text(let max), .text(let text)):
      return text.utf8.count <= max ? nil : "\(place) is longer than \(max) bytes"
    case (.choice(let choices), .text(let text)):
      if choices.contains(where: { Name($0) == Name(text) }) { return nil }
      return "\(place) is none of \(choices.joined(separator: ", "))"
    case (.list(let element, let max), .list(let elements)):
      guard elements.count <= max else { return "\(place) has more than \(max) elements" }
      for (index, value) in elements.enumerated() {
        if let fault = element.fault(in: value, at: "\(place)[\(index)]") { return fault }
      }
      return nil
    case (.object(let members), .object(let values)):
      return Self.fault(in: values, members, at: place)
    case (.map(let schema, let max), .object(let values)):
      guard values.count <= max else { return "\(place) has more than \(max) members" }
      for (name, value) in values.sorted(by: { $0.key < $1.key }) {
        if let fault = schema.fault(in: value, at: Self.place(of: name, in: place)) { return fault }
      }
      return nil
    case (.either(let schemas), _):
      if schemas.contains(where: { $0.fault(in: value, at: place) == nil }) { return nil }
      // Of `null` or a form, the form's reason is the useful one.
      return schemas.last?.fault(in: value, at: place) ?? "\(place) is not allowed"
    default: return "\(place) is \(value.kind), not \(kind)"
    }
  }

  private static func fault(
    in values: [Name: ServiceValue], _ members: [Member], at place: String
  ) -> String? {
    for member in members {
      let value = values[member.name] ?? .null
      if value == .null, !member.isRequired { continue }
      if values[member.name] == nil { return "\(place) has no member \(member.name)" }
      let inner = Self.place(of: member.name, in: place)
      if let fault = member.schema.fault(in: value, at: inner) { return fault }
    }
    let known = Set(members.map(\.name))
    guard let unknown = values.keys.filter({ !known.contains($0) }).min() else { return nil }
    return "\(place) has an unknown member \(shown(unknown))"
  }

  private static func place(of name: Name, in place: String) -> String {
    place == "the value" ? shown(name) : "\(place).\(shown(name))"
  }

  private static func shown(_ name: Name) -> String { String(name.text.prefix(40)) }

  private var kind: String {
    switch self {
    case .any: "any value"
    case .nothing: "null"
    case .bool: "true or false"
    case .integer: "an integer"
    case .number: "a number"
    case .text: "a text"
    case .choice(let choices): "one of \(choices.joined(separator: ", "))"
    case .list: "a list"
    case .object, .map: "an object"
    case .either: "one of several forms"
    }
  }
}
