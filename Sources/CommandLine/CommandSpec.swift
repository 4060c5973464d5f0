import FerryPlatform

/// A command declared as a value: the source of the parser, the help text and the shell completion.
/// An option declared on a command is also accepted by every subcommand below it.
package struct CommandSpec: Sendable {
  /// The action of a command.
  ///
  /// SIGINT and SIGTERM cancel the task. If it then returns normally, the returned status counts.
  package typealias Action = @Sendable (ParsedArguments) async throws -> ExitStatus

  /// The word to select it; the root's is the program's name.
  package var name: String
  /// One line, a sentence with a full stop.
  package var summary: String
  /// Paragraphs with blank lines between them; they are wrapped, except lines that begin with a
  /// space.
  package var discussion: String
  /// Printed by `--version`; only the root's counts.
  package var version: String?
  /// Options with a value.
  package var options: [OptionSpec]
  /// Options without a value.
  package var flags: [FlagSpec]
  /// Positional arguments in their order; only the last may be repeated.
  package var arguments: [ArgumentSpec]
  /// Commands below this one.
  package var subcommands: [CommandSpec]
  /// Command lines worth copying.
  package var examples: [ExampleSpec]
  /// The EXIT CODES section; none when empty.
  package var exitCodes: [ExitCodeNote]
  /// Left out of help and completion, but accepted.
  package var isHidden: Bool
  /// `nil` for a command with nothing but subcommands.
  package var run: Action?

  /// Declares a command; see the properties.
  package init(
    _ name: String, summary: String, discussion: String = "", version: String? = nil,
    options: [OptionSpec] = [], flags: [FlagSpec] = [], arguments: [ArgumentSpec] = [],
    subcommands: [CommandSpec] = [], examples: [ExampleSpec] = [], exitCodes: [ExitCodeNote] = [],
    hidden: Bool = false, run: Action? = nil
  ) {
    self.name = name
    self.summary = summary
    self.discussion = discussion
    self.version = version
    self.options = options
    self.flags = flags
    self.arguments = arguments
    self.subcommands = subcommands
    self.examples = examples
    self.exitCodes = exitCodes
    self.isHidden = hidden
    self.run = run
  }

  /// Returns the commands from this one down along `names`; stops before the first unknown name.
  func trail(along names: some Sequence<String>) -> [CommandSpec] {
    var trail = [self]
    var current = self
    for name in names {
      guard let child = current.subcommands.first(where: { $0.name == name }) else { break }
      trail.append(child)
      current = child
    }
    return trail
  }
}

/// A command line worth copying, for the EXAMPLES section.
package struct ExampleSpec: Sendable, Equatable {
  /// The purpose, a short phrase.
  package let purpose: String
  /// The line as it is typed, without a prompt.
  package let line: String

  /// Creates an example; the line is never wrapped.
  package init(_ purpose: String, _ line: String) {
    self.purpose = purpose
    self.line = line
  }
}

/// An option with a value: `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE`.
package struct OptionSpec: Sendable, Equatable {
  /// The long name without dashes; also the key in `ParsedArguments`.
  package var name: String
  /// The letter of the short form.
  package var short: Character?
  /// The value's name in help texts, in capitals.
  package var valueName: String
  /// The purpose, a sentence with a full stop.
  package var help: String
  /// The accepted and completed values.
  package var kind: ValueKind
  /// Used when neither the command line nor the environment has it.
  package var defaultValue: String?
  /// The variable for a missing option; for a repeated option, its text is split at commas. An
  /// empty variable counts as unset.
  package var environment: String?
  /// True if it may be given more than once.
  package var isRepeated: Bool
  /// True if parsing fails without it.
  package var isRequired: Bool
  /// Left out of help and completion, but accepted.
  package var isHidden: Bool

  /// Declares an option; see the properties.
  package init(
    _ name: String, short: Character? = nil, value: String, help: String, kind: ValueKind = .text,
    default defaultValue: String? = nil, environment: String? = nil, repeated: Bool = false,
    required: Bool = false, hidden: Bool = false
  ) {
    self.name = name
    self.short = short
    self.valueName = value
    self.help = help
    self.kind = kind
    self.defaultValue = defaultValue
    self.environment = environment
    self.isRepeated = repeated
    self.isRequired = required
    self.isHidden = hidden
  }
}

/// An option without a value. One with an environment variable can be switched off again by
/// `--no-name`.
package struct FlagSpec: Sendable, Equatable {
  /// The long name without dashes; also the key in `ParsedArguments`.
  package var name: String
  /// The letter of the short form.
  package var short: Character?
  /// The purpose, a sentence with a full stop.
  package var help: String
  /// The variable to switch it on (1, true, yes, on) or off (0, false, no, off, empty).
  package var environment: String?
  /// Left out of help and completion, but accepted.
  package var isHidden: Bool

  /// Declares a flag; see the properties.
  package init(
    _ name: String, short: Character? = nil, help: String, environment: String? = nil,
    hidden: Bool = false
  ) {
    self.name = name
    self.short = short
    self.help = help
    self.environment = environment
    self.isHidden = hidden
  }
}

/// A positional argument.
package struct ArgumentSpec: Sendable, Equatable {
  /// The number of words that an argument takes.
  package enum Arity: Sendable, Equatable {
    case one
    case optional
    case oneOrMore
    case zeroOrMore
  }

  /// Lower case; shown in capitals; also the key in `ParsedArguments`.
  package var name: String
  /// The meaning, a sentence with a full stop.
  package var help: String
  /// The accepted and completed values.
  package var kind: ValueKind
  /// The number of words.
  package var arity: Arity

  /// Declares a positional argument; see the properties.
  package init(_ name: String, help: String, kind: ValueKind = .text, arity: Arity = .one) {
    self.name = name
    self.help = help
    self.kind = kind
    self.arity = arity
  }

  var isRepeated: Bool { arity == .oneOrMore || arity == .zeroOrMore }
  var isRequired: Bool { arity == .one || arity == .oneOrMore }

  /// `TABLE`, `[FILE]`, `TABLE…`, `[TABLE…]`.
  var usage: String {
    let word = name.uppercasedASCII + (isRepeated ? "…" : "")
    return isRequired ? word : "[\(word)]"
  }
}
