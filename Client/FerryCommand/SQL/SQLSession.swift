import Ferry
import FerryCommandLine
import FerryPlatform

/// `ferry sql` on a terminal: reads lines, runs statements and prints their results.
struct SQLSession {
  private static let help = """
    STATEMENT;       runs SQL; it may have several lines
    .tables          lists the tables, and marks the tracked ones
    .schema [TABLE]  shows the SQL of one table, or of all
    .help            shows this list
    .quit            leaves, as Ctrl-D does
    Ctrl-C discards the input.
    """

  let replica: Replica
  let asJSON: Bool

  /// Runs until the user leaves. A failed statement does not end the session.
  func run() async throws -> ExitStatus {
    let file = HistoryFile.ofUser(named: "sql_history")
    let editor = try LineEditor(
      program: "ferry", history: file?.entries(last: LineEditor.entriesMax) ?? [])
    try TextOutput.standardError.line(
      "\(replica.path.escapedForTerminal): end a statement with a semicolon; .help lists commands")
    var input = SQLInput()
    while true {
      let step: SQLInput.Step
      switch await editor.read(prompt: input.prompt) {
      case .cancelled:
        input.cancel()
        continue
      case .end:
        try TextOutput.standardOutput.line("")
        try Task.checkCancellation()
        return .done
      case .line(let line): step = input.append(line) { Database.isComplete($0) }
      }
      if case .run(let sql) = step {
        file?.append(sql)
        await editor.remember(sql)
      }
      guard try await perform(step) else { return .done }
    }
  }

  /// Performs a step. Returns true if the session continues.
  private func perform(_ step: SQLInput.Step) async throws -> Bool {
    do {
      switch step {
      case .read: break
      case .run(let sql):
        let results = try await SQLPresentation.results(of: sql, in: replica)
        if !results.isEmpty { try SQLPresentation.print(results, asJSON: asJSON) }
      case .perform(.help): try TextOutput.standardOutput.line(Self.help)
      case .perform(.leave): return false
      case .perform(.tables): try await printTables()
      case .perform(.schema(let table)): try await printSchema(of: table)
      case .reject(let reason): try TextOutput.standardError.line(reason.escapedForTerminal)
      }
    } catch let error as OutputError {
      throw error
    } catch {
      try Task.checkCancellation()
      try TextOutput.standardError.line(
        CommandFailure(error, command: "the statement").text(program: "ferry"))
    }
    return true
  }

  private func printTables() async throws {
    let tracked = Set(try await replica.trackedLocals().map(\.folded))
    let rows = try await SchemaEntry.all(in: replica)
      .filter { $0.kind == "table" || $0.kind == "view" }
      .map { entry in
        let isTracked = tracked.contains(Name(entry.name).folded)
        return [
          (entry.name, JSONText.string(entry.name)), (entry.kind, .string(entry.kind)),
          (isTracked ? "yes" : "", .bool(isTracked)),
        ]
      }
    try Presentation.print(["name", "kind", "tracked"], rows, asJSON: asJSON)
  }

  private func printSchema(of table: String?) async throws {
    let wanted = table.map { Name($0).folded }
    let entries = try await SchemaEntry.all(in: replica)
      .filter { wanted == nil || Name($0.table).folded == wanted }
    if let table, entries.isEmpty {
      throw ReplicaError.notFound(.table(table))
    }
    try TextOutput.standardOutput.lines(
      entries.compactMap { entry in
        entry.sql.map { sql in
          sql.parts(at: "\n")
            .map { String($0).escapedForTerminal }.joined(separator: "\n") + ";"
        }
      })
  }
}

/// An entry of the user's in the file's schema.
struct SchemaEntry: Sendable {
  /// table, view, index or trigger.
  let kind: String
  let name: String
  /// The table of the entry.
  let table: String
  /// The entry's CREATE statement; an automatic index has none.
  let sql: String?
}

extension SchemaEntry {
  /// Returns the user's tables, views, indexes and triggers in the order of their creation, without
  /// those of Ferry and of SQLite.
  static func all(in replica: Replica) async throws -> [SchemaEntry] {
    try await replica.read { database in
      try database.query(
        """
        SELECT type, name, tbl_name, sql FROM sqlite_schema
        WHERE name NOT LIKE 'ferry\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        ORDER BY rowid
        """
      ).map { row in
        func text(_ column: String) -> String? {
          if case .text(let text) = row[column] { text } else { nil }
        }
        return SchemaEntry(
          kind: text("type") ?? "", name: text("name") ?? "", table: text("tbl_name") ?? "",
          sql: text("sql"))
      }
    }
  }

  /// Returns the names of the user's existing tables in the file, tracked or not.
  static func tables(in replica: Replica) async throws -> [Name] {
    try await all(in: replica).filter { $0.kind == "table" }.map { Name($0.name) }
  }
}
