/// Collects a page's bytes, and escapes texts of a run.
struct MarkupWriter {
  private(set) var bytes: [UInt8] = []

  /// Writes markup as it is.
  mutating func write(_ markup: String) { bytes.append(contentsOf: markup.utf8) }

  /// Begins a member of an object, on a separate line unless it is the first.
  mutating func write(key name: String) {
    if bytes.last != UInt8(ascii: "{") { write(",\n") }
    write(json: name)
    write(":")
  }

  /// Writes `[1,2,3]`.
  mutating func write(json numbers: [Int64]) {
    bytes.append(UInt8(ascii: "["))
    for (index, number) in numbers.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.append(contentsOf: String(number).utf8)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Writes `["one","two"]`.
  mutating func write(json texts: [String]) {
    bytes.append(UInt8(ascii: "["))
    for (index, text) in texts.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      write(json: text)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Writes a JSON string, safe also inside of a `script` element. It contains no `<`, so it
  /// neither ends the element nor opens a comment, and no U+2028 or U+2029.
  mutating func write(json text: String) {
    bytes.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": write("\\\"")
      case "\\": write("\\\\")
      case "\u{0}"..<" ", "\u{7F}"..."\u{9F}", "<", ">", "&", "\u{2028}", "\u{2029}", "\u{FEFF}":
        let digits = String(scalar.value, radix: 16)
        write("\\u" + String(repeating: "0", count: 4 - digits.count) + digits)
      default: bytes.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}

extension String {
  /// The text without characters with a meaning in HTML, in content or a quoted attribute.
  var escapedForHTML: String {
    var result = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      // The parser drops or replaces these; a picture of the character shows more.
      case "\u{0}"..<"\t": result.unicodeScalars.append(scalar.controlPicture)
      case "\u{B}"..<" ": result.unicodeScalars.append(scalar.controlPicture)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension Unicode.Scalar {
  /// U+2400 and the following: the visible pictures of C0 control characters.
  fileprivate var controlPicture: Unicode.Scalar {
    Unicode.Scalar(0x2400 + value) ?? "\u{FFFD}"
  }
}
