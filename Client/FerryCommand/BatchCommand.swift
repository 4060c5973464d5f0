import Ferry
import FerryCommandLine

/// `ferry batch`: one operation for many records.
enum BatchCommand {
  static let batch = CommandSpec(
    "batch", summary: "Set columns of all records that match, or delete them, on every device.",
    discussion: """
      The batch is one operation for up to 100,000 records. Its effect is visible on this device \
      at once. The server applies it to all records that match at its place in the order, \
      including records that this replica has not pulled yet. The next sync corrects the rows if \
      the server decides otherwise.

      A predicate compares columns with values: = <> < <= > >=, in (…), between … and …, is null, \
      is not null, and, or, not, with text in single quotes. It has the meaning of SQLite, but \
      without the columns' type affinity: '1' is not 1.

      \(Assignments.discussion)
      """,
    options: [
      OptionSpec(
        "where", value: "PREDICATE", help: "The predicate that selects the records.", required: true
      ),
      OptionSpec(
        "set", value: "COLUMN=VALUE", help: "A column to set; may be repeated.", repeated: true),
    ],
    flags: [FlagSpec("delete", help: "Delete the records.")],
    arguments: [ArgumentSpec("TABLE", help: "A tracked table.", kind: CompletedNames.tables.kind)],
    examples: [
      ExampleSpec(
        "Finish the tasks that were due",
        "ferry batch tasks --where \"due < '2026-10-01' and done = 0\" --set done=1"),
      ExampleSpec("Clear the list", "ferry batch tasks --where \"done = 1\" --delete"),
    ]
  ) { arguments in
    let table = Name(try arguments.string("TABLE"))
    let predicate = try arguments.string("where")
    let columns = try Assignments.read(arguments.strings("set"))
    guard arguments.flag("delete") == columns.isEmpty else {
      throw UsageError(
        columns.isEmpty ? .missingOption : .unexpectedValue,
        columns.isEmpty ? "the batch has no effect" : "--set and --delete contradict each other",
        why: "a batch either sets columns or deletes",
        next: "give --set COLUMN=VALUE once or more, or --delete")
    }
    let replica = try await FerryCommand.open(arguments)
    let changed =
      columns.isEmpty
      ? try await replica.batchDelete(table, where: predicate)
      : try await replica.batch(
        table, where: predicate,
        set: Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0.value) }))
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(
        JSONText.object([("table", .string(table.text)), ("changedHere", .int(changed))]).text)
    } else {
      try TextOutput.standardOutput.line(
        "\(changed.counted("record")) changed here; recorded as one batch")
    }
    return .done
  }

  /// Returns the label and the text of a pending operation's target.
  static func recordCell(_ operation: SyncOperation) -> (String, JSONText) {
    recordCell(operation.key, operation.batch)
  }

  /// Returns the label and the text of a record, or of a batch.
  static func recordCell(_ key: RecordKey, _ batch: Batch?) -> (String, JSONText) {
    guard let batch else { return (key.record.text, .string(key.record.text)) }
    let text = "\(batch.effect.rawValue) where \(batch.predicate.text(key: "key"))"
    return (text, .string(text))
  }
}
