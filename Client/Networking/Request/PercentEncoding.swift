/// Percent-encoding of text between an address's delimiters (RFC 3986 §2).
package enum PercentEncoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Encodes every byte but the unreserved ones (§2.3) as `%XX`, so no text counts as syntax.
  package static func encode(_ text: String) -> String {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      if isUnreserved(byte) {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-._~".utf8.contains(byte)
    }
  }
}
