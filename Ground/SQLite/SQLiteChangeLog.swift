import CFerrySQLite
import Foundation

/// Collects the names of tables whose rows a connection changes.
final class SQLiteChangeLog {
  fileprivate(set) var tables: Set<String> = []
  /// The names of the last two: a statement mostly changes rows of one table, and its trigger those of
  /// another one.
  private var last: (newer: [CChar], older: [CChar]) = ([0], [0])

  fileprivate func note(_ table: UnsafePointer<CChar>) {
    if strcmp(table, last.newer) == 0 || strcmp(table, last.older) == 0 { return }
    let name = Array(UnsafeBufferPointer(start: table, count: strlen(table) + 1))
    last = (name, last.newer)
    tables.insert(String(cString: table))
  }

  fileprivate func take() -> Set<String> {
    defer {
      tables = []
      last = ([0], [0])
    }
    return tables
  }
}

extension SQLiteConnection {
  /// Begins to collect the names of changed tables of the main database
  /// (https://sqlite.org/c3ref/update_hook.html). SQLite does not report WITHOUT ROWID tables.
  package func logChanges() {
    let log = SQLiteChangeLog()
    changeLog = log
    sqlite3_update_hook(
      handle,
      { pointer, _, database, table, _ in
        guard let pointer, let table, let database, strcmp(database, "main") == 0 else { return }
        Unmanaged<SQLiteChangeLog>.fromOpaque(pointer).takeUnretainedValue().note(table)
      }, Unmanaged.passUnretained(log).toOpaque())
  }

  /// Adds tables to those that have changed.
  package func noteChanges(of tables: Set<String>) {
    if !tables.isEmpty { changeLog?.tables.formUnion(tables) }
  }

  /// Returns the tables that have changed since the last call, some of them perhaps in a transaction
  /// that was rolled back.
  package func takeChanges() -> Set<String> { changeLog?.take() ?? [] }

  /// Returns a number that changes when another connection has changed the file
  /// (https://sqlite.org/pragma.html#pragma_data_version).
  package func dataVersion() throws -> Int64 {
    try first("PRAGMA data_version") { $0.int64(0) } ?? 0
  }
}
