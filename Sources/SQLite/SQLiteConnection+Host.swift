import CFerrySQLite
import FerryPlatform

/// The state of a connection, as an extension of another program needs it.
extension SQLiteConnection {
  /// The absolute path of the main database; empty for one in memory.
  package var mainPath: String {
    sqlite3_db_filename(handle, "main").map { String(cString: $0) } ?? ""
  }

  /// True if the main database can only be read.
  package var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  /// True if the open transaction writes to the main database.
  package var isWritingMain: Bool { sqlite3_txn_state(handle, "main") == SQLITE_TXN_WRITE }

  /// True while a statement drops a table: SQLite deletes the table's rows first, and the rows that
  /// go with them (https://sqlite.org/foreignkeys.html#fk_schemacommands).
  package var isDroppingTable: Bool {
    var statement = sqlite3_next_stmt(handle, nil)
    while let current = statement {
      if sqlite3_stmt_busy(current) != 0, let sql = sqlite3_sql(current),
        Self.begins(String(cString: sql), with: "drop")
      {
        return true
      }
      statement = sqlite3_next_stmt(handle, current)
    }
    return false
  }

  /// Returns `true` if a statement begins with a word, after white space, empty statements and
  /// comments.
  static func begins(_ sql: String, with word: String) -> Bool {
    var rest = Array(sql.utf8)[...]
    while let length = ignoredLength(rest) { rest = rest.dropFirst(length) }
    return String(decoding: rest.prefix(word.utf8.count), as: UTF8.self).lowercasedASCII == word
  }

  /// Returns the length of a blank, a semicolon, a byte order mark or a comment at the beginning;
  /// `nil` if SQL begins with none.
  private static func ignoredLength(_ sql: ArraySlice<UInt8>) -> Int? {
    guard let first = sql.first else { return nil }
    if first == 0x20 || (0x09...0x0D).contains(first) || first == UInt8(ascii: ";") { return 1 }
    if sql.starts(with: [0xEF, 0xBB, 0xBF]) { return 3 }
    if sql.starts(with: "--".utf8) {
      return sql.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 - sql.startIndex } ?? sql.count
    }
    guard sql.starts(with: "/*".utf8) else { return nil }
    let body = sql.dropFirst(2)
    let end = zip(body.indices, body.indices.dropFirst()).first {
      body[$0] == UInt8(ascii: "*") && body[$1] == UInt8(ascii: "/")
    }
    return end.map { $0.1 + 1 - sql.startIndex } ?? sql.count
  }

  /// True if the open transaction has unresolved foreign key violations, with which a commit fails.
  package var hasOpenForeignKeys: Bool {
    var (open, highest): (Int32, Int32) = (0, 0)
    sqlite3_db_status(handle, SQLITE_DBSTATUS_DEFERRED_FKS, &open, &highest, 0)
    return open != 0
  }

  /// True if foreign keys are enforced.
  package var enforcesForeignKeys: Bool { ferry_setting(handle, SQLITE_DBCONFIG_ENABLE_FKEY) != 0 }

  /// True if triggers and views may call all functions
  /// (https://sqlite.org/pragma.html#pragma_trusted_schema).
  package var trustsSchema: Bool {
    ferry_setting(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA) != 0
  }
}

/// The copy of SQLite that loads an extension (https://sqlite.org/loadext.html).
package struct SQLiteHost {
  /// The result of an extension that stays in memory until the process ends.
  package static let loaded = SQLITE_OK | 1 << 8
  /// The result of an extension with a load failure.
  package static let failed = SQLITE_ERROR

  private let routines: UnsafeRawPointer

  /// - Parameter routines: the third argument of the extension's entry point.
  package init(routines: UnsafeRawPointer) { self.routines = routines }

  /// True if this program calls the same copy. Another copy must not get the host's connections.
  package var isShared: Bool { ferry_is_own_sqlite(routines) != 0 }

  /// Keeps this code in memory until the process ends. SQLite unloads a failed extension, but the
  /// connection may have its functions already, and the Swift runtime cannot be unloaded.
  package func stayInMemory() { ferry_keep_in_memory() }

  /// Returns a copy of a message, which the host frees.
  package func copy(of message: String) -> UnsafeMutablePointer<CChar>? {
    ferry_host_text(routines, message)
  }
}
