/// Commands in hints, for a space that is not the file's first one; pure.
enum CommandHint {
  /// Commands that concern the whole file, or that name their space themselves.
  private static let ofFile: Set<Substring> = [
    "init", "join", "leave", "spaces", "sql", "sync", "push", "pull", "name", "import",
  ]

  /// Returns lines in which each command between backticks names the space: `ferry to-apply` becomes
  /// `ferry to-apply --in SPACE`.
  ///
  /// - Parameter space: `nil` for the first space, which commands need not name.
  static func lines(_ lines: [String], in space: String?) -> [String] {
    guard let space else { return lines }
    return lines.map { line in
      // Every second part is between backticks.
      let parts = line.split(separator: "`", omittingEmptySubsequences: false)
      guard parts.count.isMultiple(of: 2) == false else { return line }
      return parts.enumerated().map { index, part in
        let words = part.split(separator: " ")
        guard !index.isMultiple(of: 2), words.count > 1, words[0] == "ferry",
          !ofFile.contains(words[1]), !words.contains("--in")
        else { return String(part) }
        return "\(part) --in \(space)"
      }.joined(separator: "`")
    }
  }
}
