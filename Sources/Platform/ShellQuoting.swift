// Texts from outside in command lines that a user may paste into a shell. No other code quotes for
// a shell.

extension String {
  /// The text as one word of a POSIX shell: in single quotes, each quote of it written as `'\''`.
  /// It works on bytes, since a quote may be one `Character` with a mark before or behind it.
  package var shellQuoted: String {
    var quoted = [UInt8(ascii: "'")]
    quoted.reserveCapacity(utf8.count + 2)
    for byte in utf8 {
      if byte == UInt8(ascii: "'") {
        quoted += Array("'\\''".utf8)
      } else {
        quoted.append(byte)
      }
    }
    quoted.append(UInt8(ascii: "'"))
    return String(decoding: quoted, as: UTF8.self)
  }
}

/// Suggested command lines in messages; pure.
package enum SuggestedCommand {
  /// Returns a command with texts from outside as the last words, for a place between backticks.
  ///
  /// `line("ferry track", ["my notes"], or: "TABLE")` is `ferry track 'my notes'`. If a text could
  /// be another one than a user sees, or could end the line or the suggestion, no text is
  /// suggested. The result is `ferry track TABLE`.
  package static func line(
    _ command: String, _ operands: [String], or placeholder: String
  ) -> String {
    guard operands.allSatisfy(isFaithful) else { return "\(command) \(placeholder)" }
    let looksLikeOption = operands.contains { $0.utf8.first == UInt8(ascii: "-") }
    return ([command] + (looksLikeOption ? ["--"] : []) + operands.map(word))
      .joined(separator: " ")
  }

  private static func word(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
      case UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: "-"): true
      default: false
      }
    }
    return isPlain && !text.isEmpty ? text : text.shellQuoted
  }

  /// Returns `true` if a user sees each character of a text as it will be pasted. None is a control
  /// character, a line separator, invisible or of another direction. A backtick would end the
  /// suggestion.
  private static func isFaithful(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { scalar in
      if scalar.properties.isDefaultIgnorableCodePoint { return false }
      switch scalar.properties.generalCategory {
      case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
        .paragraphSeparator:
        return false
      case .spaceSeparator: return scalar == " "
      default: return scalar != "`"
      }
    }
  }
}
