import Ferry
import FerryCommandLine

/// The presentation of the results of statements.
enum SQLPresentation {
  /// Prints the results: tables or JSON on standard output, numbers of rows on standard error.
  static func print(_ results: [StatementResult], asJSON: Bool) throws {
    if asJSON { return try printJSON(results) }
    var isFirst = true
    for result in results where !result.names.isEmpty {
      if !isFirst { try TextOutput.standardOutput.line("") }
      isFirst = false
      try Presentation.print(result.names, cells(result), asJSON: false)
      if result.rows.isEmpty { try TextOutput.standardError.line("0 rows") }
    }
    let writes = results.filter(\.names.isEmpty)
    guard !writes.isEmpty || results.isEmpty else { return }
    let changes = writes.reduce(0) { $0 + $1.changes }
    try TextOutput.standardError.line("\(changes.counted("row")) changed")
  }

  /// Prints the rows of a single statement, or one array with the results of several.
  private static func printJSON(_ results: [StatementResult]) throws {
    if results.count > 1 {
      return try TextOutput.standardOutput.line(JSONText.array(results.map(json)).text)
    }
    for result in results { try Presentation.print(result.names, cells(result), asJSON: true) }
  }

  /// Returns the object for one of several results.
  static func json(_ result: StatementResult) -> JSONText {
    .object([
      ("columns", .array(result.names.map { .string($0) })),
      (
        "rows",
        .array(
          result.rows.map { row in
            .object(zip(row.names, row.values).map { ($0, Presentation.json($1)) })
          })
      ),
      ("changes", .int(result.changes)),
    ])
  }

  private static func cells(_ result: StatementResult) -> [[(cell: String, json: JSONText)]] {
    result.rows.map { row in row.values.map { (Presentation.cell($0), Presentation.json($0)) } }
  }
}
