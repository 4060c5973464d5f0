import CommandLineKit
import Ferry

extension FerryCommand {
  static let batch = CommandSpec(
    "batch", summary: "Set columns of all records that match, or delete them, on every device.",
    discussion: """
      Recorded as one operation, however many records match. Its effect shows here at once; the \
      server applies it at its place in the order, also to records that this replica has not \
      pulled yet, and a sync then corrects what the server decided otherwise.

      A predicate compares columns with values: = <> < <= > >=, in (…), between … and …, is null, \
      is not null, and, or, not, with text in single quotes. It means what it means in SQLite, \
      but without the columns' type affinity: '1' is not 1.

      A value is an integer, a real, null, 'text' or x'blob'; anything else is text as it stands. \
      So --set code=007 sets the number 7, and --set "code='007'" the text.
      """,
    options: [
      OptionSpec("where", value: "PREDICATE", help: "Which records.", required: true),
      OptionSpec(
        "set", value: "COLUMN=VALUE", help: "A column to set; may be repeated.", repeated: true),
    ],
    flags: [FlagSpec("delete", help: "Delete the records.")],
    arguments: [ArgumentSpec("TABLE", help: "A tracked table.")],
    examples: [
      ExampleSpec(
        "Finish what was due",
        "ferry batch tasks --where \"due < '2026-10-01' and done = 0\" --set done=1"),
      ExampleSpec("Clear the list", "ferry batch tasks --where \"done = 1\" --delete"),
    ]
  ) { arguments in
    let table = try arguments.string("TABLE")
    let predicate = try arguments.string("where")
    let columns = try columns(arguments.strings("set"))
    guard arguments.flag("delete") == columns.isEmpty else {
      throw UsageError(
        columns.isEmpty ? .missingOption : .unexpectedValue,
        columns.isEmpty ? "nothing to do is given" : "--set and --delete contradict each other",
        why: "a batch either sets columns or deletes",
        next: "give --set COLUMN=VALUE once or more, or --delete")
    }
    let replica = try await open(arguments)
    let changed =
      columns.isEmpty
      ? try await replica.batchDelete(table, where: predicate)
      : try await replica.batch(table, where: predicate, set: columns)
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(
        JSONText.object([("table", .string(table)), ("changedHere", .int(changed))]).text)
    } else {
      try TextOutput.standardOutput.line("\(changed) records changed here; recorded as one batch")
    }
    return .done
  }

  /// What a pending operation is about.
  static func recordCell(_ operation: Operation) -> (String, JSONText) {
    guard let batch = operation.batch else {
      return (operation.key.record, .string(operation.key.record))
    }
    let text = "\(batch.effect.rawValue) where \(batch.predicate.text(key: "key"))"
    return (text, .string(text))
  }

  private static func columns(_ assignments: [String]) throws -> [String: Value] {
    var columns: [String: Value] = [:]
    for assignment in assignments {
      let parts = assignment.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, !parts[0].isEmpty else {
        throw UsageError(
          .invalidValue, "--set \(assignment) sets nothing", why: "there is no COLUMN= in it",
          next: "write --set COLUMN=VALUE, such as --set done=1")
      }
      let value = Value(argument: String(parts[1]))
      guard columns.updateValue(value, forKey: String(parts[0])) == nil else {
        throw UsageError(
          .repeatedOption, "column \(parts[0]) is set twice", why: "it can hold one value",
          next: "give --set \(parts[0])=VALUE once")
      }
    }
    return columns
  }
}
