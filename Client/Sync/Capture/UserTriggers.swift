import FerryProtocol
import FerrySQLite

/// The user's triggers, also temporary ones, and other causes of writes to further rows.
struct UserTriggers {
  let connection: SQLiteConnection

  /// Returns true if a write to one row may write to another one. This is so if the user has
  /// triggers, or if a table's definition contains UPDATE (as foreign keys with ON UPDATE do) or
  /// REPLACE.
  func needGuards() throws -> Bool {
    try exist(
      where: "type = 'trigger' OR instr(lower(sql), 'update') OR instr(lower(sql), 'replace')")
  }

  /// Returns true if a trigger may write to other rows when a row of a table is deleted.
  func areFired(byDeletesIn table: TableSchema) throws -> Bool {
    try exist(
      where: "type = 'trigger' AND instr(lower(sql), 'delete') "
        + "AND tbl_name = \(quoted(literal: table.local.text)) COLLATE NOCASE")
  }

  private func exist(where condition: String) throws -> Bool {
    func isIn(_ schema: String) throws -> Bool {
      try connection.exists(
        """
        SELECT 1 FROM \(schema) WHERE lower(substr(name, 1, 6)) <> 'ferry_' AND (\(condition)) LIMIT 1
        """)
    }
    if try isIn("sqlite_schema") { return true }
    // Queried only if the schema exists: the query would create it.
    let databases = try connection.rows("PRAGMA database_list") { $0.text(1) }
    return try databases.contains(where: { $0 == "temp" }) && isIn("sqlite_temp_schema")
  }
}
