import FerryPlatform
import Foundation

/// The characters for tables, bars and shortened text.
///
/// Example: `Glyphs(environment: ["LC_ALL": "C"]) == .ascii`.
package struct Glyphs: Sendable, Equatable {
  /// The line under a table's titles, a column wide.
  let rule: String
  /// The end of shortened text.
  package let ellipsis: String
  /// A filled column of a bar.
  let full: String
  /// An empty column of a bar.
  let empty: String
  /// Filled parts of a column, from the smallest; empty if a column is full or empty.
  let parts: [Character]
  /// The moving sign of work without a known total.
  let spinner: [Character]

  /// Block characters, for locales with UTF-8.
  package static let unicode = Glyphs(
    rule: "─", ellipsis: "…", full: "█", empty: "░", parts: Array("▏▎▍▌▋▊▉"),
    spinner: Array("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"))

  /// Characters of ASCII, for all other locales.
  package static let ascii = Glyphs(
    rule: "-", ellipsis: "...", full: "#", empty: ".", parts: [], spinner: Array("|/-\\"))

  /// Those of this process's locale.
  package static let current = Glyphs(environment: ProcessInfo.processInfo.environment)

  private init(
    rule: String, ellipsis: String, full: String, empty: String, parts: [Character],
    spinner: [Character]
  ) {
    self.rule = rule
    self.ellipsis = ellipsis
    self.full = full
    self.empty = empty
    self.parts = parts
    self.spinner = spinner
  }

  /// Chooses by the locale for characters: the first set and non-empty one of LC_ALL, LC_CTYPE and
  /// LANG (POSIX.1-2017, 8.2). ``unicode`` if none is.
  package init(environment: [String: String]) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }
      .first { !$0.isEmpty }
    let isUnicode = locale.map { locale in
      let name = locale.lowercasedASCII
      return name.has("utf-8") || name.has("utf8")
    }
    self = isUnicode ?? true ? .unicode : .ascii
  }

  /// Returns a bar of a number of eighths of a column.
  func bar(eighths count: Int) -> String {
    let part = count % 8 == 0 || parts.isEmpty ? "" : String(parts[count % 8 - 1])
    return String(repeating: full, count: count / 8) + part
  }
}

extension String {
  /// Returns a message in characters of the locale: the quotes, dashes, dots and arrows of Ferry's
  /// messages become ASCII if it has no others.
  func drawn(with glyphs: Glyphs) -> String {
    guard glyphs == .ascii, !utf8.allSatisfy({ $0 < 0x80 }) else { return self }
    var result = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "“", "”": result += "\""
      case "’": result += "'"
      case "–": result += "-"
      case "…": result += "..."
      case "→": result += "->"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
