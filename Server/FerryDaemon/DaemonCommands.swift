import FerryCommandLine
import FerrySyncServer

/// `ferryd` and all commands, as declarations.
enum DaemonCommands {
  static let root = CommandSpec(
    "ferryd", summary: "The server of Ferry: keeps spaces in sync between devices.",
    discussion: """
      Without options `ferryd serve` keeps its data in an embedded store and listens on this \
      machine only. With --database it uses PostgreSQL, and any number of servers can share one \
      database.
      """,
    version: FerryVersion.current, options: StoreOptions.options + LogOptions.options,
    flags: LogOptions.flags,
    subcommands: [
      serve, TokenCommands.root, space, FeedCommand.root, MissionCommands.root, BundleCommands.root,
      PatchCommands.root, MirrorCommands.root, AuditCommand.root, healthCheck, migrate,
      BackupCommands.backup, BackupCommands.restore,
    ],
    examples: [
      ExampleSpec("Serve this machine, with nothing configured", "ferryd serve"),
      ExampleSpec(
        "Serve the network from PostgreSQL",
        "ferryd serve --listen 0.0.0.0:8080 --database postgres://ferry@db/ferry"),
      ExampleSpec("Make a token", "ferryd token create --space notes --role writer"),
    ],
    exitCodes: [
      ExitCodeNote(0, "Done; also after SIGTERM or SIGINT, when everything was finished."),
      ExitCodeNote(1, "Failed; the message gives the reason."),
      ExitCodeNote(2, "Wrong usage; nothing was done."),
      ExitCodeNote(3, "A server named with --server is unreachable or busy; try again later."),
      ExitCodeNote(4, "Needs you: a token that allows this."),
    ])

  private static let space = CommandSpec(
    "space",
    summary: "Create, list and configure spaces, prune their history, and list their usage.",
    subcommands: [
      SpaceCommands.create, SpaceCommands.list, SpaceCommands.show, SpaceCommands.set,
      SpaceCommands.prune, SpaceCommands.usage,
    ])

  private static let migrate = CommandSpec(
    "migrate", summary: "Create the store's tables if there are none, and end.",
    discussion: """
      `ferryd serve` does the same when it starts, and several servers can start at once. Use this \
      command if the server's own user may not change the schema.

      With --distribute, the database is the coordinator of Citus. All tables are distributed over \
      its workers by their spaces, with their rows. Stop the servers before. The command can be \
      repeated: tables that are distributed already stay as they are.
      """,
    flags: [
      FlagSpec(
        "distribute", help: "Distribute the store over the workers of Citus by its spaces.")
    ],
    examples: [
      ExampleSpec(
        "Distribute a store by Citus",
        "ferryd migrate --distribute --database postgres://ferry@coordinator/ferry")
    ]
  ) { arguments in
    if arguments.flag("distribute") { return try await distribute(arguments) }
    try await StoreOptions.withStore(arguments, createsIfMissing: true) { _, location in
      try TextOutput.standardError.line("ferryd: the store is ready (\(location))")
    }
    return .done
  }

  private static func distribute(_ arguments: ParsedArguments) async throws -> ExitStatus {
    let location = try StoreOptions.location(arguments)
    guard case .postgres(let addresses) = location else { throw DistributionFault.embedded }
    let done = try await PostgresStore.distribute(addresses)
    try TextOutput.standardError.line(
      "ferryd: \(done.tables.counted("table")) distributed; the store is on "
        + "\(done.workers.counted("worker")) (\(location))")
    return .done
  }
}
