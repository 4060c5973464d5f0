import FerryPlatform
import FerryProtocol

/// The type that SQLite converts values of a key's column to. A value that it would convert is no value
/// of such a key: the stored row would have another identifier.
///
/// ```swift
/// KeyAffinity.numeric.keeps(.text("7"))  // false: SQLite stores the integer 7
/// ```
enum KeyAffinity: Int64 {
  case none, text, numeric, real

  /// Whether the column stores a value as it is.
  func keeps(_ value: Value) -> Bool {
    switch (self, value) {
    case (.none, _), (_, .blob), (_, .null): true
    case (.text, .text): true
    case (.text, _): false
    case (.numeric, .integer): true
    case (.numeric, .text(let text)), (.real, .text(let text)): !Self.looksNumeric(text)
    case (.numeric, .real), (.real, _): false
    }
  }

  /// Whether SQLite takes a text for a number: with white space around it, and with a sign, a
  /// fraction and an exponent.
  private static func looksNumeric(_ text: String) -> Bool {
    // A line end of two characters is one Character, and \d has digits of all scripts.
    let number = /[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?/
    return text.trimmedASCII.wholeMatch(of: number.matchingSemantics(.unicodeScalar)) != nil
  }
}
