import CFerrySQLite
import FerryPlatform

/// The storage class of a column or argument.
package enum SQLiteType: Sendable {
  case null
  case integer
  case real
  case text
  case blob

  init(code: Int32) {
    self =
      switch code {
      case SQLITE_INTEGER: .integer
      case SQLITE_FLOAT: .real
      case SQLITE_TEXT: .text
      case SQLITE_BLOB: .blob
      default: .null
      }
  }
}

/// A prepared statement. Parameters count from 1, columns from 0, as in SQLite.
@usableFromInline
package final class SQLiteStatement {
  private let handle: OpaquePointer
  // Keeps the connection open while the statement lives. A cached statement is owned by its
  // connection, hence unowned there; both live on one thread.
  private unowned let connection: SQLiteConnection

  /// Names of tables of the main database, as the schema writes them.
  package struct Tables: Sendable, Equatable {
    /// The tables whose content the statement reads, also through views.
    package var read: Set<String> = []
    /// The tables whose rows the statement or a trigger of it writes. Foreign keys may write to
    /// others.
    package var written: Set<String> = []
  }

  /// The number of the statement's parameters.
  package let parameterCount: Int
  /// The tables read and written by the statement, if it is guarded; see
  /// ``SQLiteConnection/recordTables()``.
  package let tables: Tables
  /// The last complete run of a kept statement, as recorded by the caller: the hash of the values,
  /// and the number of rows. The next run reserves memory for as many.
  package var lastRun: (values: Int, rows: Int)?

  init(handle: OpaquePointer, connection: SQLiteConnection, tables: Tables) {
    self.handle = handle
    self.connection = connection
    self.tables = tables
    parameterCount = Int(sqlite3_bind_parameter_count(handle))
  }

  deinit { sqlite3_finalize(handle) }

  // MARK: Parameters

  /// The parameters, to bind from the first one.
  @usableFromInline var parameters: SQLiteParameters { SQLiteParameters(of: handle) }

  @usableFromInline
  func check(_ parameters: SQLiteParameters) {
    precondition(
      parameters.count == parameterCount,
      "\(parameters.count) values for \(parameterCount) parameters")
  }

  // MARK: Running

  /// Returns `true` while there is a row; resets by itself after the last one or on failure.
  @usableFromInline
  package func step() throws(SQLiteError) -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    defer { sqlite3_reset(handle) }
    guard code == SQLITE_DONE else {
      throw connection.error(code, sql: sqlite3_sql(handle).map { String(cString: $0) })
    }
    return false
  }

  /// Runs to the end with the bound parameters. Returns the number of changed rows.
  @usableFromInline
  func finish() throws(SQLiteError) -> Int {
    while try step() {}
    return connection.changes
  }

  /// Makes the statement ready to run again; the bindings are gone.
  @usableFromInline
  package func reset() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }

  // MARK: Columns

  package var columnCount: Int32 { sqlite3_column_count(handle) }

  package func columnName(_ index: Int32) -> String {
    String(cString: sqlite3_column_name(handle, index))
  }

  package func type(_ index: Int32) -> SQLiteType {
    SQLiteType(code: sqlite3_column_type(handle, index))
  }

  package func isNull(_ index: Int32) -> Bool {
    sqlite3_column_type(handle, index) == SQLITE_NULL
  }

  package func int64(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }

  package func double(_ index: Int32) -> Double { sqlite3_column_double(handle, index) }

  package func text(_ index: Int32) -> String {
    String(decoding: textBytes(index), as: UTF8.self)
  }

  package func optionalText(_ index: Int32) -> String? { isNull(index) ? nil : text(index) }

  package func optionalInt64(_ index: Int32) -> Int64? { isNull(index) ? nil : int64(index) }

  /// Returns the text's bytes, valid until the next step or reset.
  package func textBytes(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_text(handle, index)
    return UnsafeRawBufferPointer(
      start: start, count: Int(sqlite3_column_bytes(handle, index)))
  }

  /// Returns the blob's bytes, valid until the next step or reset.
  package func blobBytes(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, index)
    return UnsafeRawBufferPointer(
      start: start, count: Int(sqlite3_column_bytes(handle, index)))
  }

  package func blob(_ index: Int32) -> [UInt8] { Array(blobBytes(index)) }

  /// The columns of the current row, without a reference to count.
  package var columns: SQLiteColumns { SQLiteColumns(handle) }

  /// True for a statement that changes tables, indexes or triggers.
  package var changesSchema: Bool { ["ALTER", "DROP", "CREATE"].contains(firstWord) }

  /// True if the statement is an ALTER TABLE.
  package var altersTable: Bool { firstWord == "ALTER" }

  private var firstWord: String {
    guard let sql = sqlite3_sql(handle) else { return "" }
    let text = String(cString: sql).utf8.drop { Self.isBetweenWords($0) }
    return Substring(text.prefix { (0x61...0x7A).contains($0 | 0x20) }).uppercasedASCII
  }

  /// True if the statement is an ALTER TABLE … ADD COLUMN for sure. One with a table's name in
  /// quotes or with a comment is not looked into.
  package var addsColumn: Bool {
    guard let sql = sqlite3_sql(handle) else { return false }
    let words = String(cString: sql).utf8.split(maxSplits: 4) { Self.isBetweenWords($0) }
      .map { Substring($0).uppercasedASCII }
    return words.count > 3 && words[0] == "ALTER" && words[1] == "TABLE" && words[3] == "ADD"
      && words[2].utf8.allSatisfy { byte in
        (0x41...0x5A).contains(byte) || (0x30...0x39).contains(byte) || byte >= 0x80
          || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
      }
  }

  /// Returns `true` if SQLite ignores a byte between words: SQLite's white space, or a semicolon.
  private static func isBetweenWords(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte) || byte == UInt8(ascii: ";")
  }

  /// The number of new preparations by SQLite, because the schema or a setting had changed.
  package var preparationCount: Int {
    Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_REPREPARE, 0))
  }

  /// The number of runs.
  package var runCount: Int { Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_RUN, 0)) }

  /// True if the statement only reads (https://sqlite.org/c3ref/stmt_readonly.html).
  package var isReadOnly: Bool { sqlite3_stmt_readonly(handle) != 0 }
}

/// The columns of a statement's current row. Valid as long as the statement is.
///
/// Each call looks a column up once. SQLite permits this on one thread
/// (https://sqlite.org/c3ref/column_blob.html).
package struct SQLiteColumns {
  private let handle: OpaquePointer

  fileprivate init(_ handle: OpaquePointer) { self.handle = handle }

  package func isNull(_ index: Int32) -> Bool {
    sqlite3_column_type(handle, index) == SQLITE_NULL
  }

  /// Returns the column's integer; `nil` for a value of another storage class.
  package func integer(_ index: Int32) -> Int64? {
    let value = sqlite3_column_value(handle, index)
    return sqlite3_value_type(value) == SQLITE_INTEGER ? sqlite3_value_int64(value) : nil
  }

  /// Returns the column's real; `nil` for a value of another storage class.
  package func real(_ index: Int32) -> Double? {
    let value = sqlite3_column_value(handle, index)
    return sqlite3_value_type(value) == SQLITE_FLOAT ? sqlite3_value_double(value) : nil
  }

  /// Returns the column's text; `nil` for a value of another storage class.
  package func text(_ index: Int32) -> String? {
    let value = sqlite3_column_value(handle, index)
    guard sqlite3_value_type(value) == SQLITE_TEXT else { return nil }
    let start = sqlite3_value_text(value)
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
    return String(decoding: bytes, as: UTF8.self)
  }
}
