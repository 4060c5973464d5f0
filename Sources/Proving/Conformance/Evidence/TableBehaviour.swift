import FerryProtocol
import FerrySQLite

/// The effects of tables' definitions in an empty database: the values accepted by each column, and
/// the types of their stored forms.
package enum TableBehaviour {
  /// Returns the effects of ``Workload/oddTables`` in a file, in a fixed order.
  package static func probe(_ connection: SQLiteConnection) throws -> [String] {
    let statements = try Workload.oddTables.map { table in
      try connection.first(
        "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", table
      ) { $0.text(0) } ?? ""
    }
    return try probe(statements)
  }

  /// Returns the effects of the application's statements.
  package static func expected() throws -> [String] {
    try probe(Workload.oddSchema(isRespelled: false))
  }

  private static func probe(_ statements: [String]) throws -> [String] {
    let memory = try SQLiteConnection(path: SQLiteConnection.memory)
    var found: [String] = []
    for (table, statement) in zip(Workload.oddTables, statements) {
      do { try memory.execute(statement) } catch { found.append("\(table): \(error)") }
    }
    try memory.execute("PRAGMA foreign_keys = OFF")
    for table in Workload.oddTables { found += try cells(of: table, memory) }
    try memory.execute("PRAGMA foreign_keys = ON")
    for sequence in sequences { found.append(try outcome(of: sequence, memory)) }
    return found
  }

  private static let literals = [
    "'007'", "'9007199254740993.5'", "X'3037'", "1.0", "NULL", "'text'", "9223372036854775807",
  ]

  /// Statements that succeed or fail together, each list with a query at the end.
  private static let sequences = [
    ["SELECT rowid FROM Pairs", "SELECT 1"], ["SELECT rowid FROM Typed", "SELECT 1"],
    [
      "BEGIN", "INSERT INTO Rights(id, \"Left\") VALUES ('r', 'l')",
      "INSERT INTO Lefts(id, \"Right\") VALUES ('l', 'r')", "COMMIT", "SELECT count(*) FROM Lefts",
    ],
    [
      "INSERT INTO Counted(id, \"Group\") VALUES (70, '')", "DELETE FROM Counted",
      "INSERT INTO Counted DEFAULT VALUES", "SELECT id || \"Group\" FROM Counted",
    ],
  ]

  /// Writes each literal to each column alone. Returns the stored forms, or `refused`.
  private static func cells(of table: Name, _ memory: SQLiteConnection) throws -> [String] {
    let columns = try memory.rows("SELECT name, pk FROM pragma_table_info(?)", table) {
      (name: $0.name(0), isKey: $0.int64(1) > 0)
    }
    let keys = columns.filter(\.isKey).map { quoted($0.name) }
    var found: [String] = []
    for column in columns.filter({ !$0.isKey }).map({ quoted($0.name) }) {
      for literal in literals {
        let names = (keys + [column]).joined(separator: ", ")
        let values = (keys.map { _ in "1" } + [literal]).joined(separator: ", ")
        let form = try outcome(
          of: [
            "DELETE FROM \(quoted(table))",
            "INSERT INTO \(quoted(table))(\(names)) VALUES (\(values))",
            "SELECT typeof(\(column)) || ' ' || quote(\(column)) FROM \(quoted(table))",
          ], memory)
        found.append("\(table).\(column.lowercased()) \(literal): \(form)")
      }
    }
    try memory.execute("DELETE FROM \(quoted(table))")
    return found
  }

  private static func outcome(
    of statements: [String], _ memory: SQLiteConnection
  ) throws -> String {
    var last = "refused"
    do {
      for statement in statements {
        last = try memory.first(statement) { $0.text(0) } ?? "nothing"
      }
      return last
    } catch {
      if memory.isInTransaction { try memory.execute("ROLLBACK") }
      return "refused"
    }
  }
}
