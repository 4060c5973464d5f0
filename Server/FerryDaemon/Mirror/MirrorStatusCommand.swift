import FerryCommandLine
import FerryMirror

/// `ferryd mirror status`.
extension MirrorCommands {
  static let status = CommandSpec(
    "status", summary: "Show how far a mirror is, and the rows that one side cannot hold.",
    discussion: """
      Exit code 4: the space does not have all writes of programs. The rows are listed as unsent, or \
      the mirror has stopped itself because a table was changed. Also: two rows have one unique value, \
      and the second one is listed as deferred, or a view fails. The command works at any moment, also beside a running \
      mirror. --json lists all rows.
      """,
    options: [
      OptionSpec(
        "limit", short: "n", value: "COUNT",
        help: "The largest number of deferred rows, and of unsent rows, in the lists.",
        kind: .integer(1...rowsMax), default: "1000")
    ], flags: [JSONOption.flag], arguments: [nameArgument]
  ) { arguments in
    if let group = try await MirrorGroupCommands.group(arguments) {
      return try await MirrorGroupCommands.show(group, arguments)
    }
    let (name, folder) = try folder(arguments)
    let limit = try listLimit(arguments)
    let status = try await explained(name) { try await Mirror.status(folder, limit: limit) }
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(status.json.text)
    } else {
      try TextOutput.standardOutput.lines(status.lines)
    }
    return status.exit
  }

  /// The most rows in one list for people.
  private static let rowsMax = 1_000_000

  /// Returns the most rows in each list of `status`.
  static func listLimit(_ arguments: ParsedArguments) throws -> Int {
    arguments.flag("json") ? .max : try arguments.integer("limit", in: 1...rowsMax)
  }
}
