import FerryPlatform
import FerryProtocol

/// The type that SQLite converts values of a key's column to. A key has no value that it would
/// convert: the stored row would have another identifier.
///
/// ```swift
/// KeyAffinity.numeric.keeps(.text("7"))  // false: SQLite stores the integer 7
/// ```
enum KeyAffinity: Int64 {
  case none, text, numeric, real

  /// Returns true if the column stores a value as it is.
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

  /// Returns true if SQLite reads a text as a number: with white space around it, and with a sign,
  /// a fraction and an exponent.
  private static func looksNumeric(_ text: String) -> Bool {
    // Runs for each row: reads bytes, once.
    var rest = text.trimmedASCII.utf8
    drop(sign: &rest)
    var digits = drop(digits: &rest)
    if rest.first == UInt8(ascii: ".") {
      rest.removeFirst()
      digits += drop(digits: &rest)
    }
    guard digits > 0, let mark = rest.popFirst() else { return digits > 0 }
    guard mark | 0x20 == UInt8(ascii: "e") else { return false }
    drop(sign: &rest)
    return drop(digits: &rest) > 0 && rest.isEmpty
  }

  private static func drop(sign rest: inout Substring.UTF8View) {
    if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
  }

  /// Drops leading digits, and returns their number.
  private static func drop(digits rest: inout Substring.UTF8View) -> Int {
    let digits = rest.prefix { (0x30...0x39).contains($0) }.count
    rest.removeFirst(digits)
    return digits
  }
}
