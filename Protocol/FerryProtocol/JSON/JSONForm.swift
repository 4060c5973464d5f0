/// One form of a value in JSON.
package struct JSONForm<T> {
  let read: (inout JSONReader, ReadingRules) throws(MalformedMessage) -> T
  let write: (inout JSONWriter, T) -> Void

  package init(
    read: @escaping (inout JSONReader, ReadingRules) throws(MalformedMessage) -> T,
    write: @escaping (inout JSONWriter, T) -> Void
  ) {
    (self.read, self.write) = (read, write)
  }

  var optional: JSONForm<T?> {
    JSONForm<T?> { (reader, rules) throws(MalformedMessage) in
      try read(&reader, rules)
    } write: { json, value in
      if let value { write(&json, value) } else { json.raw("null") }
    }
  }

  var nullable: JSONForm<T?> {
    let optional = optional
    return JSONForm<T?>(
      read: { (reader, rules) throws(MalformedMessage) in
        try reader.null() ? nil : try read(&reader, rules)
      }, write: optional.write)
  }

  /// The same form with a rule for the values read.
  ///
  /// - Parameter fault: Returns the violated rule, or `nil`.
  package func checked(
    _ fault: @escaping (T, ReadingRules) -> String?
  ) -> JSONForm<T> {
    JSONForm(
      read: { (reader, rules) throws(MalformedMessage) in
        let value = try read(&reader, rules)
        if let fault = fault(value, rules) { throw reader.malformed(fault) }
        return value
      }, write: write)
  }

  /// A list, which is refused as soon as it is too long.
  ///
  /// - Parameters:
  ///   - noun: The elements, in the error.
  ///   - name: The list, in the error about another value.
  package func list(
    max: Int, _ noun: String = "of them", named name: String = "a list"
  ) -> JSONForm<[T]> {
    JSONForm<[T]> { (reader, rules) throws(MalformedMessage) in
      var list: [T] = []
      try reader.require(0x5B, name)
      try reader.array { (reader) throws(MalformedMessage) in
        guard list.count < max else { throw reader.malformed("more than \(max) \(noun)") }
        list.append(try read(&reader, rules))
      }
      return list
    } write: { json, list in
      json.array(of: list, write)
    }
  }

  /// An object with values by name, which is refused as soon as it is too large.
  ///
  /// - Parameters:
  ///   - name: The object, in the error about another value.
  ///   - fault: Returns the rule that a name violates, or `nil`.
  func named(
    max: Int, as name: String, _ fault: @escaping (Name) -> String? = { _ in nil }
  ) -> JSONForm<[Name: T]> {
    JSONForm<[Name: T]> { (reader, rules) throws(MalformedMessage) in
      var values: [Name: T] = [:]
      try reader.require(0x7B, name)
      try reader.object { (key, reader) throws(MalformedMessage) in
        let name = try key.name()
        if let fault = NameRule.fault(in: name, limits: rules.sync) ?? fault(name) {
          throw reader.malformed(fault)
        }
        guard values.count < max else { throw reader.malformed("more than \(max) of them") }
        let value: T
        do throws(MalformedMessage) {
          value = try read(&reader, rules)
        } catch {
          throw error.within(name.text)
        }
        guard values.updateValue(value, forKey: name) == nil else {
          throw reader.malformed("\(name) is a duplicate")
        }
      }
      return values
    } write: { json, values in
      json.object(of: values, write)
    }
  }
}

extension JSONForm {
  /// A list of values, which is refused as soon as it is too long; see ``list(max:_:named:)``.
  package static func list<E: JSONValue>(
    max: Int, _ noun: String = "of them"
  ) -> JSONForm where T == [E] {
    JSONForm<E>.value.list(max: max, noun)
  }
}

extension JSONForm {
  /// An array of two values.
  ///
  /// - Parameter fault: The error for another array.
  static func pair<First, Second>(
    _ first: JSONForm<First>, _ second: JSONForm<Second>, _ fault: String,
    make: @escaping (First, Second) -> T, parts: @escaping (T) -> (First, Second)
  ) -> JSONForm {
    JSONForm { (reader, rules) throws(MalformedMessage) in
      var (one, two): (First?, Second?)
      try reader.array { (reader) throws(MalformedMessage) in
        if one == nil {
          one = try first.read(&reader, rules)
        } else if two == nil {
          two = try second.read(&reader, rules)
        } else {
          throw reader.malformed(fault)
        }
      }
      guard let one, let two else { throw reader.malformed(fault) }
      return make(one, two)
    } write: { json, value in
      let (one, two) = parts(value)
      json.array { json in
        json.element()
        first.write(&json, one)
        json.element()
        second.write(&json, two)
      }
    }
  }
}

extension JSONForm where T: JSONValue {
  /// The form of the type itself.
  package static var value: JSONForm {
    JSONForm { (reader, rules) throws(MalformedMessage) in
      try T(from: &reader, rules)
    } write: { json, value in
      value.write(to: &json)
    }
  }
}

extension JSONForm where T == Int64 {
  /// A place in a space's order, as a string.
  package static var sequence: JSONForm {
    JSONForm { (reader, _) throws(MalformedMessage) in
      try reader.sequence()
    } write: { json, value in
      json.numberString(value)
    }
  }

  /// A wall clock's reading in milliseconds since 1970; see ``JSONReader/wallTime()``.
  package static var wallTime: JSONForm {
    JSONForm(
      read: { (reader, _) throws(MalformedMessage) in try reader.wallTime() }, write: value.write)
  }

  /// A number within a range.
  package static func integer(in range: ClosedRange<Int64>) -> JSONForm {
    value.checked { value, _ in
      range.contains(value)
        ? nil : "\(value) is not within \(range.lowerBound) and \(range.upperBound)"
    }
  }
}

extension JSONForm where T == [UInt8] {
  /// Bytes in base64.
  package static var base64: JSONForm {
    JSONForm { (reader, _) throws(MalformedMessage) in
      try reader.base64()
    } write: { json, bytes in
      bytes.withUnsafeBytes { json.base64($0) }
    }
  }
}

extension JSONForm where T == Name {
  /// The name of a table or a column.
  package static var column: JSONForm { named("a name") }

  static func named(_ name: String) -> JSONForm {
    JSONForm(
      read: { (reader, rules) throws(MalformedMessage) in
        try reader.require(0x22, name)
        return try Name(from: &reader, rules)
      }, write: value.write
    ).checked { NameRule.fault(in: $0, limits: $1.sync) }
  }

  /// The identifier of a record.
  package static var record: JSONForm {
    value.checked { NameRule.fault(inRecord: $0, limits: $1.sync) }
  }
}

/// A value whose form is a text.
package protocol JSONString: JSONValue, CustomStringConvertible {
  /// Reads the text; `nil` if it breaks the rule.
  init?(_ text: String)
  /// The rule, for the error.
  static var textRule: String { get }
}

extension JSONString {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    guard try reader.peek() == 0x22, let value = Self(try reader.string()) else {
      throw reader.malformed(Self.textRule)
    }
    self = value
  }

  package func write(to json: inout JSONWriter) { json.string(description) }
}

/// A value whose form is one of a few words.
package protocol JSONWord: JSONValue, RawRepresentable, CaseIterable, Equatable
where RawValue == String {}

extension JSONWord {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self = try JSONForm.word(among: Array(Self.allCases)).read(&reader, rules)
  }

  package func write(to json: inout JSONWriter) { json.string(rawValue) }
}

extension JSONForm where T: JSONWord {
  /// One of these words.
  package static func word(among allowed: [T]) -> JSONForm {
    JSONForm { (reader, _) throws(MalformedMessage) in
      let words = allowed.map(\.rawValue).joined(separator: ", ")
      try reader.require(0x22, "one of \(words)")
      let text = try reader.string()
      guard let value = T(rawValue: text), allowed.contains(value) else {
        throw reader.malformed("'\(text.prefix(40))' is not one of \(words)")
      }
      return value
    } write: { json, value in
      json.string(value.rawValue)
    }
  }
}

extension String: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self = try reader.string()
  }
}

extension Name: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self = try reader.name()
  }
}

extension Int64: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    let first = try reader.peek()
    guard first == 0x2D || (0x30...0x39).contains(first) else {
      throw reader.malformed("a number was expected")
    }
    self = try reader.integer()
  }
}

/// A count: 0 to 2^31 - 1.
extension Int: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self = try reader.count()
  }
}

extension Bool: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    guard [0x74, 0x66].contains(try reader.peek()) else {
      throw reader.malformed("true or false was expected")
    }
    self = try reader.bool()
  }
}

extension Value: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self = try reader.value(limits: rules.sync)
  }
}

extension Array: JSONWritable where Element: JSONWritable {
  package func write(to json: inout JSONWriter) { json.array(of: self) }
}

extension Array: JSONValue where Element: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    self = try JSONForm<Self>.list(max: .max).read(&reader, rules)
  }
}
