import Foundation

/// Decimal numbers as text, such as `-12.5`: no type of SQLite keeps all of their digits.
enum DecimalText {
  /// The most digits in a `Decimal`.
  private static let digitsMax = 38

  /// Returns the text; `nil` for NaN.
  static func text(_ decimal: Decimal) -> String? {
    decimal.isNaN ? nil : decimal.description
  }

  /// Reads digits with an optional sign, point and exponent; `nil` for anything else, and for more
  /// digits than a `Decimal` keeps.
  static func decimal(_ text: String) -> Decimal? {
    var rest = Array(text.utf8)[...]
    if let sign = rest.first, sign == 0x2B || sign == 0x2D { rest.removeFirst() }
    let whole = parseDigits(&rest)
    var fraction: ArraySlice<UInt8> = []
    if rest.first == 0x2E {
      rest.removeFirst()
      fraction = parseDigits(&rest)
    }
    if let mark = rest.first, mark == 0x65 || mark == 0x45 {
      rest.removeFirst()
      if let sign = rest.first, sign == 0x2B || sign == 0x2D { rest.removeFirst() }
      guard (1...3).contains(parseDigits(&rest).count) else { return nil }
    }
    let significant = (whole + fraction).drop { $0 == 0x30 }
    guard rest.isEmpty, whole.count + fraction.count > 0, significant.count <= digitsMax,
      let decimal = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")),
      decimal.isFinite
    else { return nil }
    return decimal
  }

  private static func parseDigits(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let digits = rest.prefix { (0x30...0x39).contains($0) }
    rest = rest.dropFirst(digits.count)
    return digits
  }
}
