import FerryPlatform

/// The explanation of a command line that makes no sense.
package struct UsageError: CommandFailureConvertible, Sendable, Equatable {
  /// The violated rule; the raw value is the stable code in `--json` output.
  package enum Code: String, Sendable {
    case unknownOption = "unknown_option"
    case unknownCommand = "unknown_command"
    case missingCommand = "missing_command"
    case missingOption = "missing_option"
    case missingArgument = "missing_argument"
    case missingValue = "missing_value"
    case unexpectedArgument = "unexpected_argument"
    case unexpectedValue = "unexpected_value"
    case repeatedOption = "repeated_option"
    case invalidValue = "invalid_value"
  }

  /// The violated rule.
  package let code: Code
  /// The mistake in the command line.
  package let what: String
  /// The reason why it is a mistake.
  package let why: String
  /// The correct command line.
  package let next: String

  /// Creates an error that a command may throw too, for rules between options.
  package init(_ code: Code, _ what: String, why: String, next: String) {
    self.code = code
    self.what = what
    self.why = why
    self.next = next
  }

  /// The same failure, with exit status 2.
  package var commandFailure: CommandFailure {
    CommandFailure(what, why: why, next: next, status: .usage, code: code.rawValue)
  }
}

// The messages of the parser. `command` is the path as typed: `ferryd token create`.
extension UsageError {
  static func unknownOption(
    _ option: String, command: String, known: [String], elsewhere: String?
  ) -> UsageError {
    let next =
      if let elsewhere {
        "write it after its command: `\(elsewhere) \(option)`"
      } else if let near = option.nearest(in: known) {
        "did you mean \(near)?"
      } else {
        "run `\(command) --help` to see the options"
      }
    return UsageError(
      .unknownOption, "unknown option \(option)", why: "`\(command)` has no such option", next: next
    )
  }

  static func unknownCommand(_ word: String, command: String, known: [String]) -> UsageError {
    let next =
      if let near = word.nearest(in: known) {
        "did you mean `\(command) \(near)`?"
      } else {
        "run `\(command) --help` to see the commands"
      }
    return UsageError(
      .unknownCommand, "unknown command \(word)", why: "`\(command)` has no such command",
      next: next)
  }

  static func missingCommand(_ command: String, known: [String]) -> UsageError {
    UsageError(
      .missingCommand, "`\(command)` needs a command",
      why: "it has no effect by itself",
      next: "add one of: \(known.joined(separator: ", ")); see `\(command) --help`")
  }

  static func missingOption(_ option: OptionSpec, command: String) -> UsageError {
    let variable = option.environment.map { ", or set \($0)" } ?? ""
    return UsageError(
      .missingOption, "--\(option.name) is missing",
      why: "`\(command)` needs it",
      next: "add `--\(option.name) \(option.valueName)`\(variable)")
  }

  static func missingArgument(_ argument: ArgumentSpec, command: String) -> UsageError {
    let name = argument.name.uppercasedASCII
    return UsageError(
      .missingArgument, "\(name) is missing", why: "`\(command)` needs it",
      next: "add it; see `\(command) --help`")
  }

  static func missingValue(_ written: String, option: OptionSpec, follower: String?) -> UsageError {
    let why =
      follower.map { "\($0) follows it and looks like an option" } ?? "nothing follows it"
    let escape =
      follower.map { "; if \($0) is the value, write `--\(option.name)=\($0)`" } ?? ""
    return UsageError(
      .missingValue, "\(written) has no value", why: why,
      next: "write `\(written) \(option.valueName)`\(escape)")
  }

  static func unexpectedValue(_ written: String, value: String) -> UsageError {
    UsageError(
      .unexpectedValue, "\(written) takes no value",
      why: "it is a flag, but has the value '\(value)'",
      next: "write only \(written)")
  }

  static func unexpectedArgument(_ word: String, command: CommandSpec, path: String) -> UsageError {
    let why =
      command.arguments.isEmpty
      ? "`\(path)` takes no arguments"
      : "`\(path)` takes only \(command.arguments.map(\.usage).joined(separator: " "))"
    return UsageError(
      .unexpectedArgument, "unexpected argument '\(word)'", why: why,
      next: "remove it, or quote arguments with spaces")
  }

  static func repeatedOption(_ option: OptionSpec) -> UsageError {
    UsageError(
      .repeatedOption, "--\(option.name) is given twice", why: "it takes one value",
      next: "remove one of them")
  }

  static func invalidValue(
    _ value: String, of label: String, source: ValueSource, expectation: String
  ) -> UsageError {
    let place =
      switch source {
      case .commandLine: "'\(value)' does not fit \(label)"
      case .environment(let variable): "'\(value)' in \(variable) does not fit \(label)"
      case .defaultValue: "the default '\(value)' does not fit \(label)"
      }
    return UsageError(
      .invalidValue, place, why: "\(label) takes \(expectation)", next: "give a valid value")
  }
}
