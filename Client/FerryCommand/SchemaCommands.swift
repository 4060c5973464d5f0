import Ferry
import FerryCommandLine
import FerryProtocol
import Foundation

/// `ferry schema`: the definitions of a space.
enum SchemaCommands {
  static let schema = CommandSpec(
    "schema", summary: "Show or change the space's rules for its tables.",
    discussion: """
      A schema is a JSON document with rules for tables that need more than last-writer-wins: how \
      conflicts are decided, which values columns may have, which columns are unique, and which \
      tables only admins write. The server checks every operation against it, and each device \
      receives it with its next pull.
      """,
    subcommands: [schemaShow, schemaApply, schemaPublish])

  private static let schemaShow = CommandSpec(
    "show", summary: "Show the server's current schema of the space."
  ) { arguments in
    try print(
      try await FerryCommand.openForServer(arguments).schema(), asJSON: arguments.flag("json"))
    return .done
  }

  private static let schemaApply = CommandSpec(
    "apply", summary: "Apply a schema to all devices of the space.",
    discussion: """
      Needs an admin's token. The document's version is one more than the version that it \
      replaces, so that two admins do not undo each other's changes. Without a version it replaces \
      any version. Existing records have to fit the new rules: if some do not, the command \
      counts them, names the first ones and changes nothing.

      The document is the whole schema. If rules or published definitions would be lost, the command \
      lists them and changes nothing: --merge keeps them, and --replace drops them.
      """,
    flags: [
      FlagSpec("merge", help: "Keep the present rules and definitions that FILE does not have."),
      FlagSpec("replace", help: "Drop the present rules and definitions that FILE does not have."),
      FlagSpec(
        "keep-records",
        help: "Let existing records violate new types and required columns, but never unique keys."),
    ],
    arguments: [ArgumentSpec("FILE", help: "The schema, a JSON document.", kind: .file)],
    examples: [
      ExampleSpec(
        "Change the schema",
        "ferry schema show > schema.json && $EDITOR schema.json && ferry schema apply schema.json")
    ]
  ) { arguments in
    let path = try arguments.string("FILE")
    let document: SpaceSchema
    do {
      document = try SpaceSchema(decoding: [UInt8](try FileAccess.contents(of: path)))
    } catch let error as MalformedMessage {
      throw CommandFailure(
        "\(path) is not a schema", why: error.description, next: "correct it and try again",
        status: .usage, code: "bad_schema")
    }
    let applied = try await apply(document, with: FerryCommand.openForServer(arguments), arguments)
    if arguments.flag("json") {
      try print(applied, asJSON: true)
    } else {
      try TextOutput.standardOutput.line("version \(applied.version) is in force")
    }
    return .done
  }

  /// Applies a document, or the union with the schema in force.
  ///
  /// - Throws: ``CommandFailure`` if rules would be lost without a decision of the user.
  private static func apply(
    _ document: SpaceSchema, with replica: Replica, _ arguments: ParsedArguments
  ) async throws -> SpaceSchema {
    let (isMerged, isReplacing) = (arguments.flag("merge"), arguments.flag("replace"))
    guard !isMerged || !isReplacing else {
      throw CommandFailure(
        "--merge and --replace exclude each other",
        why: "one keeps the rules that the file does not have, and the other drops them",
        next: "give one of them", status: .usage, code: "bad_schema_flags")
    }
    let next = isMerged ? try await union(document, with: replica) : document
    do {
      return try await replica.applySchema(
        next, keepsRecords: arguments.flag("keep-records"), dropsRules: isReplacing)
    } catch ReplicaError.refused(let problem) where problem.code == .schemaLosses {
      throw question(problem)
    }
  }

  /// Returns the document with the rules of the schema in force. It replaces only this version.
  private static func union(
    _ document: SpaceSchema, with replica: Replica
  ) async throws -> SpaceSchema {
    let former = try await replica.schema()
    var union = document.merged(into: former)
    if union.version > 0 { return union }
    union.version = former.version
    if union != former { union.version += 1 }
    return union
  }

  /// Returns the failure that asks for a decision about rules.
  private static func question(_ problem: Problem) -> CommandFailure {
    let shown = problem.losses.prefix(BoundedList.shown)
    let more = problem.lossCount - shown.count
    return CommandFailure(
      "the schema would lose \(problem.lossCount.counted("rule"))",
      why: "the space has them, and the file does not: " + shown.joined(separator: ", ")
        + (more > 0 ? " and \(more.grouped) more" : ""),
      next: "add --merge to keep them, or --replace to drop them; nothing was changed",
      status: .usage, code: problem.code.rawValue)
  }

  private static let schemaPublish = CommandSpec(
    "publish", summary: "Publish the definitions of tracked tables to all devices of the space.",
    discussion: """
      Needs an admin's token. Puts columns, types, keys, foreign keys and indexes of the tables into \
      the schema, and leaves its rules as they are. Other devices create the tables with \
      `ferry track --create --all`. Reports the parts that a definition cannot have.
      """,
    arguments: [
      ArgumentSpec(
        "TABLE", help: "Tracked tables; all without this.", kind: CompletedNames.tables.kind,
        arity: .zeroOrMore)
    ]
  ) { arguments in
    let tables = arguments.strings("TABLE").map { Name($0) }
    let report = try await FerryCommand.openForServer(arguments).publishTables(
      tables.isEmpty ? nil : tables)
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      let omitted = report.omitted.sorted { $0.key < $1.key }.map { table, parts in
        JSONText.object([
          ("table", .string(table.text)), ("parts", .array(parts.map { .string($0) })),
        ])
      }
      try output.line(
        JSONText.object([
          ("version", .int(report.schema.version)),
          ("tables", .array(report.tables.map { .string($0.text) })), ("omitted", .array(omitted)),
        ]).text)
    } else {
      try output.line("version \(report.schema.version) is in force")
      for table in report.tables {
        try output.line("\(table): published")
        for part in report.omitted[table] ?? [] { try output.line("  left out: \(part)") }
      }
    }
    return .done
  }

  /// Prints the schema: JSON on one line, or lines for editing.
  private static func print(_ schema: SpaceSchema, asJSON: Bool) throws {
    let bytes = schema.encoded()
    if asJSON {
      return try TextOutput.standardOutput.line(String(decoding: bytes, as: UTF8.self))
    }
    let object = try JSONSerialization.jsonObject(with: Data(bytes))
    let pretty = try JSONSerialization.data(
      withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
    try TextOutput.standardOutput.line(String(decoding: pretty, as: UTF8.self))
  }
}
