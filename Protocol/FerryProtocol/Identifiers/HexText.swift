// Texts of numbers and identifiers, and hexadecimal digits, one by one and eight at a time.

/// Returns the digit for the low four bits of `value`.
@inline(__always)
package func hexDigit(_ value: UInt64) -> UInt8 {
  let nibble = UInt8(truncatingIfNeeded: value & 0xF)
  return nibble < 10 ? 0x30 + nibble : 0x57 + nibble
}

/// Returns the value of eight hexadecimal digits in lower case, one a byte, the first one in the
/// highest byte; `nil` for any other bytes.
@inline(__always)
func hexValue(digits: UInt64) -> UInt64? {
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

/// Returns eight lower-case hexadecimal digits, one a byte, the first one in the highest byte.
@inline(__always)
func hexDigits(_ value: UInt32) -> UInt64 {
  let ones: UInt64 = 0x0101_0101_0101_0101
  let fours = (UInt64(value) | UInt64(value) << 16) & 0x0000_FFFF_0000_FFFF
  let pairs = (fours | fours << 8) & 0x00FF_00FF_00FF_00FF
  let values = (pairs | pairs << 4) & (0x0F * ones)
  // Values from 10 on are letters: `a` is 0x61. No sum carries into the next byte.
  let letters = (values &+ 6 * ones) >> 4 & ones
  return values &+ 0x30 * ones &+ letters &* 0x27
}

// Each method writes at the pointer and advances it. The caller guarantees the room.
extension UnsafeMutableRawPointer {
  @inline(__always)
  mutating func append(_ byte: UInt8) {
    storeBytes(of: byte, as: UInt8.self)
    self += 1
  }

  /// Appends ASCII.
  @inline(__always)
  mutating func append(_ text: StaticString) {
    copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
    self += text.utf8CodeUnitCount
  }

  /// Appends the digits of a number, 20 at most with the sign.
  @inline(__always)
  mutating func append(decimal number: Int64) {
    if number < 0 { append(0x2D as UInt8) }
    let value = number.magnitude
    var count = 1
    var rest = value / 10
    while rest > 0 {
      count += 1
      rest /= 10
    }
    rest = value
    for place in stride(from: count - 1, through: 0, by: -1) {
      storeBytes(of: UInt8(0x30 + rest % 10), toByteOffset: place, as: UInt8.self)
      rest /= 10
    }
    self += count
  }

  /// Appends sixteen digits.
  @inline(__always)
  mutating func append(hex value: UInt64) {
    append(hexDigits(UInt32(truncatingIfNeeded: value >> 32)).bigEndian)
    append(hexDigits(UInt32(truncatingIfNeeded: value)).bigEndian)
  }

  /// Appends the 36 characters of a UUID.
  @inline(__always)
  mutating func append(_ id: UniqueID) {
    let second = hexDigits(UInt32(truncatingIfNeeded: id.high))
    let third = hexDigits(UInt32(truncatingIfNeeded: id.low >> 32))
    append(hexDigits(UInt32(truncatingIfNeeded: id.high >> 32)).bigEndian)
    append(0x2D as UInt8)
    append(UInt32(truncatingIfNeeded: second >> 32).bigEndian)
    append(0x2D as UInt8)
    append(UInt32(truncatingIfNeeded: second).bigEndian)
    append(0x2D as UInt8)
    append(UInt32(truncatingIfNeeded: third >> 32).bigEndian)
    append(0x2D as UInt8)
    append(UInt32(truncatingIfNeeded: third).bigEndian)
    append(hexDigits(UInt32(truncatingIfNeeded: id.low)).bigEndian)
  }

  @inline(__always)
  private mutating func append(_ word: some FixedWidthInteger) {
    storeBytes(of: word, as: type(of: word))
    self += MemoryLayout.size(ofValue: word)
  }
}
