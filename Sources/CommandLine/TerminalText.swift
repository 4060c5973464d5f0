// Text as a terminal shows it: unsafe characters are escaped, and widths are counted in columns.

extension Unicode.Scalar {
  /// True if the scalar could move the cursor, colour, end a line, reverse the text around it, or
  /// hide. These are C0, DEL, C1, line separators, bidirectional controls, and invisible
  /// characters. Joiners and selectors belong to scripts and emoji.
  var isUnsafeInTerminal: Bool {
    switch value {
    case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
      true
    case 0x200C, 0x200D, 0xFE00...0xFE0F, 0xE0100...0xE01EF: false
    case 0xFFF9...0xFFFB: true
    default: value > 0x7F && properties.isDefaultIgnorableCodePoint
    }
  }

  /// True if terminals draw the scalar two columns wide (East Asian Width W and F, and emoji). The
  /// ranges are those of Unicode's EastAsianWidth.txt, unassigned gaps included.
  fileprivate var isWide: Bool {
    if properties.isEmojiPresentation { return true }
    return switch value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
      0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
      0x16FE0...0x18CFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F265, 0x20000...0x3FFFD:
      true
    default: false
    }
  }
}

extension Character {
  /// Columns the character takes: 0 for a lone mark, 2 for CJK and emoji, otherwise 1.
  var displayWidth: Int {
    guard let first = unicodeScalars.first else { return 0 }
    let emojiSelector: Unicode.Scalar = "\u{FE0F}"
    if unicodeScalars.contains(where: { $0 == emojiSelector || $0.isWide }) { return 2 }
    return switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: 0
    default: 1
    }
  }
}

extension String {
  /// The string with an escape for every character that could drive the terminal: `\n`, `\t`,
  /// `\u{1B}`. Text without such characters is returned as it is.
  package var escapedForTerminal: String { escaped { _ in false } }

  /// The string with the same characters spelled out, except newlines and tabs.
  var safeLines: String { escaped { $0 == "\n" || $0 == "\t" } }

  private func escaped(except isAllowed: (Unicode.Scalar) -> Bool) -> String {
    guard unicodeScalars.contains(where: { $0.isUnsafeInTerminal && !isAllowed($0) }) else {
      return self
    }
    var result = ""
    for scalar in unicodeScalars {
      switch scalar {
      case _ where isAllowed(scalar): result.unicodeScalars.append(scalar)
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.isUnsafeInTerminal:
        result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// Terminal columns the string takes; control characters must have been escaped before.
  package var displayWidth: Int {
    if utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return utf8.count }
    return reduce(0) { $0 + $1.displayWidth }
  }

  /// Returns the string in at most `width` columns; longer text ends in an ellipsis.
  package func truncated(toWidth width: Int, with glyphs: Glyphs = .current) -> String {
    guard displayWidth > width else { return self }
    let ellipsis = glyphs.ellipsis
    guard width > ellipsis.count else { return String(ellipsis.prefix(max(0, width))) }
    var result = ""
    var used = ellipsis.count
    for character in self {
      used += character.displayWidth
      if used > width { break }
      result.append(character)
    }
    return result + ellipsis
  }

  /// Returns the string with spaces up to `width` columns, after it or, `leading`, before it.
  func padded(toWidth width: Int, leading: Bool = false) -> String {
    let padding = String(repeating: " ", count: max(0, width - displayWidth))
    return leading ? padding + self : self + padding
  }
}
