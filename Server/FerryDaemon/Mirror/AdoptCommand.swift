import FerryCommandLine
import FerryMirror
import FerryPlatform

/// `ferryd mirror adopt`.
enum AdoptCommand {
  static let root = CommandSpec(
    "adopt", summary: "Make tables of a company, with their rows, tables of a space.",
    discussion: """
      The tables keep their definition. They get triggers only, or PostgreSQL's log is read: see \
      --capture. The space gets the definitions that it lacks, \
      and all rows that devices can hold. Programs write to the tables meanwhile. If the command is \
      cut short, the same command goes on, or `ferryd mirror run` does. No row is changed or deleted \
      unless the space changes or deletes it. `ferryd mirror status` names the rows that the space \
      does not have.
      """,
    options: [
      MirrorCommands.serverOption,
      OptionSpec("space", value: "NAME", help: "The space, unless --space-name names many."),
      OptionSpec(
        "schema", value: "NAME", help: "The schema with the tables.", default: "public"),
      OptionSpec(
        "table", value: "NAME", help: "A table to adopt. A view becomes a read-only table.",
        repeated: true),
      OptionSpec(
        "columns", value: "TABLE=COLUMN,…",
        help: "The columns of a table that travel beside its key, instead of all.", repeated: true),
      OptionSpec(
        "where", value: "TABLE=CONDITION",
        help: """
          Only rows travel for which the condition is true. It is SQL over the row's own columns, such \
          as "NOT archived".
          """, repeated: true),
      OptionSpec(
        "key", value: "TABLE=MEANING",
        help: """
          The meaning of a numeric key. mapped: the company's sequence counts the rows, and each device \
          counts by itself; the default for keys with a sequence. value: the same number is the same \
          record on all sides, as for countries 1 to 249.
          """, repeated: true),
      OptionSpec(
        "space-column", value: "COLUMN[=VALUE]",
        help: """
          For tables with rows of several spaces: only rows with this value travel, and new rows of \
          devices get it. The column does not reach devices. All tables need the column; their foreign \
          keys do not reach devices. Without a value, use --space-name.
          """),
      OptionSpec(
        "space-name", value: "PATTERN",
        help: """
          Makes a group: a mirror for each value of --space-column, also for those that come later \
          while the group runs. The pattern has {} in the place of the value, such as account-{}. The \
          token is for all these spaces: see `ferryd token create --all-spaces`.
          """),
      OptionSpec(
        "view", value: "NAME[=QUERY]",
        help: """
          A view, or a table that the role may only read, as a read-only table. The mirror compares the \
          rows with a copy, and needs the right SELECT alone. With a query, the rows are the query's.
          """, repeated: true),
      OptionSpec(
        "view-key", value: "NAME=COLUMN,…",
        help: "The columns that identify a row of a view. The mirror only reads it.", repeated: true
      ),
      OptionSpec(
        "shared", value: "TABLE",
        help: """
          With --space-column: a further table, without this column. All rows of it travel in each \
          space, as those of countries or of articles.
          """, repeated: true),
      MirrorCommands.captureOption,
    ]
      + TokenOptions.options(
        """
        A token of the role admin; it is kept in the mirror's folder. The role writer is enough if \
        the space defines all tables already.
        """), flags: [JSONOption.flag], arguments: [MirrorCommands.nameArgument]
  ) { arguments in
    let (name, folder) = try MirrorCommands.folder(arguments)
    if let pattern = arguments.stringIfPresent("space-name") {
      return try await MirrorGroupCommands.adopt(
        try MirrorGroupCommands.configuration(name, try spaceColumn(arguments), pattern, arguments),
        arguments)
    }
    let started = try await MirrorCommands.choosingCapture(
      try adoption(name, arguments), folder, arguments)
    try await MirrorCommands.warnOfRole(name, started.database)
    let plan = try await MirrorCommands.explained(name) {
      try await MirrorAdopter(started, in: folder, token: TokenOptions.token(arguments))
        .begin(fallsBack: try MirrorCommands.isAutomatic(arguments))
    }
    if try await MirrorCommands.explained(name, { try await Mirror.prepareAdoption(folder) }) {
      try TextOutput.standardError.line(
        "note: the space has rows of these tables already: the company's rows with the same keys "
          + "replace them, and `ferryd mirror run` inserts the others into the tables")
    }
    let progress = ProgressBar("adopting", unit: .items("rows"))
    let status = try await MirrorCommands.opened(name, folder) { mirror in
      try await mirror.adoptRows { tables in
        let rows = tables.reduce(0) { $0 + $1.rows }
        progress.update(
          completed: rows, total: max(rows, tables.reduce(0) { $0 + $1.total }))
      }
      return try await mirror.status()
    }
    progress.finish()
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(
        JSONText.object([
          ("status", status.json), ("omitted", .array(plan.omitted.map { .string($0) })),
        ]).text)
      return status.views.isEmpty ? .done : .needsUser
    }
    for reason in plan.omitted { try TextOutput.standardOutput.line("left out: \(reason)") }
    try TextOutput.standardOutput.lines(status.lines)
    try TextOutput.standardOutput.line("next: ferryd mirror run \(name)")
    return status.views.isEmpty ? .done : .needsUser
  }

  /// Returns the settings of a mirror for one space.
  static func adoption(
    _ name: String, _ arguments: ParsedArguments
  ) throws -> MirrorConfiguration {
    let column = try spaceColumn(arguments)
    guard let space = arguments.stringIfPresent("space") else {
      throw UsageError(
        .missingOption, "--space is missing", why: "the rows become rows of a space",
        next: "add --space NAME, or --space-name PATTERN")
    }
    var configuration = try MirrorCommands.configuration(name, space: space, arguments)
    configuration.adoptions = try adoptions(arguments)
    if let column {
      guard let value = column.value else {
        throw UsageError(
          .invalidValue, "'\(column.name)' names no column and a value",
          why: "--space-column takes COLUMN=VALUE for one space",
          next: "write --space-column account_id=7, or add --space-name 'account-{}'")
      }
      for table in configuration.tables {
        configuration.adoptions[table]?.space = SpaceColumn(column.name, value: value)
      }
    }
    configuration.tables += try shared(arguments) + views(arguments).map(\.name)
    return configuration
  }

  /// Returns the travelling parts of the tables.
  static func adoptions(_ arguments: ParsedArguments) throws -> [String: MirrorAdoption] {
    var adoptions: [String: MirrorAdoption] = [:]
    for table in try arguments.strings("table") + shared(arguments) {
      adoptions[table] = MirrorAdoption()
    }
    let views = try views(arguments)
    for view in views {
      adoptions[view.name] = MirrorAdoption()
      adoptions[view.name]?.view = ViewSource(query: view.query)
    }
    for (table, text) in try pairs("columns", arguments, example: "tasks=title,done") {
      adoptions[table]?.columns = text.words(at: ",").map(String.init)
    }
    for (table, text) in try pairs("where", arguments, example: "'tasks=NOT archived'") {
      adoptions[table]?.condition = text
    }
    for (table, text) in try pairs("key", arguments, example: "countries=value") {
      guard let key = MirrorKey(rawValue: text) else {
        throw UsageError(
          .invalidValue, "'\(text)' is no meaning of a key", why: "a key is mapped or value",
          next: "write --key \(table)=value, or leave out --key")
      }
      adoptions[table]?.key = key
    }
    for (view, text) in try pairs("view-key", arguments, example: "totals=customer,year") {
      let query = adoptions[view]?.view?.query
      adoptions[view]?.view = ViewSource(key: text.words(at: ",").map(String.init), query: query)
    }
    return adoptions
  }

  /// Returns the views, each with a query or without.
  static func views(
    _ arguments: ParsedArguments
  ) throws -> [(name: String, query: String?)] {
    let tables = arguments.strings("table")
    let views = try arguments.strings("view").map { text in
      let parts = text.parts(at: "=", most: 2).map(String.init)
      guard parts.allSatisfy({ !$0.isEmpty }) else {
        throw UsageError(
          .invalidValue, "'\(text)' names no view, or has no query",
          why: "--view takes NAME or NAME=QUERY",
          next: "write --view totals, or --view 'late=SELECT id FROM orders WHERE total > 10'")
      }
      return (name: parts[0], query: parts.count == 2 ? parts[1] : nil)
    }
    guard let view = views.first?.name else {
      if !tables.isEmpty { return [] }
      throw UsageError(
        .missingOption, "--table is missing", why: "`adopt` makes named tables a space's",
        next: "add --table NAME, or --view NAME")
    }
    if let both = views.map(\.name).first(where: tables.contains) {
      throw UsageError(
        .invalidValue, "\(both) is a table and a view",
        why: "the mirror only reads a view", next: "leave out --table \(both) or --view \(both)")
    }
    guard arguments.stringIfPresent("space-name") == nil else {
      throw UsageError(
        .invalidValue, "--view does not fit --space-name",
        why: "each mirror of a group would compare all rows of view \(view)",
        next: "adopt the view by a mirror of one space")
    }
    return views
  }

  /// Returns the tables whose rows travel in all spaces.
  static func shared(_ arguments: ParsedArguments) throws -> [String] {
    let tables = arguments.strings("shared")
    guard let table = tables.first else { return [] }
    guard arguments.stringIfPresent("space-column") != nil else {
      throw UsageError(
        .invalidValue, "--shared does not fit the other options",
        why: "all rows of a table travel without --space-column", next: "write --table \(table)")
    }
    if let both = tables.first(where: arguments.strings("table").contains) {
      throw UsageError(
        .invalidValue, "table \(both) is shared, and is not",
        why: "a shared table has no column that names the space of a row",
        next: "leave out --table \(both) or --shared \(both)")
    }
    return tables
  }

  static func spaceColumn(
    _ arguments: ParsedArguments
  ) throws -> (name: String, value: String?)? {
    guard let text = arguments.stringIfPresent("space-column") else { return nil }
    let parts = text.parts(at: "=", most: 2).map(String.init)
    guard let name = parts.first, !name.isEmpty else {
      throw UsageError(
        .invalidValue, "'\(text)' names no column", why: "--space-column takes COLUMN=VALUE",
        next: "write --space-column account_id=7")
    }
    return (name, parts.count == 2 && !parts[1].isEmpty ? parts[1] : nil)
  }

  /// Reads an option of the form TABLE=TEXT.
  private static func pairs(
    _ option: String, _ arguments: ParsedArguments, example: String
  ) throws -> [(table: String, text: String)] {
    let tables =
      try ["table", "shared"].flatMap { arguments.strings($0) } + views(arguments).map(\.name)
    return try arguments.strings(option).map { text in
      let parts = text.parts(at: "=", most: 2).map(String.init)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw UsageError(
          .invalidValue, "'\(text)' names no table and a value",
          why: "--\(option) takes TABLE=VALUE", next: "write --\(option) \(example)")
      }
      guard tables.contains(parts[0]) else {
        throw UsageError(
          .invalidValue, "table \(parts[0]) is not adopted",
          why: "--\(option) concerns a --table or a --view",
          next: "add --table \(parts[0])")
      }
      return (parts[0], parts[1])
    }
  }
}
