/// Base64 with the alphabet for URLs, without padding (RFC 4648 §5, RFC 7515 §2).
package enum Base64URL {
  /// Returns the bytes. The result is `nil` for text with other characters, of an impossible
  /// length, or with unused bits other than zero. So each sequence of bytes has exactly one form.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var (bits, count): (UInt32, Int) = (0, 0)
    for character in text {
      guard let value = value(of: character) else { return nil }
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        bits &= (1 << UInt32(count)) - 1
      }
    }
    return bits == 0 ? bytes : nil
  }

  /// Returns the text of bytes.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    var (bits, count): (UInt32, Int) = (0, 0)
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      count += 8
      while count >= 6 {
        count -= 6
        text.append(alphabet[Int(bits >> UInt32(count) & 63)])
      }
      bits &= (1 << UInt32(count)) - 1
    }
    if count > 0 { text.append(alphabet[Int(bits << UInt32(6 - count) & 63)]) }
    return String(decoding: text, as: UTF8.self)
  }

  private static func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
