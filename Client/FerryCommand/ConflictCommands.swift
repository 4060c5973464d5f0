import CommandLineKit
import Ferry

extension FerryCommand {
  static let conflicts = CommandSpec(
    "conflicts", summary: "List values that lost against others, newest first.",
    discussion: """
      Where two devices wrote the same without knowing of each other, one value stays by the \
      space's policies (`ferry schema`), and the other is kept here with who wrote it, when, and \
      who wrote what stands. A policy may be to ask: then what others wrote stands until you, or \
      anybody, answer with `ferry resolve`.
      """,
    options: [limit],
    flags: [FlagSpec("open", help: "Only those that wait for a decision.")]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let replica = try await open(arguments)
    let found = try await replica.conflicts(limit: count, openOnly: arguments.flag("open"))
    if arguments.flag("json") {
      try TextOutput.standardOutput.lines(
        found.map { kept in
          JSONText.object(
            [
              ("id", .int(kept.number)), ("at", .string(Presentation.time(kept.noticedAt))),
              ("state", .string(kept.state)),
            ] + LoggedLine(kept).json
          ).text
        })
      return .done
    }
    try Presentation.print(
      ["id", "state", "table", "record", "column", "lost", "by", "against"],
      found.map { kept in
        let conflict = kept.conflict
        return [
          "\(kept.number)", kept.state, kept.key.table.text, kept.key.record.text,
          conflict.column?.text ?? "",
          conflict.column == nil ? "the record" : Presentation.cell(conflict.lost),
          who(conflict.loser, kept.isLosersOwn), who(conflict.winner, kept.isWinnersOwn),
        ].map { ($0, .null) }
      }, asJSON: false)
    return .done
  }

  private static func who(_ stamp: Stamp, _ isOwn: Bool) -> String {
    let device = isOwn ? "this device" : "\("\(stamp.device)".suffix(8))"
    return "\(device) \(Presentation.time(stamp.time.milliseconds))"
  }

  static let resolve = CommandSpec(
    "resolve", summary: "Answer a conflict.",
    discussion: """
      The answer is an ordinary operation: it is sent with the next sync, and ends the question on \
      all devices. local is what this device wrote, remote what the others did.

      \(Assignments.discussion)
      """,
    options: [
      OptionSpec(
        "keep", value: "SIDE", help: "Whose value to keep.", kind: .choice(["local", "remote"])),
      OptionSpec(
        "set", value: "COLUMN=VALUE", help: "Another value; may be repeated.", repeated: true),
    ],
    arguments: [ArgumentSpec("ID", help: "The conflict's number in `ferry conflicts`.")],
    examples: [ExampleSpec("Insist on the own value", "ferry resolve 3 --keep local")]
  ) { arguments in
    let columns = try Assignments.read(arguments.strings("set"))
    let side = arguments.stringIfPresent("keep")
    guard (side == nil) != columns.isEmpty else {
      throw UsageError(
        side == nil ? .missingOption : .unexpectedValue,
        side == nil ? "no answer is given" : "--keep and --set contradict each other",
        why: "a conflict has one answer", next: "give --keep local, --keep remote or --set")
    }
    let text = try arguments.string("ID")
    guard let number = Int64(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is no conflict", why: "conflicts have numbers",
        next: "`ferry conflicts` shows them")
    }
    let answer: ConflictAnswer =
      columns.isEmpty ? side == "local" ? .keepLocal : .keepRemote : .set(columns)
    try await open(arguments).resolve(number, answer)
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("id", .int(number)), ("state", .string("settled"))]).text
        : "conflict \(number) is settled; the next sync tells the others")
    return .done
  }

  static let history = CommandSpec(
    "history", summary: "List what was recorded on this replica, newest first.",
    discussion: """
      Confirmed operations are kept for 14 days, and not more than 100,000. `ferry undo` takes one \
      back.
      """,
    options: [limit]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let own = try await open(arguments).ownOperations(limit: count)
    try Presentation.print(
      ["operation", "time", "state", "kind", "table", "record", "data", "before"],
      own.map { own in
        let operation = own.operation
        let time = Presentation.time(operation.time.milliseconds)
        let state = own.isConfirmed ? "confirmed" : "pending"
        let record = recordCell(operation)
        return [
          ("\(operation.id)", .string("\(operation.id)")), (time, .string(time)),
          (state, .string(state)), (operation.kind.rawValue, .string(operation.kind.rawValue)),
          (operation.key.table.text, .string(operation.key.table.text)), record,
          (Presentation.cell(operation.columns), Presentation.json(operation.columns)),
          (Presentation.cell(own.former), Presentation.json(own.former)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  static let undo = CommandSpec(
    "undo", summary: "Take one of this replica's operations back.",
    discussion: """
      By an ordinary operation: what it wrote and still stands becomes what it was before. What \
      somebody has changed since stays.
      """,
    arguments: [ArgumentSpec("OPERATION", help: "Its identifier, as `ferry history` shows it.")]
  ) { arguments in
    let text = try arguments.string("OPERATION")
    guard let id = UniqueID(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is no operation", why: "operations are named by UUIDs",
        next: "`ferry history` shows them")
    }
    let count = try await open(arguments).undo(OperationID(id))
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("operation", .string(text)), ("columns", .int(count))]).text
        : "taken back; the next sync tells the others")
    return .done
  }
}

extension KeptConflict {
  fileprivate var state: String {
    conflict.isQuestion ? settledAt == nil ? "open" : "settled" : "decided"
  }
}
