import FerryPlatform

extension CommandSpec {
  /// Returns mistakes in the declaration, for a test to expect none.
  ///
  /// Mistakes are names declared twice along a path, defaults that do not fit, arguments that can
  /// never be filled, and commands without an action.
  package func problems() -> [String] {
    problems(path: name, above: ["help", "version"], lettersAbove: ["h"])
  }

  private func problems(
    path: String, above: Set<String>, lettersAbove: Set<Character>
  ) -> [String] {
    var names = above
    var letters = lettersAbove
    var found: [String] = []
    func claim(_ name: String) {
      if !names.insert(name).inserted { found.append("\(path): \(name) is declared twice") }
    }
    for name in options.map(\.name) + flags.map(\.name) { claim(name) }
    for letter in options.compactMap(\.short) + flags.compactMap(\.short)
    where !letters.insert(letter).inserted {
      found.append("\(path): -\(letter) is declared twice")
    }
    let inherited = names
    for argument in arguments { claim(argument.name) }
    found += valueProblems(path: path) + shapeProblems(path: path)
    for child in subcommands {
      found += child.problems(
        path: "\(path) \(child.name)", above: inherited, lettersAbove: letters)
    }
    return found
  }

  private func valueProblems(path: String) -> [String] {
    var found: [String] = []
    for option in options {
      if let value = option.defaultValue, !option.kind.accepts(value) {
        found.append("\(path): the default of --\(option.name) is invalid")
      }
      if option.isRequired, option.defaultValue != nil {
        found.append("\(path): --\(option.name) is required and has a default")
      }
    }
    return found
  }

  private func shapeProblems(path: String) -> [String] {
    var found: [String] = []
    if run == nil, subcommands.isEmpty { found.append("\(path): does nothing") }
    if !summary.ends(with: ".") { found.append("\(path): the summary is not a sentence") }
    if Set(subcommands.map(\.name)).count < subcommands.count {
      found.append("\(path): a subcommand is declared twice")
    }
    if arguments.dropLast().contains(where: \.isRepeated) {
      found.append("\(path): only the last argument may be repeated")
    }
    if let optional = arguments.firstIndex(where: { !$0.isRequired }),
      arguments[optional...].contains(where: \.isRequired)
    {
      found.append("\(path): a required argument follows an optional one")
    }
    return found
  }
}
