import FerryCommandLine
import FerryMirror
import FerryPlatform

/// `ferryd mirror add`.
enum AddCommand {
  static let root = CommandSpec(
    "add", summary: "Create a mirror and its tables in PostgreSQL.",
    discussion: """
      Each table that the space's schema defines becomes a table with a type for each column, a key, \
      indexes and foreign keys. Tables that exist must be empty. The user of --database owns the \
      tables and needs the right to create schemas. --type gives a column another type: boolean, \
      json, jsonb, timestamptz, timestamp, date, numeric or uuid.
      """,
    options: [
      MirrorCommands.serverOption, MirrorCommands.spaceOption,
      OptionSpec(
        "schema", value: "NAME", help: "The schema with the tables.", default: "public"),
      OptionSpec(
        "table", value: "NAME", help: "A table to mirror, instead of all.", repeated: true),
      OptionSpec(
        "type", value: "TABLE.COLUMN=TYPE", help: "Another type of a column.", repeated: true),
      MirrorCommands.captureOption,
    ] + TokenOptions.options("A token of the role writer; it is kept in the mirror's folder."),
    flags: [JSONOption.flag], arguments: [MirrorCommands.nameArgument]
  ) { arguments in
    let (name, folder) = try MirrorCommands.folder(arguments)
    let configuration = try await MirrorCommands.choosingCapture(
      try configuration(name, arguments), folder, arguments)
    try await MirrorCommands.warnOfRole(name, configuration.database)
    let plan = try await MirrorCommands.explained(name) {
      try await Mirror.add(
        configuration, in: folder, token: TokenOptions.token(arguments))
    }
    let tables = plan.tables.map { "\(configuration.schema).\($0.name)" }
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(
        JSONText.object([
          ("mirror", .string(name)), ("tables", .array(tables.map { .string($0) })),
          ("omitted", .array(plan.omitted.map { .string($0) })),
        ]).text)
      return .done
    }
    for table in tables { try TextOutput.standardOutput.line("created \(table)") }
    for reason in plan.omitted { try TextOutput.standardOutput.line("left out: \(reason)") }
    try TextOutput.standardOutput.line("next: ferryd mirror run \(name)")
    return .done
  }

  /// Returns the settings of a mirror that makes its tables.
  static func configuration(
    _ name: String, _ arguments: ParsedArguments
  ) throws -> MirrorConfiguration {
    var configuration = try MirrorCommands.configuration(
      name, space: try arguments.string("space"), arguments)
    for text in arguments.strings("type") {
      let parts = text.parts(at: "=", most: 2).map(String.init)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw UsageError(
          .invalidValue, "'\(text)' gives no type", why: "--type takes TABLE.COLUMN=TYPE",
          next: "write --type tasks.done=boolean")
      }
      configuration.types[parts[0]] = parts[1]
    }
    return configuration
  }
}
