import FerryPlatform

extension CommandSpec {
  /// Returns the help of the command at `path` (names below this one), without a final newline.
  ///
  /// - Parameters:
  ///   - path: Stops at the first unknown name.
  ///   - width: Columns to wrap to; at most 100 are used, at least 40.
  ///   - bold: Whether section titles are bold.
  package func help(_ path: [String] = [], width: Int = 80, bold: Bool = false) -> String {
    let help = HelpText(trail: trail(along: path), width: min(100, max(40, width)), bold: bold)
    return help.sections.map { $0.joined(separator: "\n") }.joined(separator: "\n\n")
  }
}

/// Lays out the help of one command.
struct HelpText {
  let trail: [CommandSpec]
  let width: Int
  let bold: Bool

  private var command: CommandSpec { trail[trail.count - 1] }
  private var path: String { trail.map(\.name).joined(separator: " ") }

  var sections: [[String]] {
    var prose = command.summary.wrapped(toWidth: width)
    if !command.discussion.isEmpty { prose += [""] + command.discussion.wrapped(toWidth: width) }
    let commands = command.subcommands.filter { !$0.isHidden }.map { ($0.name, $0.summary) }
    let inherited = trail.dropLast().flatMap { $0.optionRows }
    var own = command.optionRows
    own.append(("-h, --help", "Show this help."))
    if trail.count == 1, command.version != nil { own.append(("--version", "Show the version.")) }
    let sections: [[String]] = [
      titled("USAGE", usage),
      prose,
      titled("ARGUMENTS", table(command.arguments.map { ($0.usage, $0.helpWithNotes) })),
      titled("OPTIONS", table(own)),
      titled("GLOBAL OPTIONS", table(inherited)),
      titled("COMMANDS", table(commands)),
      titled("EXAMPLES", examples),
      titled("EXIT CODES", table(command.exitCodes.map { (String($0.code), $0.meaning) })),
    ]
    return sections.filter { !$0.isEmpty }
  }

  private var usage: [String] {
    var lines: [String] = []
    if command.run != nil {
      let required = command.options.filter { $0.isRequired && !$0.isHidden }
        .map { "--\($0.name) \($0.valueName)" }
      let words = [path] + required + ["[OPTIONS]"] + command.arguments.map(\.usage)
      lines.append(words.joined(separator: " "))
    }
    if !command.subcommands.isEmpty { lines.append("\(path) [OPTIONS] COMMAND") }
    return lines.flatMap { $0.wrapped(toWidth: width - 2, hanging: 4) }.map { "  " + $0 }
  }

  private var examples: [String] {
    command.examples.enumerated().flatMap { index, example in
      (index > 0 ? [""] : [])
        + example.purpose.wrapped(toWidth: width - 4).map { "  # " + $0 } + ["  " + example.line]
    }
  }

  private func titled(_ title: String, _ lines: [String]) -> [String] {
    lines.isEmpty ? [] : [bold ? "\u{1B}[1m\(title)\u{1B}[0m" : title] + lines
  }

  /// Lays out two columns; a left side without enough room has the help on the lines below.
  private func table(_ rows: [(String, String)]) -> [String] {
    let limit = width / 3
    let left = rows.map(\.0.displayWidth).filter { $0 <= limit }.max() ?? limit
    let indent = String(repeating: " ", count: left + 4)
    return rows.flatMap { name, help -> [String] in
      let lines = help.wrapped(toWidth: width - left - 4)
      if name.displayWidth > left { return ["  " + name] + lines.map { indent + $0 } }
      let first = ("  " + name).padded(toWidth: left + 4) + (lines.first ?? "")
      return [first] + lines.dropFirst().map { indent + $0 }
    }
  }
}

extension CommandSpec {
  /// The spelling and the purpose of each visible option and flag, options first.
  fileprivate var optionRows: [(String, String)] {
    let options = options.filter { !$0.isHidden }.map { option in
      (
        (option.short.map { "-\($0), " } ?? "") + "--\(option.name) \(option.valueName)",
        option.helpWithNotes
      )
    }
    let flags = flags.filter { !$0.isHidden }.map { flag in
      (
        (flag.short.map { "-\($0), " } ?? "") + (flag.isNegatable ? "--[no-]" : "--") + flag.name,
        ([flag.help] + (flag.environment.map { ["[env: \($0)]"] } ?? [])).joined(separator: " ")
      )
    }
    return options + flags
  }
}

extension OptionSpec {
  fileprivate var helpWithNotes: String {
    var notes = [help]
    if isRequired { notes.append("[required]") }
    if isRepeated { notes.append("[repeatable]") }
    if case .choice(let words) = kind { notes.append("[one of: \(words.joined(separator: ", "))]") }
    if let environment { notes.append("[env: \(environment)]") }
    if let defaultValue { notes.append("[default: \(defaultValue)]") }
    return notes.joined(separator: " ")
  }
}

extension ArgumentSpec {
  fileprivate var helpWithNotes: String {
    guard case .choice(let words) = kind else { return help }
    return "\(help) [one of: \(words.joined(separator: ", "))]"
  }
}

extension String {
  /// Returns lines of at most `width` columns, broken at spaces but never inside brackets
  /// (`[env: X]`). A blank line stays. A line that begins with a space is kept as it is. A word
  /// longer than the width gets its own line. Lines after a break are indented by `hanging`.
  func wrapped(toWidth width: Int, hanging: Int = 0) -> [String] {
    var lines: [String] = []
    var paragraph: [Substring] = []
    func flush() {
      var line = ""
      for word in paragraph.joined(separator: " ").unbreakableWords {
        if line.isEmpty {
          line = word
        } else if line.displayWidth + 1 + word.displayWidth <= width {
          line += " " + word
        } else {
          lines.append(line)
          line = String(repeating: " ", count: hanging) + word
        }
      }
      if !line.isEmpty { lines.append(line) }
      paragraph = []
    }
    for line in split(separator: "\n", omittingEmptySubsequences: false) {
      if line.isEmpty || line.begins(with: " ") {
        flush()
        lines.append(String(line))
      } else {
        paragraph.append(line)
      }
    }
    flush()
    return lines
  }

  /// The words; a bracketed note is one word.
  private var unbreakableWords: [String] {
    var words: [String] = []
    var depth = 0
    for word in self.words() {
      if depth > 0 { words[words.count - 1] += " " + word } else { words.append(String(word)) }
      depth += word.utf8.count { $0 == 0x5B } - word.utf8.count { $0 == 0x5D }
    }
    return words
  }
}
