import FerryPlatform

/// A position in the log of a PostgreSQL server, in bytes from the beginning; pure.
///
/// ```swift
/// PostgresLSN("16/B374D848")?.description  // 16/B374D848
/// ```
package struct PostgresLSN: Sendable, Hashable, Comparable, CustomStringConvertible {
  package let value: UInt64

  /// No position: before the whole log.
  package static let zero = PostgresLSN(0)

  package init(_ value: UInt64) { self.value = value }

  /// Reads the form of PostgreSQL: two hexadecimal numbers. Returns `nil` for another text.
  package init?(_ text: String) {
    let parts = text.parts(at: "/")
    guard parts.count == 2, let high = Self.half(parts[0]), let low = Self.half(parts[1]) else {
      return nil
    }
    value = UInt64(high) << 32 | UInt64(low)
  }

  private static func half(_ text: Substring) -> UInt32? {
    guard (1...8).contains(text.utf8.count), text.utf8.first != UInt8(ascii: "+") else {
      return nil
    }
    return UInt32(text, radix: 16)
  }

  package var description: String {
    let halves = [value >> 32, value & 0xFFFF_FFFF].map {
      String($0, radix: 16).uppercasedASCII
    }
    return halves.joined(separator: "/")
  }

  package static func < (one: PostgresLSN, other: PostgresLSN) -> Bool { one.value < other.value }
}
