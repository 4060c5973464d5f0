import FerryCommandLine
import FerryMirror
import FerryPlatform

/// `ferryd mirror plan`.
enum PlanCommand {
  static let root = CommandSpec(
    "plan", summary: "Show the effects of `adopt` or `add` before, without any change.",
    discussion: """
      The options are those of `ferryd mirror adopt`, and with --add those of `ferryd mirror add`. The \
      plan shows each column with the type on devices, all parts that do not travel, the definitions \
      that the space would get, and all reasons against it. It writes nothing to the database, to the \
      space or to a folder: a role that may only read the tables, and a token of the role reader, are \
      enough to plan. Then the plan names the missing rights. Without --space, --space-name and \
      --table, it shows an existing mirror: changes of the tables and of the space's schema since, and \
      reasons for a stop. Exit code 0: the command would begin, or the mirror would run. Exit code 1: \
      it would be refused. Exit code 4: the mirror has stopped, or would stop itself.
      """,
    options: AdoptCommand.root.options.filter { $0.name != "table" } + [
      OptionSpec(
        "table", value: "NAME", help: "A table to adopt, or with --add to mirror instead of all.",
        repeated: true),
      OptionSpec(
        "type", value: "TABLE.COLUMN=TYPE", help: "With --add: another type of a column.",
        repeated: true),
    ],
    flags: [
      FlagSpec("add", help: "Show the effects of `ferryd mirror add`."), JSONOption.flag,
    ], arguments: [MirrorCommands.nameArgument],
    examples: [
      ExampleSpec(
        "See how a table would travel",
        "ferryd mirror plan crm --server http://127.0.0.1:8080 --space crm "
          + "--database postgres://app@db/company --table tasks"),
      ExampleSpec("See the changes since a mirror was made", "ferryd mirror plan crm"),
    ]
  ) { arguments in
    let (name, folder) = try MirrorCommands.folder(arguments)
    let isPresent = try isPresent(name, folder, arguments)
    let preview = try await MirrorCommands.explained(name) {
      isPresent
        ? try await MirrorPreviewer.present(folder) : try await future(name, folder, arguments)
    }
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(preview.json.text)
    } else {
      try TextOutput.standardOutput.lines(
        preview.lines(
          width: Terminal.current().tableWidth, isPresent: isPresent,
          command: arguments.flag("add") ? "add" : "adopt"))
    }
    if preview.isPossible { return .done }
    return isPresent ? .needsUser : .failed
  }

  /// Returns `true` if the command names an existing mirror alone.
  private static func isPresent(
    _ name: String, _ folder: MirrorFolder, _ arguments: ParsedArguments
  ) throws -> Bool {
    let named = ["space", "space-name"].compactMap { arguments.stringIfPresent($0) }
    let tables = arguments.strings("table") + arguments.strings("view")
    guard named.isEmpty, tables.isEmpty, !arguments.flag("add") else {
      return false
    }
    guard !folder.isGroup else {
      throw UsageError(
        .invalidValue, "\(name) is a group of mirrors", why: "a plan shows one present mirror",
        next: "name a mirror of the group: `ferryd mirror list` lists them; or give all options of "
          + "`ferryd mirror adopt`")
    }
    return true
  }

  private static func future(
    _ name: String, _ folder: MirrorFolder, _ arguments: ParsedArguments
  ) async throws -> MirrorPreview {
    let token = try TokenOptions.token(arguments)
    if arguments.flag("add") {
      let asked = try await MirrorCommands.choosingCapture(
        try AddCommand.configuration(name, arguments), folder, arguments)
      return try await MirrorPreviewer(asked, in: folder, token: token).addition()
    }
    guard !(arguments.strings("table") + arguments.strings("view")).isEmpty else {
      throw UsageError(
        .missingOption, "--table is missing", why: "`adopt` makes named tables a space's",
        next: "add --table NAME, or --add for a mirror that makes its tables")
    }
    if let pattern = arguments.stringIfPresent("space-name") {
      let group = try await MirrorGroupCommands.configuration(
        name, try AdoptCommand.spaceColumn(arguments), pattern, arguments
      ).choosingCapture(isAutomatic: try MirrorCommands.isAutomatic(arguments), in: folder)
      return try await MirrorPreviewer.adoption(group, in: folder).noting(group.captureReason)
    }
    let asked = try await MirrorCommands.choosingCapture(
      try AdoptCommand.adoption(name, arguments), folder, arguments)
    return try await MirrorPreviewer(asked, in: folder, token: token).adoption()
      .noting(asked.captureReason)
  }
}

extension MirrorPreview {
  /// Returns the preview with the reason against the log; `nil` if there is none.
  fileprivate func noting(_ reason: String?) -> MirrorPreview {
    guard let reason else { return self }
    var preview = self
    preview.notes.append("triggers capture: PostgreSQL's log cannot be read: \(reason)")
    return preview
  }
}
