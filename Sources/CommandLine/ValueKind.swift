/// The accepted values of an option or argument; checked while parsing, before anything runs.
package enum ValueKind: Sendable, Equatable {
  /// Any text.
  case text
  /// A file's path; completed, not checked.
  case file
  /// A folder's path; completed, not checked.
  case directory
  /// Any text; completed with the names printed by the program's hidden command `names` for this
  /// list. The command gets the words of the line after `--`.
  case listed(String)
  /// One of these words.
  case choice([String])
  /// A whole number in the range.
  case integer(ClosedRange<Int>)
  /// An amount of time with a unit; see `Duration.init?(commandLine:)`.
  case duration
  /// An amount of bytes; see `ByteSize.init?(commandLine:)`.
  case byteSize

  /// The accepted values, to follow "takes" in a message; `nil` if every text is accepted.
  var expectation: String? {
    switch self {
    case .text, .file, .directory, .listed: nil
    case .choice(let words): "one of: " + words.joined(separator: ", ")
    case .integer(let range): Self.describe(range)
    case .duration: "a time with its unit, such as 500ms, 30s, 5m or 1h30m"
    case .byteSize: "a size such as 65536, 512KiB or 4MiB"
    }
  }

  /// Returns whether `text` is such a value.
  func accepts(_ text: String) -> Bool {
    switch self {
    case .text, .listed: true
    case .file, .directory: !text.isEmpty
    case .choice(let words): words.contains(text)
    case .integer(let range): Int(text).map(range.contains) ?? false
    case .duration: Duration(commandLine: text) != nil
    case .byteSize: ByteSize(commandLine: text) != nil
    }
  }

  private static func describe(_ range: ClosedRange<Int>) -> String {
    switch (range.lowerBound, range.upperBound) {
    case (Int.min, Int.max): "a whole number"
    case (let low, Int.max): "a whole number of \(low) or more"
    case (Int.min, let high): "a whole number of at most \(high)"
    case (let low, let high): "a whole number from \(low) to \(high)"
    }
  }
}
