import FerryPlatform

/// The request of a command line.
package enum ParsedCommand: Sendable, Equatable {
  /// Run the command at `path`.
  case run(ParsedArguments)
  /// Show the help of the command at this path, root first.
  case help([String])
  /// Show the version.
  case version
}

extension CommandSpec {
  /// Reads a command line; pure.
  ///
  /// - Parameters:
  ///   - arguments: The words after the program's name.
  ///   - environment: Variables to replace missing options.
  /// - Throws: `UsageError` with the explanation of a correct command line.
  package func parse(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws(UsageError) -> ParsedCommand {
    var parser = ArgumentParser(root: self, words: arguments)
    if let early = try parser.readWords() { return early }
    return .run(try parser.resolve(environment: environment))
  }
}

/// Reads the words of one command line, then fills in the open values.
struct ArgumentParser {
  /// The commands from the root to the one selected so far.
  private var trail: [CommandSpec]
  private var words: ArraySlice<String>
  private var values: [String: [String]] = [:]
  private var flags: [String: Int] = [:]
  private var positionals: [String] = []

  init(root: CommandSpec, words: [String]) {
    trail = [root]
    self.words = words[...]
  }

  private var command: CommandSpec { trail[trail.count - 1] }
  private var path: String { trail.map(\.name).joined(separator: " ") }

  /// Reads all words; returns early when one of them asks for help or the version.
  mutating func readWords() throws(UsageError) -> ParsedCommand? {
    if words.isEmpty, command.run == nil { return .help([command.name]) }
    while let word = words.popFirst() {
      if word == "--" {
        positionals += words
        words = []
      } else if word == "--help" || word == "-h" {
        return .help(trail[0].trail(along: pathAhead).map(\.name))
      } else if word == "--version", trail[0].version != nil {
        return .version
      } else if word.begins(with: "--") {
        try parseLong(word)
      } else if word.begins(with: "-"), word != "-", !isNegativeNumber(word) {
        try parseShort(word)
      } else if let help = try parsePlain(word) {
        return help
      }
    }
    return nil
  }

  /// The names on the trail and the remaining words that may be commands.
  private var pathAhead: [String] {
    trail.dropFirst().map(\.name) + words.filter { !$0.begins(with: "-") }
  }

  // MARK: Words

  private mutating func parsePlain(_ word: String) throws(UsageError) -> ParsedCommand? {
    guard positionals.isEmpty, !command.subcommands.isEmpty else {
      positionals.append(word)
      return nil
    }
    if word == "help" { return .help(try helpPath()) }
    if let child = command.subcommands.first(where: { $0.name == word }) {
      trail.append(child)
    } else if command.arguments.isEmpty {
      throw .unknownCommand(word, command: path, known: command.visibleNames)
    } else {
      positionals.append(word)
    }
    return nil
  }

  private func helpPath() throws(UsageError) -> [String] {
    let names = words.filter { !$0.begins(with: "-") }
    let target = command.trail(along: names)
    if target.count <= names.count, let end = target.last {
      let above = (trail.dropLast() + target).map(\.name).joined(separator: " ")
      throw .unknownCommand(
        names[names.startIndex + target.count - 1], command: above, known: end.visibleNames)
    }
    return (trail.dropLast() + target).map(\.name)
  }

  private mutating func parseLong(_ word: String) throws(UsageError) {
    let parts = Substring(word.utf8.dropFirst(2)).parts(at: "=", most: 2)
    let name = String(parts[0])
    let attached = parts.count == 2 ? String(parts[1]) : nil
    if let option = option(named: name) {
      try add(attached, to: option, written: "--\(name)")
      return
    }
    if let flag = flag(named: name) {
      flags[flag.name, default: 0] += 1
    } else if let negated = name.rest(after: "no-"), let flag = flag(named: String(negated)),
      flag.isNegatable
    {
      flags[flag.name] = 0
    } else {
      throw unknownOption("--\(name)")
    }
    if let attached { throw .unexpectedValue("--\(name)", value: attached) }
  }

  /// Reads one letter, several flags (`-vj`), or a letter with an attached value (`-rFILE`,
  /// `-r=FILE`).
  private mutating func parseShort(_ word: String) throws(UsageError) {
    var letters = word.dropFirst()
    while let letter = letters.popFirst() {
      if let option = trail.lastValue(of: { $0.options.first { $0.short == letter } }) {
        if let value = letters.rest(after: "=") { letters = value }
        let attached = letters.isEmpty ? nil : String(letters)
        try add(attached, to: option, written: "-\(letter)")
        return
      }
      guard let flag = trail.lastValue(of: { $0.flags.first { $0.short == letter } }) else {
        throw unknownOption("-\(letter)")
      }
      flags[flag.name, default: 0] += 1
    }
  }

  private mutating func nextWord(
    for option: OptionSpec, written: String
  ) throws(UsageError) -> String {
    guard let next = words.first else {
      throw .missingValue(written, option: option, follower: nil)
    }
    if next.begins(with: "-"), next != "-", !isNegativeNumber(next) {
      throw .missingValue(written, option: option, follower: next)
    }
    return words.removeFirst()
  }

  /// Adds the attached value, or else the next word.
  private mutating func add(
    _ attached: String?, to option: OptionSpec, written: String
  ) throws(UsageError) {
    let value: String
    if let attached {
      value = attached
    } else {
      value = try nextWord(for: option, written: written)
    }
    if !option.isRepeated, values[option.name] != nil { throw .repeatedOption(option) }
    values[option.name, default: []].append(value)
  }

  private func isNegativeNumber(_ word: String) -> Bool {
    word.rest(after: "-")?.utf8.first.map { (0x30...0x39).contains($0) } ?? false
  }

  // MARK: Declarations in sight

  private func option(named name: String) -> OptionSpec? {
    trail.lastValue { $0.options.first { $0.name == name } }
  }

  private func flag(named name: String) -> FlagSpec? {
    trail.lastValue { $0.flags.first { $0.name == name } }
  }

  private func unknownOption(_ written: String) -> UsageError {
    let known = trail.flatMap(\.visibleOptionNames) + ["--help"]
    let elsewhere = command.descendant(taking: written).map { "\(path) \($0)" }
    return .unknownOption(written, command: path, known: known, elsewhere: elsewhere)
  }

  // MARK: Defaults

  /// Fills in environment and defaults, and checks every value.
  mutating func resolve(environment: [String: String]) throws(UsageError) -> ParsedArguments {
    if command.run == nil {
      throw .missingCommand(path, known: command.visibleNames)
    }
    var entries: [String: ParsedArguments.Entry] = [:]
    for option in trail.flatMap(\.options) {
      let entry = entry(for: option, environment: environment)
      try check(entry, option.kind)
      if option.isRequired, entry.values.isEmpty {
        throw .missingOption(option, command: path)
      }
      entries[option.name] = entry
    }
    for (argument, words) in try assignPositionals() {
      let entry = ParsedArguments.Entry(
        label: argument.name.uppercasedASCII, values: words,
        source: words.isEmpty ? nil : .commandLine
      )
      try check(entry, argument.kind)
      entries[argument.name] = entry
    }
    for flag in trail.flatMap(\.flags) where flags[flag.name] == nil {
      flags[flag.name] = try flag.isOn(in: environment) ? 1 : 0
    }
    return ParsedArguments(path: trail.map(\.name), entries: entries, flags: flags)
  }

  private func entry(
    for option: OptionSpec, environment: [String: String]
  ) -> ParsedArguments.Entry {
    let label = "--\(option.name)"
    if let given = values[option.name] {
      return ParsedArguments.Entry(label: label, values: given, source: .commandLine)
    }
    if let variable = option.environment, let text = environment[variable], !text.isEmpty {
      let parts = option.isRepeated ? text.words(at: ",").map(String.init) : [text]
      return ParsedArguments.Entry(label: label, values: parts, source: .environment(variable))
    }
    return ParsedArguments.Entry(
      label: label, values: option.defaultValue.map { [$0] } ?? [],
      source: option.defaultValue.map { _ in .defaultValue })
  }

  private func check(_ entry: ParsedArguments.Entry, _ kind: ValueKind) throws(UsageError) {
    guard let wrong = entry.values.first(where: { !kind.accepts($0) }) else { return }
    throw .invalidValue(
      wrong, of: entry.label, source: entry.source ?? .commandLine,
      expectation: kind.expectation ?? "a non-empty value")
  }

  private func assignPositionals() throws(UsageError) -> [(ArgumentSpec, [String])] {
    var rest = positionals[...]
    var assigned: [(ArgumentSpec, [String])] = []
    for argument in command.arguments {
      if argument.isRequired, rest.isEmpty {
        throw .missingArgument(argument, command: path)
      }
      let taken = argument.isRepeated ? rest : rest.prefix(1)
      rest = rest.dropFirst(taken.count)
      assigned.append((argument, Array(taken)))
    }
    if let extra = rest.first {
      throw .unexpectedArgument(extra, command: command, path: path)
    }
    return assigned
  }
}

extension [CommandSpec] {
  /// Returns the innermost command's value: a lower declaration hides a higher one.
  fileprivate func lastValue<Value>(of find: (CommandSpec) -> Value?) -> Value? {
    for command in reversed() {
      if let value = find(command) { return value }
    }
    return nil
  }
}

extension CommandSpec {
  fileprivate var visibleNames: [String] { subcommands.filter { !$0.isHidden }.map(\.name) }

  fileprivate var visibleOptionNames: [String] {
    options.filter { !$0.isHidden }.map { "--\($0.name)" }
      + flags.filter { !$0.isHidden }.map { "--\($0.name)" }
  }

  /// Returns the names down to the only command below this one with the option, if there is one.
  fileprivate func descendant(taking written: String) -> String? {
    var found: [String] = []
    for child in subcommands where !child.isHidden {
      if child.visibleOptionNames.contains(written) { found.append(child.name) }
      if let deeper = child.descendant(taking: written) { found.append("\(child.name) \(deeper)") }
    }
    return found.count == 1 ? found[0] : nil
  }
}

extension FlagSpec {
  /// Only a flag with a variable in the environment needs a way to switch it off.
  var isNegatable: Bool { environment != nil }

  /// Returns `true` if the flag's variable switches it on.
  func isOn(in environment: [String: String]) throws(UsageError) -> Bool {
    guard let variable = self.environment, let text = environment[variable] else { return false }
    switch text.lowercasedASCII {
    case "1", "true", "yes", "on": return true
    case "", "0", "false", "no", "off": return false
    default:
      throw .invalidValue(
        text, of: "--\(name)", source: .environment(variable),
        expectation: "1 or 0, true or false, yes or no, on or off")
    }
  }
}
