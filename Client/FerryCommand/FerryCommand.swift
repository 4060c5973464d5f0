import Ferry
import FerryCommandLine
import FerryPlatform

/// The command `ferry`: a device on the command line.
enum FerryCommand {
  /// Ferry's version, as `ferry --version` prints it.
  static let version = ClientVersion.current

  static let specification = CommandSpec(
    "ferry",
    summary: "Sync a SQLite file with a Ferry server.",
    discussion: """
      A replica is an ordinary SQLite file. Track its tables, write plain SQL with `ferry sql` (or \
      from your program with the Ferry library), and sync when there is a network. Offline writes \
      are recorded in the same transaction and sent later, exactly once. Remote changes appear all \
      at once. If two devices write the same column concurrently, the later write wins, and the \
      other value is kept: see `ferry log`.

      Other SQLite programs can read the file. If they write to a tracked table, they fail with \
      "no such function: ferry_records", so that no change misses the sync unnoticed. With the \
      extension libferry_sqlite.so their writes are recorded as well.
      """,
    version: version,
    options: [
      OptionSpec(
        "replica", short: "r", value: "FILE", help: "The replica's SQLite file.", kind: .file,
        default: "./ferry.db", environment: "FERRY_REPLICA"),
      OptionSpec(
        "in", value: "SPACE",
        help: "The space of the file that the command is about; without it, the first one.",
        kind: CompletedNames.spaces.kind),
      OptionSpec(
        "ca", value: "FILE",
        help: "A PEM file of certificate authorities to trust in addition to the system's.",
        kind: .file,
        environment: "FERRY_CA"),
    ],
    flags: [
      FlagSpec("json", help: "Answer in JSON, one object a line.", environment: "FERRY_JSON")
    ],
    subcommands: [
      SetupCommands.initialise,
      NameCommand.name,
      SpaceCommands.join,
      SpaceCommands.leave,
      SpaceCommands.spaces,
      MemberCommands.space,
      MemberCommands.invite,
      MemberCommands.invitations,
      MemberCommands.accept,
      MemberCommands.members,
      SetupCommands.track,
      SetupCommands.untrack,
      SetupCommands.rename,
      ImportCommand.importing,
      SQLCommand.sql,
      BatchCommand.batch,
      SyncCommands.push,
      SyncCommands.pull,
      SyncCommands.sync,
      VerifyCommand.verify,
      LookCommands.status,
      LookCommands.pending,
      LookCommands.toApply,
      ConflictCommands.conflicts,
      ConflictCommands.resolve,
      ConflictCommands.history,
      ConflictCommands.undo,
      UploadCommands.uploads,
      UploadCommands.retry,
      QuarantineCommands.quarantine,
      SchemaCommands.schema,
      MissionCommands.mission,
      BundleCommands.bundle,
      ShellCommand.shell,
      FileCommands.files,
      DownloadCommand.download,
      LookCommands.log,
      NamesCommand.names,
    ],
    examples: [
      ExampleSpec("Join a space", "ferry init --server http://127.0.0.1:8080 --space demo"),
      ExampleSpec(
        "Make a table and sync it",
        "ferry sql \"CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)\" && ferry track notes"),
      ExampleSpec("Stay in step until interrupted", "ferry sync --watch"),
    ],
    exitCodes: ExitCodeNote.standard)

  /// Opens the replica named on the command line. Commands that only read do not create one.
  static func open(
    _ arguments: ParsedArguments, creating: Bool = false, transport: (any Transport)? = nil
  ) async throws -> Replica {
    let path = try arguments.string("replica")
    if !creating && !FileAccess.exists(path) {
      throw CommandFailure(
        "there is no replica at \(path)", why: "the file does not exist",
        next: "name another file with --replica, or create it with `ferry init` or `ferry sql`",
        code: "no_replica")
    }
    let replica = try await Replica.open(
      path, transport: try transport ?? SystemTransport(configuration: network(arguments)))
    guard let space = arguments.stringIfPresent("in") else { return replica }
    return try await replica.spaces.replica(of: space)
  }

  /// Opens the replica for a command that uses the server, and warns if the server's address
  /// exposes the token.
  static func openForServer(
    _ arguments: ParsedArguments, transport: (any Transport)? = nil
  ) async throws -> Replica {
    let replica = try await open(arguments, transport: transport)
    try warn(try await replica.warnings())
    return replica
  }

  static func warn(_ warnings: [String]) throws {
    try TextOutput.standardError.lines(warnings.map { "ferry: warning: \($0)" })
  }

  /// Returns the command line's settings for connections.
  static func network(_ arguments: ParsedArguments) throws -> TransportConfiguration {
    var configuration = TransportConfiguration()
    configuration.certificateAuthorities = try authorities(arguments)
    return configuration
  }

  /// Returns the absolute path of the command line's file of certificate authorities.
  static func authorities(_ arguments: ParsedArguments) throws -> String? {
    guard let path = arguments.stringIfPresent("ca"), !path.isEmpty else { return nil }
    let text = String(decoding: try FileAccess.contents(of: path), as: UTF8.self)
    guard text.has("-----BEGIN CERTIFICATE-----") else {
      throw CommandFailure(
        "\(path) contains no certificate", why: "--ca and FERRY_CA name a PEM file",
        next: "`openssl x509 -in FILE -out FILE.pem` converts a file to PEM", status: .usage,
        code: "bad_authorities")
    }
    return FileAccess.wholePath(path)
  }
}
