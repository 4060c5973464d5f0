import FerryPlatform

/// The input of `ferry sql` on a terminal, line by line: a statement up to the semicolon, or a
/// command with a full stop at the beginning; pure.
struct SQLInput: Equatable {
  /// The commands of the terminal.
  enum Command: Equatable {
    case help
    case leave
    case tables
    /// The CREATE statements of one table, or of all.
    case schema(table: String?)
  }

  /// The next step after a line.
  enum Step: Equatable {
    /// More lines are needed, or the line was empty.
    case read
    case run(sql: String)
    case perform(Command)
    /// The line is no command; has the reason.
    case reject(String)
  }

  static let prompt = "ferry> "
  static let continuation = "   ...> "

  /// The lines of an incomplete statement, each with the line end.
  private(set) var pending = ""

  /// The prompt for the next line.
  var prompt: String { pending.isEmpty ? Self.prompt : Self.continuation }

  /// Appends the next line.
  ///
  /// - Parameter isComplete: returns true if SQL ends with a semicolon outside of a text, a comment
  ///   or the body of a trigger.
  mutating func append(_ line: String, isComplete: (String) -> Bool) -> Step {
    if pending.isEmpty {
      let words = line.fields.map(String.init)
      guard let first = words.first else { return .read }
      if first.begins(with: ".") { return Self.command(first, Array(words.dropFirst())) }
    }
    let text = pending + line
    guard isComplete(text) else {
      pending = text + "\n"
      return .read
    }
    pending = ""
    return .run(sql: text)
  }

  /// Discards the lines so far.
  mutating func cancel() { pending = "" }

  /// Reads a command. The table in it may be quoted as in SQL, and a semicolon at the end is
  /// ignored.
  private static func command(_ name: String, _ words: [String]) -> Step {
    var words = words
    var name = name
    if words.isEmpty {
      name = trimmed(name)
    } else {
      words[words.count - 1] = trimmed(words[words.count - 1])
      words.removeAll { $0.isEmpty }
    }
    switch (name, words.count) {
    case (".help", 0): return .perform(.help)
    case (".quit", 0), (".exit", 0): return .perform(.leave)
    case (".tables", 0): return .perform(.tables)
    case (".schema", 0): return .perform(.schema(table: nil))
    case (".schema", 1...): return .perform(.schema(table: unquoted(words.joined(separator: " "))))
    case (".help", _), (".quit", _), (".exit", _), (".tables", _):
      return .reject("\(name) takes no argument")
    default: return .reject("\(name) is not a command; .help lists the commands")
    }
  }

  private static func trimmed(_ word: String) -> String {
    var word = word
    while let start = word.start(before: ";") { word = String(start) }
    return word
  }

  private static func unquoted(_ name: String) -> String {
    let bytes = name.utf8
    guard bytes.count > 1, let quote = bytes.first, quote == bytes.last,
      "\"'`".utf8.contains(quote)
    else { return name }
    return String(Substring(bytes.dropFirst().dropLast()))
  }
}
