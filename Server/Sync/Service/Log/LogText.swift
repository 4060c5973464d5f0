/// Text from elsewhere in a line of the log; pure. The result is a JSON string of bounded size,
/// without characters that control a terminal or change the order of the text.
enum LogText {
  /// Written bytes of UTF-8 of one text.
  static let byteCountMax = 512

  /// Returns the text as a JSON string. A longer text ends with the size: `…(16384 bytes)`.
  static func json(_ text: String) -> [UInt8] {
    var json: [UInt8] = [quote]
    let count = text.utf8.count
    var written = 0
    for scalar in text.unicodeScalars {
      written += UTF8.width(scalar)
      guard written <= byteCountMax else {
        json += Array("…(\(count) bytes)".utf8)
        break
      }
      append(scalar, to: &json)
    }
    json.append(quote)
    return json
  }

  private static let quote = UInt8(ascii: "\"")
  private static let backslash = UInt8(ascii: "\\")

  private static func append(_ scalar: Unicode.Scalar, to json: inout [UInt8]) {
    switch scalar.value {
    case 0x22, 0x5C: json += [backslash, UInt8(scalar.value)]
    case 0x09: json += [backslash, UInt8(ascii: "t")]
    case 0x0A: json += [backslash, UInt8(ascii: "n")]
    case 0x0D: json += [backslash, UInt8(ascii: "r")]
    case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF,
      0xFFF9...0xFFFB:
      let digits = String(scalar.value, radix: 16)
      let padding = String(repeating: "0", count: 4 - digits.utf8.count)
      json += [backslash, UInt8(ascii: "u")] + Array((padding + digits).utf8)
    default: json += UTF8.encode(scalar)?.map { $0 } ?? []
    }
  }
}
