import FerryCommandLine
import FerryPlatform

/// Commands in hints, for a space other than the file's first one; pure.
enum CommandHint {
  /// Commands for the whole file, or with a space of their own.
  private static let ofFile: Set<Substring> = [
    "join", "leave", "spaces", "sql", "sync", "push", "pull", "name", "import",
  ]

  /// Returns the lines, with the space's name in each command between backticks.
  ///
  /// `ferry to-apply` becomes `ferry to-apply --in SPACE`. A joined space is set up with `ferry
  /// join SPACE`, the first one with `ferry init --space NAME`.
  ///
  /// - Parameter space: `nil` for the first space: commands need not name it.
  static func lines(_ lines: [String], in space: String?) -> [String] {
    guard let space else { return lines }
    return lines.map { line in
      // Every second part is between backticks.
      let parts = line.parts(at: "`")
      guard parts.count.isMultiple(of: 2) == false else { return line }
      return parts.enumerated().map { index, part in
        index.isMultiple(of: 2) ? String(part) : command(part, in: space)
      }.joined(separator: "`")
    }
  }

  /// Returns a failure with the space's name in the next step.
  ///
  /// - Parameter space: `nil` for the first space: commands need not name it.
  static func failure(_ failure: CommandFailure, in space: String?) -> CommandFailure {
    var failure = failure
    failure.why = lines([failure.why], in: space)[0]
    failure.next = lines([failure.next], in: space)[0]
    return failure
  }

  private static func command(_ command: Substring, in space: String) -> String {
    var words = command.words()
    guard words.count > 1, words[0] == "ferry", !ofFile.contains(words[1]),
      !words.contains(where: { $0.isSame(as: "--in") || $0.isSame(as: "--help") })
    else { return String(command) }
    guard words[1] == "init" else { return adding("--in \(space)", to: command) }
    // Without options it is about the file.
    guard words.count > 2 else { return String(command) }
    if let option = words.firstIndex(where: { $0.isSame(as: "--space") }) {
      words.removeSubrange(option..<min(option + 2, words.count))
    }
    return (["ferry", "join", Substring(space)] + words.dropFirst(2)).joined(separator: " ")
  }

  /// Adds an option before the words quoted by ``SuggestedCommand``, or that no option may follow.
  private static func adding(_ option: String, to command: Substring) -> String {
    let ends = [" -- ", " '"].compactMap { command.utf8.firstRange(of: $0.utf8)?.lowerBound }
    guard let end = ends.min() else { return "\(command) \(option)" }
    return "\(command[..<end]) \(option)\(command[end...])"
  }
}
