import FerryPlatform

/// The reason why a text is not a predicate, and the place.
public struct RecordPredicateError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The expected text, and the text found.
  public let reason: String
  /// The character at which it was noticed, counted from 1 in Unicode scalars.
  public let position: Int

  /// Creates an error from the given parts.
  public init(reason: String, position: Int) {
    self.reason = reason
    self.position = position
  }

  public var description: String { "\(reason) (at character \(position))" }
}

/// The division of a predicate's text into words, marks and values, as in SQLite's tokenizer
/// (https://sqlite.org/lang_keywords.html, https://sqlite.org/lang_expr.html §3).
struct PredicateScanner {
  enum Token: Equatable {
    /// A plain word in lower case, which may be a keyword, and as it was written.
    case word(String, written: String)
    /// A name in double quotes.
    case name(String)
    /// A value without the sign; an integer is read as its negative, of which there is one more.
    case value(Value)
    /// An operator, a bracket, a comma or a sign.
    case mark(String)
    case end

    /// For messages.
    var shown: String {
      switch self {
      case .word(_, let written): "'\(written.prefix(40))'"
      case .name(let name): "\"\(name.prefix(40))\""
      case .value(.text(let text)): "the text '\(text.prefix(40))'"
      case .value(.blob): "a blob"
      case .value(.integer(let negated)): "'\(negated.magnitude)'"
      case .value(.real(let real)): "'\(real)'"
      case .value(.null): "null"
      case .mark(let mark): "'\(mark)'"
      case .end: "the end"
      }
    }
  }

  static let keywords: Set<String> = [
    "and", "or", "not", "in", "is", "null", "between", "true", "false", "like", "glob", "exists",
    "case", "cast", "collate", "escape", "isnull", "notnull",
  ]

  private let scalars: [Unicode.Scalar]
  private var index = 0
  /// The beginning of the last token, counted from 1.
  private(set) var position = 1

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  /// Returns whether `name` reads as a name without quotes.
  static func isPlain(_ name: String) -> Bool {
    guard let first = name.unicodeScalars.first, isLetter(first),
      name.unicodeScalars.allSatisfy({ isLetter($0) || isDigit($0) })
    else { return false }
    // Before a quote it would begin a blob.
    return !keywords.contains(lowered(name)) && lowered(name) != "x"
  }

  /// Returns ASCII letters in lower case, and others unchanged, as SQLite compares names.
  static func lowered(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          guard (0x41...0x5A).contains(scalar.value) else { return scalar }
          return Unicode.Scalar(UInt8(scalar.value + 0x20))
        }))
  }

  mutating func next() throws(RecordPredicateError) -> Token {
    while let scalar = peek(), Self.isSpace(scalar) { index += 1 }
    position = index + 1
    guard let scalar = peek() else { return .end }
    if Self.isLetter(scalar) { return try word() }
    if Self.isDigit(scalar) || scalar == "." { return .value(try number()) }
    switch scalar {
    case "'": return .value(.text(try quoted("'", "a text")))
    case "\"":
      let name = try quoted("\"", "a name")
      if name.isEmpty { throw fault("a name in quotes is empty") }
      return .name(name)
    default: return .mark(try mark())
    }
  }

  // MARK: Parts

  private mutating func word() throws(RecordPredicateError) -> Token {
    let start = index
    while let scalar = peek(), Self.isLetter(scalar) || Self.isDigit(scalar) { index += 1 }
    let text = text(from: start)
    if text == "x" || text == "X", peek() == "'" { return .value(.blob(try blob())) }
    return .word(Self.lowered(text), written: text)
  }

  private mutating func blob() throws(RecordPredicateError) -> [UInt8] {
    let digits = Array(try quoted("'", "a blob").utf8)
    guard digits.count % 2 == 0, digits.allSatisfy({ hexValue($0) != nil }) else {
      throw fault("a blob is an even number of hexadecimal digits: x'0aff'")
    }
    return stride(from: 0, to: digits.count, by: 2).map { place in
      (hexValue(digits[place]) ?? 0) << 4 | (hexValue(digits[place + 1]) ?? 0)
    }
  }

  /// Reads a number: an integer if it has neither point nor exponent. A number beyond 64 bits is
  /// left to the caller, which knows the sign.
  private mutating func number() throws(RecordPredicateError) -> Value {
    let start = index
    var isReal = false
    skipDigits()
    if peek() == "." {
      isReal = true
      index += 1
      skipDigits()
    }
    let mantissa = index - start
    if peek() == "e" || peek() == "E" {
      isReal = true
      index += 1
      if peek() == "+" || peek() == "-" { index += 1 }
      let exponent = index
      skipDigits()
      if index == exponent { throw fault("a number's exponent has no digits") }
    }
    if let scalar = peek(), Self.isLetter(scalar) { throw fault("a number ends in a letter") }
    guard !isReal || mantissa > 1 || scalars[start] != "." else {
      throw fault("a value was expected, not '.'")
    }
    let text = text(from: start)
    if isReal {
      guard let real = Double(Self.completed(text)) else { throw fault("not a number") }
      return .real(real)
    }
    if let magnitude = UInt64(text), magnitude <= 1 << 63 {
      return .integer(Int64(bitPattern: 0 &- magnitude))
    }
    throw fault("the integer \(text.prefix(40)) does not fit 64 bits")
  }

  /// Returns the number with a digit on both sides of the point, which SQL lets one leave out.
  private static func completed(_ number: String) -> String {
    guard let point = number.first(".") else { return number }
    let fraction = number[number.utf8.index(after: point)...]
    let hasDigit = fraction.utf8.first.map { (0x30...0x39).contains($0) } ?? false
    return "0" + number[..<point] + (hasDigit ? "." : ".0") + fraction
  }

  private mutating func skipDigits() {
    while let scalar = peek(), Self.isDigit(scalar) { index += 1 }
  }

  /// Reads the text between two marks; a doubled mark is the mark itself.
  private mutating func quoted(
    _ mark: Unicode.Scalar, _ what: String
  ) throws(RecordPredicateError) -> String {
    var content = String.UnicodeScalarView()
    index += 1
    while let scalar = peek() {
      index += 1
      if scalar != mark {
        content.append(scalar)
      } else if peek() == mark {
        content.append(mark)
        index += 1
      } else {
        return String(content)
      }
    }
    throw fault("\(what) has no closing \(mark)")
  }

  private mutating func mark() throws(RecordPredicateError) -> String {
    for mark in ["<=", ">=", "<>", "!=", "==", "<", ">", "=", "(", ")", ",", "-", "+"] {
      let scalars = Array(mark.unicodeScalars)
      guard self.scalars[index...].starts(with: scalars) else { continue }
      index += scalars.count
      return mark
    }
    throw fault("'\(scalars[index])' has no meaning here")
  }

  // MARK: Characters

  private func peek() -> Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

  private func text(from start: Int) -> String {
    String(String.UnicodeScalarView(scalars[start..<index]))
  }

  private func fault(_ reason: String) -> RecordPredicateError {
    RecordPredicateError(reason: reason, position: position)
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
    scalar == " " || (0x09...0x0D).contains(scalar.value)
  }

  private static func isDigit(_ scalar: Unicode.Scalar) -> Bool {
    (0x30...0x39).contains(scalar.value)
  }

  /// Returns whether it is a letter in SQLite, as everything above ASCII is.
  private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    (0x41...0x5A).contains(scalar.value) || (0x61...0x7A).contains(scalar.value)
      || scalar == "_" || scalar.value >= 0x80
  }
}
