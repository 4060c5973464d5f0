import Ferry
import FerryCommandLine
import FerryPlatform

/// `ferry sql`: statements in the replica.
enum SQLCommand {
  static let sql = CommandSpec(
    "sql", summary: "Run SQL on the replica; several statements are one transaction.",
    discussion: """
      Writes to tracked tables are recorded in the same transaction. Each statement with columns \
      prints its rows as a table. The number of changed rows, and "0 rows" for an empty result, \
      are printed on standard error.

      With --json one statement prints its rows as one object a line. Several statements print one \
      array on one line, with an object {"columns":[…],"rows":[…],"changes":N} for each statement.

      Without STATEMENTS on a terminal, ferry reads statements with line editing and a history. A \
      statement ends with a semicolon and may have several lines. Ctrl-C discards the input, Ctrl-D \
      leaves. .tables, .schema [TABLE], .help and .quit are commands. The history is kept in \
      $XDG_STATE_HOME/ferry/sql_history, or in ~/.local/state/ferry/sql_history; only you can read \
      it. Without a terminal, ferry reads standard input to its end.
      """,
    arguments: [
      ArgumentSpec(
        "STATEMENTS", help: "SQL; `-` reads it from standard input.", arity: .optional)
    ],
    examples: [
      ExampleSpec(
        "Two changes that are seen together or not at all",
        "ferry sql \"UPDATE a SET n = n - 1 WHERE id = 'x'; UPDATE b SET n = n + 1 WHERE id = 'y'\""
      ),
      ExampleSpec("Type statements", "ferry sql"),
    ]
  ) { arguments in
    let given = arguments.stringIfPresent("STATEMENTS")
    let asJSON = arguments.flag("json")
    if given == nil && Terminal.isInteractive {
      let replica = try await FerryCommand.open(arguments, creating: true)
      return try await SQLSession(replica: replica, asJSON: asJSON).run()
    }
    var sql = given ?? "-"
    if sql == "-" { sql = try FileAccess.standardInputText() }
    let replica = try await FerryCommand.open(arguments, creating: true)
    try SQLPresentation.print(
      try await SQLPresentation.results(of: sql, in: replica), asJSON: asJSON)
    return .done
  }
}

extension SQLPresentation {
  /// Runs the statements in one transaction, without the writers' lock if they only read.
  static func results(of sql: String, in replica: Replica) async throws -> [StatementResult] {
    let first = Substring(sql.trimmedASCII.utf8.prefix { (0x61...0x7A).contains($0 | 0x20) })
      .uppercasedASCII
    if ["SELECT", "VALUES", "EXPLAIN"].contains(first) {
      do {
        return try await replica.read { try $0.results(sql) }
      } catch ReplicaError.database(_, let code) where [8, 1].contains(code & 0xFF) {
        // It does write, or needs Ferry's functions; errors appear again below.
      }
    }
    return try await replica.write { try $0.results(sql) }
  }
}
