import FerryPlatform

/// The text of a history file; pure. Each entry is one line. In an entry, `\n` is a line break and
/// `\\` a backslash.
package enum HistoryText {
  /// The most bytes of an entry; longer ones are not kept.
  package static let entryBytesMax = 64 << 10

  /// Returns the line for an entry, with the line end; `nil` if the entry is empty or too long.
  package static func line(_ entry: String) -> String? {
    let isBlank = entry.trimmedASCII.isEmpty
    guard !isBlank, entry.utf8.count <= entryBytesMax else { return nil }
    var line = ""
    for scalar in entry.unicodeScalars {
      switch scalar {
      case "\\": line += "\\\\"
      case "\n": line += "\\n"
      case "\r", "\0": continue
      default: line.unicodeScalars.append(scalar)
      }
    }
    return line + "\n"
  }

  /// Returns the last `count` entries of a file, oldest first. Skips lines without an entry, such
  /// as an unfinished line of a killed process.
  package static func entries(_ text: String, last count: Int) -> [String] {
    let lines = text.parts(at: "\n")
    return lines.dropLast().suffix(count).compactMap(entry)
  }

  private static func entry(_ line: Substring) -> String? {
    var entry = ""
    var isEscaped = false
    for scalar in line.unicodeScalars {
      switch (isEscaped, scalar) {
      case (false, "\\"): isEscaped = true
      case (true, "n"): (entry, isEscaped) = (entry + "\n", false)
      case (true, "\\"): (entry, isEscaped) = (entry + "\\", false)
      case (true, _): return nil
      case (false, _): entry.unicodeScalars.append(scalar)
      }
    }
    return isEscaped || entry.isEmpty ? nil : entry
  }
}
