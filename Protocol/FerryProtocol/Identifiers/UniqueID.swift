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
    if let id = UniqueID(lowercase: UnsafeRawBufferPointer(bytes)) {
      self = id
      return
    }
    guard bytes.count == 36 else { return nil }
    let lower = bytes.map { (0x41...0x46).contains($0) ? $0 | 0x20 : $0 }
    let id = lower.withUnsafeBytes { UniqueID(lowercase: $0) }
    guard let id else { return nil }
    self = id
  }

  /// Parses the 36-character form in lower case; `nil` for anything that ``description`` does not
  /// return.
  package init?(lowercase bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 36, bytes[8] == 0x2D, bytes[13] == 0x2D, bytes[18] == 0x2D,
      bytes[23] == 0x2D
    else { return nil }
    func eight(_ first: Int, _ second: Int) -> UInt64? {
      let halves = (
        UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: first, as: UInt32.self)),
        UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: second, as: UInt32.self))
      )
      return hexValue(digits: UInt64(halves.0) << 32 | UInt64(halves.1))
    }
    guard let first = eight(0, 4), let second = eight(9, 14), let third = eight(19, 24),
      let fourth = eight(28, 32)
    else { return nil }
    self.init(high: first << 32 | second, low: third << 32 | fourth)
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

/// Returns the value of eight hexadecimal digits in lower case, one a byte, the first one in the
/// highest byte; `nil` for any other bytes.
@inline(__always)
private func hexValue(digits: UInt64) -> UInt64? {
  let ones: UInt64 = 0x0101_0101_0101_0101
  // Only letters have bit 6: `a` is 0x61. No sum carries into the next byte.
  let letters = digits >> 6 & ones
  let values = (digits & (0x0F * ones)) &+ letters &* 9
  // The digits of these values. They differ if a byte is neither a digit nor a letter from `a` on.
  let isWritten = values &+ 0x30 * ones &+ letters &* 0x27 == digits
  // Values below 10 are digits and others are letters, and none is above 15.
  let isInRange = (values &+ 6 * ones) >> 4 & ones == letters && values & (0xF0 * ones) == 0
  guard isWritten, isInRange else { return nil }
  let pairs = (values | values >> 4) & 0x00FF_00FF_00FF_00FF
  let fours = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
  return (fours | fours >> 16) & 0xFFFF_FFFF
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
