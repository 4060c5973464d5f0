import FerryCommandLine
import Synchronization

/// A small program with everything a declaration can hold.
enum Sample {
  static func ferry(
    run: @escaping CommandSpec.Action = { _ in .done }
  ) -> CommandSpec {
    CommandSpec(
      "ferry", summary: "Keep a SQLite file in step with its space.",
      discussion: """
        Edits are recorded in the replica's own transaction, so nothing is lost while
        the server is away.

          ferry init, then ferry sync
        """,
      version: "1.2.3",
      options: [
        OptionSpec(
          "replica", short: "r", value: "FILE", help: "The replica's file.", kind: .file,
          default: "./ferry.db", environment: "FERRY_REPLICA"),
        OptionSpec("trace", value: "WORD", help: "Not for you.", hidden: true),
      ],
      flags: [
        FlagSpec("json", help: "Answer in JSON.", environment: "FERRY_JSON"),
        FlagSpec("verbose", short: "v", help: "Say more; twice for even more."),
      ],
      subcommands: [
        initCommand(run), importCommand(run), trackCommand(run), logCommand(run), token(run),
      ],
      examples: [ExampleSpec("Synchronise once", "ferry sync")],
      exitCodes: ExitCodeNote.standard)
  }

  private static func initCommand(_ run: @escaping CommandSpec.Action) -> CommandSpec {
    CommandSpec(
      "init", summary: "Make the file a replica.",
      options: [
        OptionSpec(
          "server", value: "URL", help: "Where the server is.", environment: "FERRY_SERVER",
          required: true),
        OptionSpec("space", short: "s", value: "NAME", help: "The space.", required: true),
        OptionSpec(
          "label", value: "WORD", help: "Any number of words.", environment: "FERRY_LABELS",
          repeated: true),
      ],
      run: run)
  }

  private static func importCommand(_ run: @escaping CommandSpec.Action) -> CommandSpec {
    CommandSpec(
      "import", summary: "Read records from a file.",
      arguments: [
        ArgumentSpec("table", help: "The table to fill."),
        ArgumentSpec("file", help: "JSON or CSV.", kind: .file, arity: .optional),
      ],
      run: run)
  }

  private static func trackCommand(_ run: @escaping CommandSpec.Action) -> CommandSpec {
    CommandSpec(
      "track", summary: "Record the edits of tables.",
      arguments: [
        ArgumentSpec(
          "table", help: "Tables to record.", kind: .listed("tables"), arity: .oneOrMore)
      ], run: run)
  }

  private static func logCommand(_ run: @escaping CommandSpec.Action) -> CommandSpec {
    CommandSpec(
      "log", summary: "Show what happened.",
      options: [
        OptionSpec(
          "limit", short: "n", value: "COUNT", help: "Entries at most.", kind: .integer(1...1000),
          default: "20", environment: "FERRY_LIMIT"),
        OptionSpec("since", value: "TIME", help: "How far back.", kind: .duration),
        OptionSpec("bytes", value: "SIZE", help: "How much at most.", kind: .byteSize),
        OptionSpec("offset", value: "COUNT", help: "Where to begin."),
        OptionSpec("into", value: "DIR", help: "Where to write.", kind: .directory),
      ],
      arguments: [ArgumentSpec("table", help: "Only these.", arity: .zeroOrMore)], run: run)
  }

  private static func token(_ run: @escaping CommandSpec.Action) -> CommandSpec {
    CommandSpec(
      "token", summary: "Manage access.",
      subcommands: [
        CommandSpec(
          "create", summary: "Make a token.",
          options: [
            OptionSpec(
              "role", value: "ROLE", help: "What it may do.",
              kind: .choice(["reader", "writer", "admin"]), default: "reader")
          ],
          run: run),
        CommandSpec("secret", summary: "Not shown.", hidden: true, run: run),
      ])
  }
}

/// Everything written to an output.
final class Collected: Sendable {
  private let pieces = Mutex<[String]>([])

  var output: TextOutput { TextOutput { [self] text in pieces.withLock { $0.append(text) } } }
  var all: [String] { pieces.withLock { $0 } }
  var text: String { all.joined() }
}
