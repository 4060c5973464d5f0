import FerryPlatform

/// The character between the fields of a CSV file: one of ASCII, except letters, digits, quotes and
/// line ends.
///
/// ```swift
/// CSVSeparator("tab")  // also ";", "|" and others
/// ```
package struct CSVSeparator: Sendable, Equatable {
  package static let comma = CSVSeparator(byte: 0x2C)
  package static let tab = CSVSeparator(byte: 0x09)

  let byte: UInt8

  private init(byte: UInt8) { self.byte = byte }

  /// Reads one character, or the word `tab`; `nil` for anything else.
  package init?(_ text: String) {
    if text.lowercasedASCII == "tab" {
      self = .tab
      return
    }
    guard text.utf8.count == 1, let byte = text.utf8.first, Self.isUsable(byte) else {
      return nil
    }
    self.byte = byte
  }

  /// Returns the usual separator of a file with this name: a tab for `.tsv`.
  package static func guess(path: String) -> CSVSeparator {
    path.lowercasedASCII.ends(with: ".tsv") ? .tab : .comma
  }

  private static func isUsable(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09: true
    case UInt8(ascii: "\""), 0x30...0x39, 0x41...0x5A, 0x61...0x7A: false
    default: (0x20...0x7E).contains(byte)
    }
  }
}
