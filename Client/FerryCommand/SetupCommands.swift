import Ferry
import FerryCommandLine

extension FerryCommand {
  static let initialise = CommandSpec(
    "init", summary: "Create a replica and connect it to a space on a server.",
    discussion: """
      Creates the file if it does not exist, checks that the server has the space, and stores the \
      address and the path given with --ca in the file. A token is stored beside it, in \
      FILE-token, which only you can read. If the server is open, or the token is an admin's, an \
      absent space is created. Run it again to change the address or the token.
      """,
    options: [
      OptionSpec(
        "server", short: "s", value: "URL", help: "The server's address.",
        environment: "FERRY_SERVER", required: true),
      OptionSpec(
        "space", value: "NAME", help: "The space to sync with.", environment: "FERRY_SPACE",
        required: true),
      OptionSpec(
        "token", value: "TOKEN", help: "The bearer token, if the server requires one.",
        environment: "FERRY_TOKEN"),
    ],
    examples: [
      ExampleSpec(
        "With a token",
        "ferry init --server https://sync.example.org --space team --token ferry_…")
    ]
  ) { arguments in
    let url = try arguments.string("server")
    guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
      throw CommandFailure(
        "--server is not a web address", why: "'\(url)' has no http:// or https://",
        next: "write it as http://HOST:PORT", status: .usage, code: "bad_server")
    }
    let replica = try await open(arguments, creating: true)
    let check = SchemeCheck(transport: CurlTransport(configuration: try network(arguments)))
    let info = try await check.explained(url: url) {
      try await replica.connect(
        to: url, space: arguments.string("space"), token: arguments.stringIfPresent("token"),
        certificateAuthorities: try authorities(arguments))
    }
    let status = try await replica.status()
    let device = status.device
    try warn(status.warnings)
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("replica", .string(replica.path)), ("device", .string("\(device)")),
          ("server", .string(url)), ("space", .string(info.space.value)),
          ("role", .string(info.role.rawValue)), ("head", .int(info.head)),
        ]).text)
    } else {
      try output.line("\(replica.path) is device \(device) of space \(info.space) on \(url)")
      try output.line("role \(info.role.rawValue), \(info.head.counted("change")) so far")
    }
    return .done
  }

  static let track = CommandSpec(
    "track", summary: "Record all writes to tables from now on.",
    discussion: """
      Any ordinary table with one TEXT PRIMARY KEY column can be tracked. Its existing rows are \
      recorded as inserts. ALTER TABLE … ADD COLUMN through Ferry needs no further step. Without \
      tables: lists the tracked ones.

      Changes of an upload-only table are sent, and nothing is pulled for it. Changes that could \
      not be sent stay marked (`ferry uploads`) until you run `ferry retry`, or, with --automatic, \
      are sent with the next sync. Track a table again to change this.
      """,
    options: [
      OptionSpec(
        "id", value: "COLUMN", help: "With --create: the name of the key column.", default: "id")
    ],
    flags: [
      FlagSpec("create", help: "Create absent tables from the pulled records."),
      FlagSpec("upload-only", help: "Send changes, and pull none."),
      FlagSpec("automatic", help: "With --upload-only: retry failed changes automatically."),
    ],
    arguments: [ArgumentSpec("TABLE", help: "Tables to track.", arity: .zeroOrMore)]
  ) { arguments in
    let tables = arguments.strings("TABLE").map { Name($0) }
    let replica = try await open(arguments, creating: true)
    let key = arguments.flag("create") ? Name(try arguments.string("id")) : nil
    if key != nil && tables.isEmpty {
      throw CommandFailure(
        "--create needs the names of tables", why: "no table was named",
        next: "`ferry to-apply` lists the pulled changes of tables that do not exist here",
        status: .usage, code: "no_table")
    }
    let direction = try direction(arguments)
    if !tables.isEmpty {
      try await replica.track(tables, creatingKey: key, direction: direction)
    }
    let status = try await replica.status()
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("tables", .array(status.tables.map { .string($0.text) })),
          ("pending", .int(status.pending)),
        ]).text)
    } else {
      try output.line("tracked: \(status.tables.map(\.text).joined(separator: ", "))")
    }
    return .done
  }

  private static func direction(_ arguments: ParsedArguments) throws -> TrackDirection {
    guard arguments.flag("upload-only") else {
      guard !arguments.flag("automatic") else {
        throw CommandFailure(
          "--automatic is for upload-only tables", why: "--upload-only is missing",
          next: "give both, or neither", status: .usage, code: "not_upload_only")
      }
      return .twoWay
    }
    guard !arguments.flag("create") else {
      throw CommandFailure(
        "--create and --upload-only exclude each other",
        why: "--create fills a table from pulled records; an upload-only table pulls no records",
        next: "create the table with `ferry sql`", status: .usage, code: "create_upload_only")
    }
    return .uploadOnly(automatic: arguments.flag("automatic"))
  }

  static let untrack = CommandSpec(
    "untrack", summary: "Stop recording the writes to a table.",
    discussion: "Its rows stay, and its pending changes are still sent.",
    arguments: [ArgumentSpec("TABLE", help: "The table.")]
  ) { arguments in
    let replica = try await open(arguments)
    try await replica.untrack(Name(try arguments.string("TABLE")))
    return .done
  }
}
