import CommandLineKit
import Ferry

/// The command `ferry`: a device on the command line.
enum FerryCommand {
  /// Ferry's version, as `ferry --version` prints it.
  static let version = "0.1.0"

  static let specification = CommandSpec(
    "ferry",
    summary: "Keep a SQLite file in step with a Ferry server.",
    discussion: """
      A replica is an ordinary SQLite file. Track its tables, write plain SQL with `ferry sql` (or \
      from your program with the Ferry library), and sync when there is a network. What is written \
      offline is recorded in the same transaction and is sent later, exactly once; what others did \
      appears all at once. Where two devices wrote the same column, the later write stays, and the \
      other value is kept: see `ferry log`.

      Other SQLite programs may read the file. Writing to a tracked table from them fails with "no \
      such function: ferry_insert", so that no change is ever lost to the sync unnoticed.
      """,
    version: version,
    options: [
      OptionSpec(
        "replica", short: "r", value: "FILE", help: "The replica's SQLite file.", kind: .file,
        default: "./ferry.db", environment: "FERRY_REPLICA")
    ],
    flags: [
      FlagSpec("json", help: "Answer in JSON, one object a line.", environment: "FERRY_JSON")
    ],
    subcommands: [
      initialise, track, untrack, importing, sql, batch, push, pull, sync, verify, status, pending,
      toApply, conflicts, resolve, history, undo, uploads, retry, quarantine, schema, mission, log,
    ],
    examples: [
      ExampleSpec("Join a space", "ferry init --server http://127.0.0.1:8080 --space demo"),
      ExampleSpec(
        "Make a table and sync it",
        "ferry sql \"CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)\" && ferry track notes"),
      ExampleSpec("Stay in step until interrupted", "ferry sync --watch"),
    ],
    exitCodes: ExitCodeNote.standard)

  /// Opens the replica that the command line names. Commands that only look do not make one.
  static func open(
    _ arguments: ParsedArguments, creating: Bool = false,
    transport: any Transport = CurlTransport()
  ) async throws -> Replica {
    let path = try arguments.string("replica")
    if !creating && !FileAccess.exists(path) {
      throw CommandFailure(
        "there is no replica at \(path)", why: "the file does not exist",
        next: "name another with --replica FILE, or make it with `ferry init` or `ferry sql`",
        code: "no_replica")
    }
    return try await Replica.open(path, transport: transport)
  }
}
