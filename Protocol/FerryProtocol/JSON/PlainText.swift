import FerryPlatform

// Text as bytes, for the hundreds of thousands of messages to read and write.

/// The characters of a JSON string between the quotes, as in the message.
struct JSONSpan {
  let content: UnsafeBufferPointer<UInt8>
  /// True if any of them is an escape.
  var isEscaped = false
  /// True if all of them are ASCII.
  var isASCII = true

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(content) }

  /// Returns the string, escapes resolved.
  func text() throws(MalformedMessage) -> String {
    if isEscaped { return try unescape(content) }
    // ASCII needs no validation, and most strings are.
    if isASCII { return String(decoding: content, as: UTF8.self) }
    guard let text = validText(content) else {
      throw MalformedMessage(reason: "a string is not valid UTF-8", offset: 0)
    }
    return text
  }
}

/// Returns the text, unless the bytes are not UTF-8.
///
/// `String(decoding:as:)` repairs invalid bytes, and is several times as fast as
/// `String(validating:as:)`; a repaired text no longer has the same bytes.
package func validText(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
  var text = String(decoding: bytes, as: UTF8.self)
  let isSame = text.withUTF8 {
    hasSameBytes(UnsafeRawBufferPointer($0), UnsafeRawBufferPointer(bytes))
  }
  return isSame ? text : nil
}

/// Returns whether two pieces of memory hold the same bytes.
@inline(__always)
package func hasSameBytes(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
  guard one.count == other.count else { return false }
  guard let start = one.baseAddress, let second = other.baseAddress else { return true }
  return memcmp(start, second, one.count) == 0
}

/// Returns whether the bytes are UTF-8.
package func isValidUTF8(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
  var index = 0
  let raw = UnsafeRawBufferPointer(bytes)
  while index + 8 <= bytes.count {
    if raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) & highBits != 0 { break }
    index += 8
  }
  while index < bytes.count, bytes[index] < 0x80 { index += 1 }
  return index == bytes.count || validText(bytes) != nil
}

private let highBits: UInt64 = 0x8080_8080_8080_8080
private let lowBits: UInt64 = 0x0101_0101_0101_0101

extension UnsafeBufferPointer<UInt8> {
  /// Returns whether these are the characters of a literal.
  @inline(__always)
  func isEqual(to text: StaticString) -> Bool {
    text.withUTF8Buffer { hasSameBytes(UnsafeRawBufferPointer(self), UnsafeRawBufferPointer($0)) }
  }

  /// Returns the first place from `start` on of a quote, a backslash or a control character, or the
  /// end. The bytes before it are unescaped in JSON. Clears `isASCII` if a byte before it is not
  /// ASCII.
  ///
  /// It tests eight bytes at a time for a zero byte in a word (Warren, Hacker's Delight, §6-1).
  @inline(__always)
  func plainEnd(from start: Int, isASCII: inout Bool) -> Int {
    var index = start
    let raw = UnsafeRawBufferPointer(self)
    while index + 8 <= count {
      let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let quotes = word ^ (lowBits &* 0x22)
      let backslashes = word ^ (lowBits &* 0x5C)
      let found =
        ((quotes &- lowBits) & ~quotes | (backslashes &- lowBits) & ~backslashes
          | (word &- lowBits &* 0x20) & ~word) & highBits
      let ahead = found.trailingZeroBitCount & ~7
      let before = found == 0 ? word : word & ~(UInt64.max << UInt64(ahead))
      if before & highBits != 0 { isASCII = false }
      if found != 0 { return index + ahead / 8 }
      index += 8
    }
    while index < count {
      let byte = self[index]
      if byte < 0x20 || byte == 0x22 || byte == 0x5C { return index }
      if byte >= 0x80 { isASCII = false }
      index += 1
    }
    return index
  }
}
