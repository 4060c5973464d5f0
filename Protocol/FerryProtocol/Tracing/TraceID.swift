/// The identifier of a trace (W3C Trace Context §3.2.2.3): sixteen bytes, not all zero.
package struct TraceID: Sendable, Hashable, CustomStringConvertible {
  package let high: UInt64
  package let low: UInt64

  /// Returns `nil` for zeros.
  package init?(high: UInt64, low: UInt64) {
    guard high | low != 0 else { return nil }
    (self.high, self.low) = (high, low)
  }

  /// Creates a new one.
  package init(random: () -> UInt64) {
    high = random()
    let low = random()
    self.low = high | low == 0 ? 1 : low
  }

  /// 32 hexadecimal digits.
  package var description: String { high.hexadecimal + low.hexadecimal }
}

/// The identifier of a span (W3C Trace Context §3.2.2.4): eight bytes, not all zero.
package struct SpanID: Sendable, Hashable, CustomStringConvertible {
  package let value: UInt64

  /// Returns `nil` for zero.
  package init?(_ value: UInt64) {
    guard value != 0 else { return nil }
    self.value = value
  }

  /// Creates a new one.
  package init(random: () -> UInt64) {
    let value = random()
    self.value = value == 0 ? 1 : value
  }

  /// 16 hexadecimal digits.
  package var description: String { value.hexadecimal }
}

extension UInt64 {
  /// 16 lower-case digits.
  fileprivate var hexadecimal: String {
    String(unsafeUninitializedCapacity: 16) { digits in
      for index in 0..<16 {
        let digit = UInt8(truncatingIfNeeded: self >> UInt64(60 - index * 4)) & 0xF
        digits[index] = digit < 10 ? 0x30 + digit : 0x57 + digit
      }
      return 16
    }
  }

  /// Reads up to 16 digits. Upper-case digits are wrong (W3C Trace Context §3.2.1).
  init?(lowercaseHexadecimal digits: some Collection<UInt8>) {
    var value: UInt64 = 0
    for digit in digits {
      switch digit {
      case 0x30...0x39: value = value << 4 | UInt64(digit - 0x30)
      case 0x61...0x66: value = value << 4 | UInt64(digit - 0x57)
      default: return nil
      }
    }
    self = value
  }
}
