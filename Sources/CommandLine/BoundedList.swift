/// Lists whose lengths others choose, as messages show them: the first entries, and the number of
/// the rest.
package enum BoundedList {
  /// The entries in one message.
  package static let shown = 10
  /// The entries of a requested list in a command's output.
  package static let listed = 100

  /// Returns the first names, and the number of the others.
  ///
  /// ```
  /// lists, notes, tasks
  /// a, b, c, d, e, f, g, h, i, j and 199,990 more
  /// ```
  package static func names(_ names: some Collection<String>, shown: Int = shown) -> String {
    let first = names.prefix(shown).joined(separator: ", ")
    let rest = names.count - shown
    return rest > 0 ? "\(first) and \(rest.grouped) more" : first
  }

  /// Returns one line for each of the first entries, and one with the number of the others.
  ///
  /// - Parameters:
  ///   - shown: Entries with lines of their own.
  ///   - rest: Returns the last line, for at least one other entry.
  package static func lines<Entry>(
    _ entries: some Collection<Entry>, shown: Int = shown, _ line: (Entry) -> String,
    rest: (Int) -> String
  ) -> [String] {
    let lines = entries.prefix(shown).map(line)
    return entries.count > shown ? lines + [rest(entries.count - shown)] : lines
  }
}
