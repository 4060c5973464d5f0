import FerryProtocol
import FerrySQLite

/// The checks before another library's connection records a change.
struct HostChecks {
  let connection: SQLiteConnection

  /// Returns true if the main database of a connection is a replica. Reads the schema and changes
  /// nothing.
  static func isReplica(_ connection: SQLiteConnection, database: Name = "main") throws -> Bool {
    let query = "SELECT 1 FROM \(quoted(database)).sqlite_schema WHERE name = 'ferry_replica'"
    return try connection.prepare(query).exists()
  }

  /// Throws if this version of Ferry does not know the file's format.
  ///
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)``.
  func checkFormat() throws {
    let found = try connection.prepare("SELECT version FROM main.ferry_replica").first {
      $0.int64(0)
    }
    guard found == ReplicaSchema.version else {
      throw ReplicaError.cannotOpen(
        path: connection.mainPath,
        "another version of Ferry wrote this replica (format \(found ?? 0), this version supports "
          + "\(ReplicaSchema.version)); update Ferry")
    }
  }

  /// Throws if a temporary table hides one of Ferry's, or if a temporary trigger on a tracked table
  /// may write to one. SQLite fires temporary triggers first, so their writes would be recorded
  /// before the write that fired them.
  ///
  /// - Throws: ``CaptureRefusal``.
  func checkTemporarySchema() throws {
    let found = try connection.first(
      """
      SELECT type, name FROM temp.sqlite_schema AS s WHERE lower(substr(name, 1, 6)) = 'ferry_'
        OR type = 'trigger' AND EXISTS (SELECT 1 FROM main.ferry_tables AS t
          WHERE t.local = s.tbl_name COLLATE NOCASE)
        AND EXISTS (SELECT 1 FROM main.ferry_tables AS t
          WHERE instr(substr(lower(s.sql), instr(lower(s.sql), 'begin')), lower(t.local)))
      LIMIT 1
      """
    ) { (type: $0.text(0), name: $0.text(1)) }
    guard let found else { return }
    throw CaptureRefusal(
      found.type == "trigger"
        ? "ferry: the temporary trigger \(found.name) may write to a tracked table before the change "
          + "that fires it is recorded; drop it, or make it an ordinary trigger"
        : "ferry: the temporary \(found.type) \(found.name) hides one of Ferry's; drop it")
  }
}
