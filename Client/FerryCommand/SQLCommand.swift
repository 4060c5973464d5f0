import Ferry
import FerryCommandLine

extension FerryCommand {
  static let sql = CommandSpec(
    "sql", summary: "Run SQL on the replica; several statements are one transaction.",
    discussion: """
      Writes to tracked tables are recorded in the same transaction. Rows are printed as a table, \
      or with --json as one object a line.
      """,
    arguments: [ArgumentSpec("STATEMENTS", help: "SQL; `-` reads it from standard input.")],
    examples: [
      ExampleSpec(
        "Two changes that are seen together or not at all",
        "ferry sql \"UPDATE a SET n = n - 1 WHERE id = 'x'; UPDATE b SET n = n + 1 WHERE id = 'y'\""
      )
    ]
  ) { arguments in
    var sql = try arguments.string("STATEMENTS")
    if sql == "-" {
      sql = ""
      while let line = readLine(strippingNewline: false) { sql += line }
    }
    let replica = try await open(arguments, creating: true)
    let asJSON = arguments.flag("json")
    let result = try await run(sql, on: replica)
    if result.names.isEmpty {
      if !asJSON { try TextOutput.standardError.line("\(result.changes.counted("row")) changed") }
      return .done
    }
    try Presentation.print(
      result.names,
      result.rows.map { row in
        row.values.map { (Presentation.cell($0), Presentation.json($0)) }
      }, asJSON: asJSON)
    return .done
  }

  private struct SQLResult: Sendable {
    var names: [String] = []
    var rows: [Row] = []
    var changes = 0
  }

  /// Runs the statements without the writers' lock if they only read.
  private static func run(_ sql: String, on replica: Replica) async throws -> SQLResult {
    let collect: @Sendable (Database) throws -> SQLResult = { database in
      var result = SQLResult()
      try database.forEach(sql) { row in
        // The result is the rows of the last statement with rows.
        if row.names != result.names { result = SQLResult(names: row.names) }
        result.rows.append(row)
      }
      result.changes = database.changes
      return result
    }
    let first = sql.drop { $0.isWhitespace }.prefix { $0.isLetter }.uppercased()
    if ["SELECT", "VALUES", "EXPLAIN"].contains(first) {
      do {
        return try await replica.read(collect)
      } catch ReplicaError.database(_, let code) where [8, 1].contains(code & 0xFF) {
        // It does write, or needs Ferry's functions; errors appear again below.
      }
    }
    return try await replica.write(collect)
  }
}
