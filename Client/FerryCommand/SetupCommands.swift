import Ferry
import FerryCommandLine
import FerryPlatform
import FerryProtocol

/// Commands that make a replica: `ferry init`, `track`, `rename` and `untrack`.
enum SetupCommands {
  static let initialise = CommandSpec(
    "init", summary: "Create a replica and connect it to a space on a server.",
    discussion: """
      Creates the file if it does not exist, checks that the server has the space, and stores the \
      address and the path given with --ca in the file. A token is stored beside it, in \
      FILE-token, which only you can read. If the server is open, or the token is an admin's, an \
      absent space is created. Run it again to change the address or the token.

      With --offline it asks nothing. The first sync finds the space, or creates it.
      """,
    options: [
      OptionSpec(
        "server", short: "s", value: "URL", help: "The server's address.",
        environment: "FERRY_SERVER", required: true),
      OptionSpec(
        "space", value: "NAME", help: "The space to sync with.", environment: "FERRY_SPACE",
        required: true),
      NameCommand.deviceName,
    ] + TokenOptions.options("The bearer token, if the server requires one."),
    flags: [FlagSpec("offline", help: "Do not ask the server; the first sync does.")],
    examples: [
      ExampleSpec(
        "With a name",
        "ferry init --server http://127.0.0.1:8080 --space demo --name \"Ada's laptop\""),
      ExampleSpec(
        "With a token",
        "ferry init --server https://sync.example.org --space team --token-file FILE"),
      ExampleSpec(
        "Without a network",
        "ferry init --offline --server https://sync.example.org --space team --token-file FILE"),
    ]
  ) { arguments in
    let url = try arguments.string("server")
    guard WebAddress.isOne(url) else {
      throw CommandFailure(
        "--server is not a web address", why: "'\(url)' has no http:// or https://",
        next: "write it as http://HOST:PORT", status: .usage, code: "bad_server")
    }
    let name = arguments.stringIfPresent("name")
    if let name { _ = try DeviceName(chosen: name) }
    let isOffline = arguments.flag("offline")
    let (replica, info) =
      try await isOffline ? (prepare(arguments, url), nil) : connect(arguments, url)
    if let name { try await replica.setDeviceName(name) }
    let status = try await replica.status()
    let (device, space) = (status.device, try arguments.string("space"))
    try FerryCommand.warn(status.warnings)
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("replica", .string(replica.path)), ("device", .string("\(device)")),
          ("name", .string(orNull: status.deviceName)), ("server", .string(url)),
          ("space", .string(space)),
          ("role", info.map { .string($0.role.rawValue) } ?? .null),
          ("head", info.map { .int($0.head) } ?? .null),
        ]).text)
    } else {
      let called = status.deviceName.map { ", called \($0)," } ?? ""
      try output.line(
        "\(replica.path) is device \(device)\(called) of space \(space) on \(url)")
      try output.line(
        info.map { "role \($0.role.rawValue), \($0.head.counted("change")) so far" }
          ?? "the server was not asked; `ferry sync` asks it")
    }
    return .done
  }

  private static func connect(
    _ arguments: ParsedArguments, _ url: String
  ) async throws -> (Replica, SpaceInfo?) {
    let replica = try await FerryCommand.open(arguments, creating: true)
    let check = SchemeCheck(
      transport: SystemTransport(configuration: try FerryCommand.network(arguments)))
    do {
      let info = try await check.explained(url: url) {
        try await replica.connect(
          to: url, space: arguments.string("space"), token: TokenOptions.token(arguments),
          certificateAuthorities: try FerryCommand.authorities(arguments))
      }
      return (replica, info)
    } catch ReplicaError.offline(let why) {
      throw CommandFailure(
        "the server could not be reached", why: why,
        next: "check the address, and run the command again; or add --offline to set it unchecked",
        status: .unreachable, code: "offline")
    }
  }

  /// Sets the server without a network.
  private static func prepare(_ arguments: ParsedArguments, _ url: String) async throws -> Replica {
    try await Replica.open(
      arguments.string("replica"), server: url, space: arguments.string("space"),
      token: TokenOptions.token(arguments).map { .fixed($0) } ?? .stored,
      certificateAuthorities: FerryCommand.authorities(arguments))
  }

  static let track = CommandSpec(
    "track", summary: "Record all writes to tables from now on.",
    discussion: """
      Any ordinary table with a primary key can be tracked. Its existing rows are recorded as \
      inserts. ALTER TABLE … ADD COLUMN through Ferry needs no further step. Without tables: lists \
      the tracked ones. With --all: tracks all tables of this file.

      A text key is the record's identifier on all devices. Other keys become one: with --identity \
      mapped, each device counts its own integers and keeps which record each one is; with \
      --identity value, the same key is the same record on all devices. Without --identity, the \
      command chooses, and prints the reason. Tables that refer to each other by integer keys are tracked \
      together.

      Changes of an upload-only table are sent, and nothing is pulled for it. Changes that could \
      not be sent stay marked (`ferry uploads`) until you run `ferry retry`, or, with --automatic, \
      are sent with the next sync. With --fill, the next sync brings the rows that the space has, once: \
      for example the history of a chat on a new device. Track a table again to change this.
      """,
    options: [
      OptionSpec(
        "id", value: "COLUMN", help: "With --create: the name of the key column.", default: "id"),
      OptionSpec(
        "space-column", value: "COLUMN",
        help: "The column with the space of each row: the tables have rows of all spaces."),
      OptionSpec(
        "identity", value: "KIND", help: "How keys become identifiers: text, value or mapped."),
    ],
    flags: [
      FlagSpec(
        "create", help: "Create absent tables from their definitions, or from the pulled records."),
      FlagSpec("all", help: "All tables of this file; with --create, those of the space instead."),
      FlagSpec("upload-only", help: "Send changes, and pull none."),
      FlagSpec("automatic", help: "With --upload-only: retry failed changes automatically."),
      FlagSpec(
        "fill",
        help: "With --upload-only: pull the rows that the space has, once, with the next sync."),
    ],
    arguments: [
      ArgumentSpec(
        "TABLE", help: "Tables to track.", kind: CompletedNames.tables.kind, arity: .zeroOrMore)
    ]
  ) { arguments in
    let tables = arguments.strings("TABLE").map { Name($0) }
    let replica = try await FerryCommand.open(arguments, creating: true)
    let key = arguments.flag("create") ? Name(try arguments.string("id")) : nil
    if arguments.flag("all") { return try await trackAll(replica, key, tables, arguments) }
    if key != nil && tables.isEmpty {
      throw CommandFailure(
        "--create needs the names of tables", why: "no table was named",
        next: "name them, or add --all for all tables of the space", status: .usage,
        code: "no_table")
    }
    let direction = try direction(arguments)
    let identity = try identity(arguments)
    var keys: [KeyProposal] = []
    if identity == nil {
      let known = Set(try await replica.trackedLocals())
      for table in tables where !known.contains(table) {
        if let key = try? await replica.keyProposal(for: table) { keys.append(key) }
      }
    }
    if !tables.isEmpty {
      if let column = arguments.stringIfPresent("space-column") {
        try await replica.track(
          tables, spaceColumn: Name(column), direction: direction, identity: identity)
      } else {
        try await withProgress { progress in
          try await replica.track(
            tables, creatingKey: key, direction: direction, identity: identity, progress: progress)
        }
      }
    }
    let (status, tracked) = (try await replica.status(), try await replica.trackedLocals())
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("tables", .array(tracked.map { .string($0.text) })),
          ("pending", .int(status.pending)), ("keys", .array(keys.map(\.json))),
        ]).text)
    } else {
      try output.line("tracked: \(list(tracked))")
      try show(keys, on: output)
    }
    return try verdict(after: status, arguments)
  }

  /// Shows the progress while changes are applied to new tables.
  private static func withProgress<T: Sendable>(
    _ work: (@escaping @Sendable (SyncProgress) -> Void) async throws -> T
  ) async throws -> T {
    let progress = ProgressBar("applying", unit: .items("changes"))
    defer { progress.finish() }
    return try await work {
      progress.update(completed: Int64($0.completed), total: Int64($0.total))
    }
  }

  /// Reports rows rejected by the tracked tables.
  private static func verdict(
    after status: ReplicaStatus, _ arguments: ParsedArguments
  ) throws -> ExitStatus {
    let isAny = try SyncCommands.reportDeferred(
      status.deferred - status.keptLocal, in: arguments.stringIfPresent("in"))
    return isAny ? .needsUser : .done
  }

  private static func list(_ tables: [Name]) -> String {
    BoundedList.names(tables.map(\.text), shown: BoundedList.listed)
  }

  /// Shows how keys other than texts become identifiers.
  private static func show(_ keys: [KeyProposal], on output: TextOutput) throws {
    try output.lines(
      BoundedList.lines(keys.filter { $0.identity != .text }, shown: BoundedList.listed) { key in
        "  \(key.table): identity \(key.identity.rawValue), since \(key.reason)".escapedForTerminal
      } rest: {
        "  and \($0.counted("more table")); --json lists them"
      })
  }

  private static func identity(_ arguments: ParsedArguments) throws -> KeyIdentity? {
    guard let text = arguments.stringIfPresent("identity") else { return nil }
    guard let identity = KeyIdentity(rawValue: text) else {
      throw CommandFailure(
        "--identity is text, value or mapped", why: "'\(text)' is none of them",
        next: "leave it out, and the command chooses", status: .usage, code: "bad_identity")
    }
    return identity
  }

  private static func trackAll(
    _ replica: Replica, _ key: Name?, _ tables: [Name], _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    guard tables.isEmpty, !arguments.flag("upload-only"), try identity(arguments) == nil else {
      throw CommandFailure(
        "--all takes neither tables nor --upload-only nor --identity",
        why: "it tracks all tables of this file, or, with --create, of the space",
        next: "run `ferry track --all` or `ferry track --create --all`", status: .usage,
        code: "bad_all")
    }
    let report =
      if let key {
        try await withProgress { try await replica.trackAll(creatingKey: key, progress: $0) }
      } else {
        try await replica.trackAllHere()
      }
    let (status, tracked) = (try await replica.status(), try await replica.trackedLocals())
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      let faults = report.faults.map { fault in
        JSONText.object([("table", .string(fault.table.text)), ("reason", .string(fault.reason))])
      }
      try output.line(
        JSONText.object([
          ("added", .array(report.tracked.map { .string($0.text) })),
          ("tables", .array(tracked.map { .string($0.text) })), ("faults", .array(faults)),
          ("keys", .array(report.keys.map(\.json))),
        ]).text)
    } else {
      try output.line("tracked: \(list(tracked))")
      try show(report.keys, on: output)
      if tracked.isEmpty {
        try output.line(
          key == nil ? "this file has no tables" : "nothing was pulled yet; run `ferry sync` first")
      }
    }
    let verdict = try verdict(after: status, arguments)
    guard let fault = report.faults.first else { return verdict }
    throw CommandFailure(
      "\(report.faults.count.counted("table")) cannot be tracked",
      why: "\(fault.table): \(fault.reason)",
      next: "the others are tracked; correct it, and run the command again", status: .needsUser,
      code: "cannot_track")
  }

  private static func direction(_ arguments: ParsedArguments) throws -> TrackDirection {
    guard arguments.flag("upload-only") else {
      for flag in ["automatic", "fill"] where arguments.flag(flag) {
        throw CommandFailure(
          "--\(flag) is for upload-only tables", why: "--upload-only is missing",
          next: "give both, or neither", status: .usage, code: "not_upload_only")
      }
      return .twoWay
    }
    guard !arguments.flag("create") else {
      throw CommandFailure(
        "--create and --upload-only exclude each other",
        why:
          "--create creates a table for the records of each pull; an upload-only table pulls none, or "
          + "with --fill those of one pull",
        next: "create the table with `ferry sql`, then run `ferry track --upload-only`",
        status: .usage, code: "create_upload_only")
    }
    return .uploadOnly(automatic: arguments.flag("automatic"), fill: arguments.flag("fill"))
  }

  static let rename = CommandSpec(
    "rename", summary: "Give a table or a column another name on this device.",
    discussion: """
      The space keeps the first name, so that devices which still use it sync with this one. \
      `ferry conflicts` and the other reports of changes show the names of the space; `ferry status`, \
      `ferry track` and `ferry spaces` list tables by their names here.
      """,
    options: [OptionSpec("column", value: "COLUMN", help: "The column to rename.")],
    arguments: [
      ArgumentSpec("TABLE", help: "The table.", kind: CompletedNames.tables.kind),
      ArgumentSpec("NAME", help: "The new name."),
    ],
    examples: [ExampleSpec("Rename a column", "ferry rename notes text --column body")]
  ) { arguments in
    let table = Name(try arguments.string("TABLE"))
    let new = Name(try arguments.string("NAME"))
    let column = arguments.stringIfPresent("column").map { Name($0) }
    try await FerryCommand.open(arguments).write { database in
      if let column {
        try database.renameColumn(column, of: table, to: new)
      } else {
        try database.renameTable(table, to: new)
      }
    }
    return .done
  }

  static let untrack = CommandSpec(
    "untrack", summary: "Stop recording the writes to a table.",
    discussion: "Its rows stay, and its pending changes are still sent.",
    arguments: [ArgumentSpec("TABLE", help: "The table.", kind: CompletedNames.tables.kind)]
  ) { arguments in
    let replica = try await FerryCommand.open(arguments)
    let table = Name(try arguments.string("TABLE"))
    let tracked = try await replica.trackedLocals()
    guard tracked.contains(where: { $0.text.lowercasedASCII == table.text.lowercasedASCII }) else {
      throw CommandFailure(
        "table \(table) is not tracked in this space",
        why: "tracked are: \(BoundedList.names(tracked.map(\.text)))",
        next: "`ferry spaces` lists the tables of each space; add --in SPACE",
        code: "not_tracked")
    }
    try await replica.untrack(table)
    return .done
  }
}

extension KeyProposal {
  fileprivate var json: JSONText {
    .object([
      ("table", .string(table.text)), ("identity", .string(identity.rawValue)),
      ("reason", .string(reason)),
    ])
  }
}
