// Amounts as people write them on a command line and read them in a terminal. Integer arithmetic
// only: 1.1GB is exactly 1 100 000 000 bytes.

import FerryPlatform

extension Duration {
  private static let units: [(name: String, nanoseconds: Int64)] = [
    ("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000),
    ("m", 60_000_000_000), ("h", 3_600_000_000_000), ("d", 86_400_000_000_000),
  ]

  /// Reads `500ms`, `30s`, `1.5h`, `1h30m`, or `0`. Each number needs a unit (ns, us, ms, s, m, h,
  /// d); no signs, no spaces; up to 292 years. `nil` for anything else.
  package init?(commandLine text: String) {
    if text == "0" {
      self = .zero
      return
    }
    var rest = text[...]
    var total: Int64 = 0
    repeat {
      guard let number = ExactNumber(prefixOf: &rest) else { return nil }
      let unit = rest.prefix { !$0.isASCIIDigit }
      rest = rest.dropFirst(unit.count)
      guard let scale = Self.units.first(where: { $0.name == unit })?.nanoseconds,
        let nanoseconds = number.times(scale)
      else { return nil }
      let (sum, overflow) = total.addingReportingOverflow(nanoseconds)
      if overflow { return nil }
      total = sum
    } while !rest.isEmpty
    self = .nanoseconds(total)
  }

  /// As a clock shows it, rounded up to seconds: `0:05`, `12:40`, `3:00:00`.
  package var clockText: String {
    let (whole, part) = components
    let seconds = max(0, whole + (part > 0 ? 1 : 0))
    let tail = (seconds % 60 < 10 ? "0" : "") + String(seconds % 60)
    let minutes = seconds / 60
    if minutes < 60 { return "\(minutes):\(tail)" }
    return "\(minutes / 60):\(minutes % 60 < 10 ? "0" : "")\(minutes % 60):\(tail)"
  }
}

/// An amount of bytes.
package struct ByteSize: Sendable, Equatable, Comparable {
  /// Bytes, never negative.
  package let bytes: Int

  private static let units: [(name: String, scale: Int64)] = [
    ("", 1), ("b", 1), ("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30),
    ("tib", 1 << 40),
  ]

  /// Creates an amount of bytes; negative amounts become 0.
  package init(bytes: Int) {
    self.bytes = max(0, bytes)
  }

  /// Reads `65536`, `512KiB`, `1.5MiB`, `10MB` (decimal), in any case, at most `Int.max` bytes.
  /// `nil` for anything else; `4M` is refused because it could mean either.
  package init?(commandLine text: String) {
    var rest = text.lowercasedASCII[...]
    guard let number = ExactNumber(prefixOf: &rest),
      let scale = Self.units.first(where: { $0.name == rest })?.scale,
      let bytes = number.times(scale)
    else { return nil }
    self.bytes = Int(bytes)
  }

  /// `512 B`, `1.5 KiB`, `4.0 MiB`: binary units, one decimal.
  package var text: String {
    let names = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    if bytes < 1024 { return "\(bytes) B" }
    var unit = 1
    while unit < names.count, bytes >> (10 * (unit + 1)) > 0 { unit += 1 }
    let whole = bytes >> (10 * unit)
    let rest = (bytes >> (10 * (unit - 1))) & 1023
    return "\(whole).\(rest * 10 / 1024) \(names[unit - 1])"
  }

  /// Compares by bytes.
  package static func < (left: ByteSize, right: ByteSize) -> Bool { left.bytes < right.bytes }
}

/// A number such as 1.5, kept as digits for exact scaling.
private struct ExactNumber {
  var digits: Int64
  var divisor: Int64

  /// Removes the digits, and at most one point between digits, from the front of `text`.
  init?(prefixOf text: inout Substring) {
    let whole = text.prefix(while: \.isASCIIDigit)
    text = text.dropFirst(whole.count)
    var fraction: Substring = ""
    if let decimals = text.rest(after: ".") {
      fraction = decimals.prefix(while: \.isASCIIDigit)
      guard !fraction.isEmpty, fraction.count <= 9 else { return nil }
      text = text.dropFirst(1 + fraction.count)
    }
    guard !whole.isEmpty, let digits = Int64(whole + fraction) else { return nil }
    self.digits = digits
    divisor = fraction.reduce(1) { product, _ in product * 10 }
  }

  /// Returns the number times `scale`, rounded down; `nil` beyond 64 bits.
  func times(_ scale: Int64) -> Int64? {
    let product = digits.multipliedFullWidth(by: scale)
    guard product.high < divisor else { return nil }
    let quotient = UInt64(divisor).dividingFullWidth((UInt64(product.high), product.low)).quotient
    return Int64(exactly: quotient)
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { isASCII && isNumber }
}
