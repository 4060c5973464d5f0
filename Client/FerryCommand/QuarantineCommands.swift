import Ferry
import FerryCommandLine

/// `ferry quarantine`: operations refused by the server, and overruled writes.
enum QuarantineCommands {
  static let quarantine = CommandSpec(
    "quarantine",
    summary: "Show, retry, edit or discard rejected and overruled operations.",
    discussion: """
      An operation that the server can never apply leaves the queue, together with its transaction \
      and all operations that depend on it, so that everything else continues. The tables then \
      show the server's values. The rejected values stay here until you retry, edit or discard \
      them. The same holds for values that another device has overruled with a reason, for \
      example because a database refuses them.
      """,
    subcommands: [
      quarantineList, quarantineShow, quarantineRetry, quarantineEdit, quarantineDiscard,
    ],
    examples: [
      ExampleSpec("Give a record another address", "ferry quarantine edit 1 --set email=b@x.org")
    ])

  private static let entry = ArgumentSpec("ENTRY", help: "The entry's number in the list.")

  private static let quarantineList = CommandSpec(
    "list", summary: "List the entries, oldest first."
  ) { arguments in
    let entries = try await FerryCommand.open(arguments).quarantine.entries()
    try Presentation.print(
      ["entry", "code", "table", "record", "holder", "operations", "detail"],
      entries.map { entry in
        let subject = entry.subject
        return [
          ("\(entry.number)", .int(entry.number)),
          (entry.code.rawValue, .string(entry.code.rawValue)),
          (subject.key.table.text, .string(subject.key.table.text)),
          BatchCommand.recordCell(subject),
          (entry.holder?.text ?? "", .string(orNull: entry.holder?.text)),
          (entry.operations.count.grouped, .int(entry.operations.count)),
          (entry.detail, .string(entry.detail)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  /// The most entries named by other commands.
  private static let reasonsShown = 3

  /// Returns lines with the records and reasons of the oldest entries.
  static func quarantineReasons(_ replica: Replica) async throws -> [String] {
    try await replica.quarantine.entries(limit: reasonsShown).map { entry in
      let others = entry.operations.count - entry.refused.count
      let along = others > 0 ? "; \(others.counted("more operation")) went along" : ""
      return
        "  entry \(entry.number): \(entry.subjectText): "
        .escapedForTerminal.truncated(toWidth: 160)
        + entry.detail.escapedForTerminal.truncated(toWidth: 200) + along
    }
  }

  private static let quarantineShow = CommandSpec(
    "show", summary: "Show an entry with all its operations and values.", arguments: [entry]
  ) { arguments in
    let entry = try await find(arguments)
    let output = TextOutput.standardOutput
    let event = entry.code == .overruled ? "overruled" : "refused"
    if arguments.flag("json") {
      try output.line(entry.json.text)
      return .done
    }
    try output.lines(
      [
        "\(entry.code): \(entry.detail)".escapedForTerminal,
        "\(event) \(Presentation.time(entry.refusedAt))",
      ]
        + (entry.holder.map {
          ["the value belongs to \(entry.subject.key.table) \($0)".escapedForTerminal]
        } ?? []))
    try Presentation.print(
      ["kind", "table", "record", "why", "data"],
      entry.operations.map { operation in
        let why = entry.refused.contains(operation.id) ? event : "went along"
        return [
          (operation.kind.rawValue, .null), (operation.key.table.text, .null),
          (BatchCommand.recordCell(operation).0, .null), (why, .null),
          (Presentation.cell(of: operation), .null),
        ]
      }, asJSON: false)
    return .done
  }

  private static let quarantineRetry = CommandSpec(
    "retry", summary: "Write an entry to the tables again, unchanged.",
    discussion: "Its operations are recorded again and sent with the next sync.",
    arguments: [entry]
  ) { arguments in
    try await retry(arguments, [])
  }

  private static let quarantineEdit = CommandSpec(
    "edit", summary: "Write an entry to the tables again, with other values.",
    discussion: """
      The values replace the rejected ones; the other operations of the entry stay unchanged.

      \(Assignments.discussion)
      """,
    options: [
      OptionSpec(
        "set", value: "COLUMN=VALUE", help: "A column's new value; may be repeated.",
        repeated: true, required: true)
    ],
    arguments: [entry]
  ) { arguments in
    try await retry(arguments, try Assignments.read(arguments.strings("set")))
  }

  private static let quarantineDiscard = CommandSpec(
    "discard", summary: "Remove an entry permanently.", arguments: [entry]
  ) { arguments in
    let number = try number(arguments)
    try await FerryCommand.open(arguments).quarantine.discard(number)
    try report(arguments, number, "discarded")
    return .done
  }

  private static func retry(
    _ arguments: ParsedArguments, _ changes: [Column]
  ) async throws -> ExitStatus {
    let entry = try await find(arguments)
    try await FerryCommand.open(arguments).quarantine.retry(entry.number, changing: changes)
    let others = entry.operations.count - 1
    let along = others > 0 ? " and \(others.counted("more operation"))" : ""
    try report(
      arguments, entry.number,
      "written again; the next sync sends it: \(entry.subjectText)\(along)".escapedForTerminal)
    return .done
  }

  private static func report(
    _ arguments: ParsedArguments, _ number: Int64, _ what: String
  ) throws {
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("entry", .int(number)), ("done", .string(what))]).text
        : "entry \(number): \(what)")
  }

  private static func number(_ arguments: ParsedArguments) throws -> Int64 {
    let text = try arguments.string("ENTRY")
    guard let number = Int64(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not an entry", why: "entries have numbers",
        next: "`ferry quarantine list` lists the numbers")
    }
    return number
  }

  private static func find(_ arguments: ParsedArguments) async throws -> QuarantineEntry {
    let number = try number(arguments)
    let entries = try await FerryCommand.open(arguments).quarantine.entries(limit: .max)
    guard let entry = entries.first(where: { $0.number == number }) else {
      throw ReplicaError.notFound(.quarantineEntry(number))
    }
    return entry
  }
}

extension QuarantineEntry {
  /// The rejected operation.
  fileprivate var subject: SyncOperation {
    operations.first { refused.contains($0.id) } ?? operations[0]
  }

  /// The table and the record of the rejected operation, or the condition of a batch.
  fileprivate var subjectText: String {
    let name = BatchCommand.recordCell(subject).0
    return "table \(subject.key.table), \(subject.batch == nil ? "record" : "batch") \(name)"
  }

  fileprivate var json: JSONText {
    .object([
      ("entry", .int(number)), ("code", .string(code.rawValue)), ("detail", .string(detail)),
      ("holder", .string(orNull: holder?.text)), ("time", .string(Presentation.time(refusedAt))),
      (
        "operations",
        .array(
          operations.map { operation in
            .object([
              ("operation", .string("\(operation.id)")), ("kind", .string(operation.kind.rawValue)),
              ("table", .string(operation.key.table.text)),
              ("record", BatchCommand.recordCell(operation).1),
              ("refused", .bool(refused.contains(operation.id))),
              ("data", Presentation.json(operation.columns)),
            ])
          })
      ),
    ])
  }
}
