import Ferry
import FerryCommandLine

/// `ferry conflicts`, `resolve`, `history` and `undo`.
enum ConflictCommands {
  static let conflicts = CommandSpec(
    "conflicts", summary: "List values that lost a conflict, newest first.",
    discussion: """
      If two devices write the same column concurrently, the space's policies (`ferry schema`) \
      decide which value stays. The other value is kept here with its writer, its time and the \
      winner's writer. The column `lost` has this other value. The column `now` has the table's \
      value now, which is the winner unless a later write has replaced it. Under the policy ask, the other device's \
      value stays until you or another user answers with `ferry resolve`.

      Another device is shown by its name (`ferry name`), or by the end of its identifier if no \
      name is known. --json has the whole identifiers.
      """,
    options: [LookCommands.limit],
    flags: [FlagSpec("open", help: "Only conflicts that wait for a decision.")]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let replica = try await FerryCommand.open(arguments)
    let found = try await replica.conflicts(limit: count, openOnly: arguments.flag("open"))
    let present = try await replica.presentSides(of: found)
    let names = try await replica.deviceNames()
    let schema = try await replica.pulledSchema()
    if arguments.flag("json") {
      try TextOutput.standardOutput.lines(
        zip(found, present).map { kept, present in
          JSONText.object(
            [
              ("id", .int(kept.number)), ("at", .string(Presentation.time(kept.noticedAt))),
              ("state", .string(kept.state)),
            ] + LoggedLine(kept, names, schema).json + present.json
          ).text
        })
      return .done
    }
    try Presentation.print(
      ["id", "state", "table", "record", "column", "lost", "now", "by", "against"],
      zip(found, present).map { kept, present in
        let conflict = kept.conflict
        return [
          "\(kept.number)", kept.state, kept.key.table.text, kept.key.record.text,
          conflict.column?.text ?? "",
          conflict.column == nil
            ? "the record"
            : Presentation.cell(ofLost: conflict, in: kept.key.table, schema),
          present.cell, who(conflict.loser, kept.isLosersOwn, names),
          kept.holder.map { "record \($0)" }
            ?? (kept.hasWinner ? who(conflict.winner, kept.isWinnersOwn, names) : "another record"),
        ].map { ($0, .null) }
      }, asJSON: false)
    try await notice(replica)
    return .done
  }

  /// Names the place of values without a listed conflict.
  private static func notice(_ replica: Replica) async throws {
    let status = try await replica.status()
    guard status.quarantined > 0 else { return }
    try await TextOutput.standardError.lines(
      [
        "ferry: in quarantine: \(status.quarantined.counted("operation"))",
        "  why: they were rejected or overruled, for example because another record has a unique value",
      ] + QuarantineCommands.quarantineReasons(replica) + [
        "  next: `ferry quarantine list` names records and columns, `ferry quarantine show ENTRY` "
          + "the rows that went along"
      ])
  }

  private static func who(_ stamp: Stamp, _ isOwn: Bool, _ names: DeviceNames) -> String {
    let device = isOwn ? "this device" : names.label(for: stamp.device)
    return "\(device) \(Presentation.time(stamp.time.milliseconds))"
  }

  static let resolve = CommandSpec(
    "resolve", summary: "Answer a conflict.",
    discussion: """
      The answer is an ordinary operation: it is sent with the next sync, and ends the question on \
      all devices. local is this device's value, remote the other devices' value. If the record was \
      deleted and your side is a write, it comes back with all its values.

      \(Assignments.discussion)
      """,
    options: [
      OptionSpec(
        "keep", value: "SIDE", help: "The value to keep.", kind: .choice(["local", "remote"])),
      OptionSpec(
        "set", value: "COLUMN=VALUE", help: "A new value for a column; may be repeated.",
        repeated: true),
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
        .invalidValue, "'\(text)' is not a conflict", why: "conflicts have numbers",
        next: "`ferry conflicts` lists the numbers")
    }
    let answer: ConflictAnswer =
      columns.isEmpty ? side == "local" ? .keepLocal : .keepRemote : .set(columns)
    let isRecorded = try await FerryCommand.open(arguments).decide(number, answer)
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("id", .int(number)), ("state", .string("resolved"))]).text
        : "conflict \(number) is resolved; "
          + (isRecorded ? "the next sync sends the decision" : "nothing changes"))
    return .done
  }

  static let history = CommandSpec(
    "history", summary: "List the operations of this replica, newest first.",
    discussion: """
      Confirmed operations are kept for 14 days, and not more than 100,000. `ferry undo` reverts \
      one of them. An operation is shown by the shortest beginning of its identifier that is \
      unique now; --json has the whole identifier.
      """,
    options: [LookCommands.limit]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let replica = try await FerryCommand.open(arguments)
    let own = try await replica.operations.recorded(limit: count)
    let short = try await replica.operations.identifiers()
    try Presentation.print(
      ["operation", "time", "state", "kind", "table", "record", "data", "before"],
      own.map { own in
        let operation = own.operation
        let time = Presentation.time(operation.time.milliseconds)
        let state = own.isConfirmed ? "confirmed" : "pending"
        let record = BatchCommand.recordCell(operation)
        let shown = Presentation.values(of: operation, from: own.former)
        return [
          (short.text(for: operation.id.value), .string("\(operation.id)")), (time, .string(time)),
          (state, .string(state)), (operation.kind.rawValue, .string(operation.kind.rawValue)),
          (operation.key.table.text, .string(operation.key.table.text)), record,
          (Presentation.cell(of: operation, from: own.former), Presentation.json(shown)),
          (Presentation.cell(own.former), Presentation.json(own.former)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  static let undo = CommandSpec(
    "undo", summary: "Revert one of this replica's operations.",
    discussion: """
      Records an ordinary operation that restores the former values. Values that have changed \
      since then stay. If the server accepts no operation with the replica's token, the operation \
      leaves the queue instead: undo the newest one of a record first.
      """,
    arguments: [
      ArgumentSpec(
        "OPERATION",
        help: "The operation's identifier in `ferry history`, or a unique beginning of it.")
    ]
  ) { arguments in
    let replica = try await FerryCommand.open(arguments)
    let id = try await OperationArgument.find(try arguments.string("OPERATION"), in: replica)
    let count = try await replica.operations.undo(id)
    let isKept = try await replica.operations.has(id)
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("operation", .string("\(id)")), ("columns", .int(count))]).text
        : isKept
          ? "undone; the next sync sends the undo"
          : "undone; the operation was never sent, and the next sync fetches the server's values")
    return .done
  }
}

extension PresentSide {
  fileprivate var cell: String {
    switch self {
    case .value(let value): Presentation.cell(value)
    case .exists: "the record"
    case .absent: "(no record)"
    case .unknown: "(unknown here)"
    }
  }

  /// The present value, and whether the record exists; both null if they are not known here.
  fileprivate var json: [(String, JSONText)] {
    switch self {
    case .value(let value): [("now", Presentation.json(value)), ("exists", .bool(true))]
    case .exists: [("now", .null), ("exists", .bool(true))]
    case .absent: [("now", .null), ("exists", .bool(false))]
    case .unknown: [("now", .null), ("exists", .null)]
    }
  }
}

extension KeptConflict {
  fileprivate var state: String {
    conflict.isQuestion ? resolvedAt == nil ? "open" : "resolved" : "decided"
  }
}
