import Ferry
import FerryCommandLine

/// `ferry uploads` and `retry`: changes of upload-only tables.
enum UploadCommands {
  static let uploads = CommandSpec(
    "uploads", summary: "List changes of upload-only tables that the server has not confirmed.",
    discussion: """
      dirty: an insert or update is not confirmed. deleted: the record is deleted here, and the \
      delete is not confirmed. failed: the change could not be sent, and waits for `ferry retry`, \
      or in an automatic table for the next sync. Programs find the same rows in the replica's \
      view ferry_uploads.
      """,
    options: [
      OptionSpec(
        "limit", short: "n", value: "COUNT", help: "The largest number of entries.",
        kind: .integer(1...1_000_000), default: "50")
    ],
    arguments: [
      ArgumentSpec(
        "TABLE", help: "Only this table.", kind: CompletedNames.tables.kind, arity: .optional)
    ],
    examples: [
      ExampleSpec(
        "Messages with their marks",
        "ferry sql \"SELECT m.*, u.failed FROM messages AS m LEFT JOIN ferry_uploads AS u "
          + "ON u.tbl = 'messages' AND u.record = m.id\"")
    ]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let table = arguments.stringIfPresent("TABLE").map { Name($0) }
    let uploads = try await FerryCommand.open(arguments).uploads.states(of: table, limit: count)
    try Presentation.print(
      ["table", "record", "dirty", "deleted", "failed", "detail", "identifier"],
      uploads.map { upload in
        func mark(_ isSet: Bool) -> (String, JSONText) { (isSet ? "yes" : "", .bool(isSet)) }
        return [
          (upload.key.table.text, .string(upload.key.table.text)),
          BatchCommand.recordCell(upload.key, upload.batch), mark(upload.isDirty),
          mark(upload.isDeleted), mark(upload.isFailed),
          (upload.detail ?? "", .string(orNull: upload.detail)),
          ("\(upload.identifier)", .string("\(upload.identifier)")),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  static let retry = CommandSpec(
    "retry", summary: "Retry failed changes of upload-only tables with the next sync.",
    discussion: """
      Without arguments: all failed changes. Failed changes of the same transactions are retried \
      too. Each change takes effect once, even if it had arrived in spite of the failure.
      """,
    arguments: [
      ArgumentSpec(
        "TABLE", help: "Only this table.", kind: CompletedNames.tables.kind, arity: .optional),
      ArgumentSpec("ID", help: "Only this record of the table.", arity: .optional),
    ],
    examples: [ExampleSpec("One message", "ferry retry messages 0198c2f0 && ferry sync")]
  ) { arguments in
    let replica = try await FerryCommand.open(arguments)
    let table = arguments.stringIfPresent("TABLE")
    let count = try await replica.uploads.retry(
      table: table.map { Name($0) },
      record: arguments.stringIfPresent("ID").map { Name($0) })
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("retried", .int(count))]).text
        : count == 0
          ? "no change of \(table ?? "an upload-only table") has failed".escapedForTerminal
            + "; `ferry quarantine list` lists the changes that the server refused, also of other "
            + "tables"
          : "\(count.counted("record")): the next sync sends \(count == 1 ? "it" : "them")")
    return .done
  }

  /// Prints the records waiting for `ferry retry`. Returns true if there are any.
  ///
  /// - Parameter space: the space to name in the commands of hints; `nil` for the first one.
  @discardableResult
  static func reportUnsent(_ replica: Replica, in space: String? = nil) async throws -> Bool {
    let count = try await replica.status().unsent
    guard count > 0 else { return false }
    let lines = [
      "ferry: \(count.counted("record")) of upload-only tables could not be sent",
      "  why: `ferry uploads` shows the reasons; all other changes sync as usual",
      "  next: run `ferry retry`, or `ferry retry TABLE ID` for one record; then sync again",
    ]
    try TextOutput.standardError.lines(CommandHint.lines(lines, in: space))
    return true
  }
}
