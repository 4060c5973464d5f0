/// A 128-bit UUID (RFC 9562). Ferry makes version 7, whose order is the order of creation.
public struct UniqueID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The first eight bytes, big endian.
  public let high: UInt64
  /// The last eight bytes, big endian.
  public let low: UInt64

  /// Creates a UUID from its two halves in RFC 9562's layout.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Creates a version 7 UUID. The timestamp's counter fills `rand_a` and the first four bits of
  /// `rand_b` (RFC 9562 §6.2, method 1). So ids of one clock sort as its timestamps do. 58 bits of
  /// `random` fill the rest.
  public init(timestamp: HybridTimestamp, random: UInt64) {
    let counter = timestamp.rawValue & 0xFFFF
    high = (timestamp.rawValue & 0xFFFF_FFFF_FFFF_0000) | 0x7000 | (counter >> 4)
    low = 0x8000_0000_0000_0000 | ((counter & 0xF) << 58) | (random & 0x03FF_FFFF_FFFF_FFFF)
  }

  /// The hybrid timestamp that `init(timestamp:random:)` wrote into the id.
  public var timestamp: HybridTimestamp {
    let counter = ((high & 0xFFF) << 4) | ((low >> 58) & 0xF)
    return HybridTimestamp(rawValue: (high & 0xFFFF_FFFF_FFFF_0000) | counter)
  }

  /// The version that RFC 9562 §4.2 puts into the thirteenth digit.
  package var version: UInt8 { UInt8(truncatingIfNeeded: high >> 12 & 0xF) }

  /// The version of the id of a batch's effect on one record (SPEC.md §14).
  package static let effectVersion: UInt8 = 8

  /// Parses the 36-character form; `nil` when it is anything else. Upper case is accepted.
  public init?(_ text: some StringProtocol) {
    var text = String(text)
    let parsed = text.withUTF8 { UniqueID(utf8: $0) }
    guard let parsed else { return nil }
    self = parsed
  }

  /// Parses the 36-character form from UTF-8 bytes.
  package init?(utf8 bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count == 36 else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    var digits = 0
    for index in 0..<36 {
      let byte = bytes[index]
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == 0x2D else { return nil }
        continue
      }
      guard let digit = hexValue(byte) else { return nil }
      if digits < 16 {
        halves.0 = halves.0 << 4 | UInt64(digit)
      } else {
        halves.1 = halves.1 << 4 | UInt64(digit)
      }
      digits += 1
    }
    (high, low) = halves
  }

  /// Parses the 36-character form in lower case; `nil` for anything that ``description`` does not
  /// return.
  package init?(lowercase bytes: UnsafeRawBufferPointer) {
    // 0x41 to 0x46 are A to F.
    guard bytes.count == 36, !bytes.contains(where: { $0 & 0xF8 == 0x40 }) else { return nil }
    self.init(utf8: bytes.bindMemory(to: UInt8.self))
  }

  /// Creates the sixteen bytes in network order; `nil` for any other count.
  package init?(bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 16 else { return nil }
    high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
  }

  /// The sixteen bytes in network order.
  public var bytes: [UInt8] {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
  }

  /// The lower-case 36-character form.
  public var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(36)
    appendText(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  package func appendText(to text: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { characters in
      writeHex(high >> 32, digits: 8, at: 0, in: characters)
      characters[8] = 0x2D
      writeHex(high >> 16, digits: 4, at: 9, in: characters)
      characters[13] = 0x2D
      writeHex(high, digits: 4, at: 14, in: characters)
      characters[18] = 0x2D
      writeHex(low >> 48, digits: 4, at: 19, in: characters)
      characters[23] = 0x2D
      writeHex(low, digits: 12, at: 24, in: characters)
      text.append(contentsOf: UnsafeBufferPointer(characters))
    }
  }

  public static func < (left: UniqueID, right: UniqueID) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }
}

/// Writes the low `digits` hexadecimal digits of `value`.
@inline(__always)
func writeHex(
  _ value: UInt64, digits: Int, at start: Int, in characters: UnsafeMutableBufferPointer<UInt8>
) {
  var rest = value
  for index in stride(from: start + digits - 1, through: start, by: -1) {
    characters[index] = hexDigit(rest)
    rest >>= 4
  }
}

/// Returns the digit for the low four bits of `value`.
@inline(__always)
package func hexDigit(_ value: UInt64) -> UInt8 {
  let nibble = UInt8(truncatingIfNeeded: value & 0xF)
  return nibble < 10 ? 0x30 + nibble : 0x57 + nibble
}

/// Returns the value of one hexadecimal digit in either case.
@inline(__always)
package func hexValue(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x30...0x39: byte - 0x30
  case 0x61...0x66: byte - 0x57
  case 0x41...0x46: byte - 0x37
  default: nil
  }
}
