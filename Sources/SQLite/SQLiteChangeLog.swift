import CFerrySQLite
import FerryPlatform
import Foundation

/// The changes of a connection to the main database, some of them perhaps rolled back.
package struct SQLiteChanges: Sendable, Equatable {
  /// The most images of one table. With more, any row of the table may have changed.
  package static let imagesMax = 256

  /// The changed rows, by the names of their tables.
  package var rows: [String: SQLiteChangedRows] = [:]
  /// The tables that statements of users may have written to.
  package var written: Set<String> = []
  /// True after a statement that makes, alters or drops a table or a view was prepared.
  package var changesSchema = false
  /// True if ``rows`` has every changed row of every table with a place in the file. Otherwise rows
  /// are missing of WITHOUT ROWID tables, of a DELETE without WHERE, and those deleted by REPLACE.
  package var isComplete = false

  /// True if there are no changes.
  package var isEmpty: Bool { rows.isEmpty && written.isEmpty && !changesSchema }
}

/// The changed rows of a table.
package enum SQLiteChangedRows: Sendable, Equatable {
  /// Any rows.
  case all
  /// These rows, as they were before a change or are after it.
  case images([SQLiteRowImage])
}

/// A row before or after a change.
package struct SQLiteRowImage: Sendable, Equatable {
  /// The row's number; without a meaning in a WITHOUT ROWID table.
  package let number: Int64
  /// The values of all columns, in the table's order.
  package let values: [Value]

  package init(number: Int64, values: [Value]) { (self.number, self.values) = (number, values) }

  /// A value in its storage class. Texts are UTF-8 bytes.
  package enum Value: Sendable, Hashable {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
    /// A text or a blob too long to store.
    case long

    /// The most bytes of a text or a blob.
    static let bytesMax: Int32 = 1_024

    init(_ value: OpaquePointer) {
      let type = SQLiteType(code: sqlite3_value_type(value))
      switch type {
      case .null: self = .null
      case .integer: self = .integer(sqlite3_value_int64(value))
      case .real: self = .real(sqlite3_value_double(value))
      case .text, .blob:
        let start =
          type == .text
          ? UnsafeRawPointer(sqlite3_value_text(value)) : sqlite3_value_blob(value)
        let count = sqlite3_value_bytes(value)
        guard count <= Self.bytesMax else {
          self = .long
          return
        }
        let bytes = Array(
          UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
        self = type == .text ? .text(bytes) : .blob(bytes)
      }
    }
  }
}

/// Collects the changes of a connection.
final class SQLiteChangeLog {
  /// The changed rows of a table.
  private final class Entry {
    let table: String
    /// `nil`: any.
    var images: [SQLiteRowImage]?
    init(_ table: String, _ images: [SQLiteRowImage]?) {
      (self.table, self.images) = (table, images)
    }
  }

  private let keepsRows: (String) -> Bool
  private var entries: [String: Entry] = [:]
  private typealias Named = (name: [CChar], entry: Entry)
  /// The last two entries with the names of their tables: a statement mostly changes rows of one
  /// table, and a trigger of it those of another one.
  private var last: (newer: Named?, older: Named?)
  var written: Set<String> = []
  /// True if SQLite reports all changed rows.
  var isComplete = false

  init(keepsRows: @escaping (String) -> Bool) { self.keepsRows = keepsRows }

  /// Records a change of a row. `images` returns the row before and after it; `nil` if it is
  /// unknown.
  fileprivate func record(
    _ table: UnsafePointer<CChar>, _ images: () -> [SQLiteRowImage]? = { nil }
  ) {
    let entry = entry(of: table)
    guard let known = entry.images else { return }
    guard let new = images(), known.count + new.count <= SQLiteChanges.imagesMax else {
      entry.images = nil
      return
    }
    entry.images?.append(contentsOf: new)
  }

  private func entry(of table: UnsafePointer<CChar>) -> Entry {
    if let newer = last.newer, strcmp(table, newer.name) == 0 { return newer.entry }
    if let older = last.older, strcmp(table, older.name) == 0 { return older.entry }
    let name = String(cString: table)
    let entry = entries[name] ?? Entry(name, isComplete && keepsRows(name) ? [] : nil)
    // Names equal for String share an entry, and their tables differ in their columns.
    if !entry.table.isSame(as: name) { entry.images = nil }
    entries[name] = entry
    let bytes = Array(UnsafeBufferPointer(start: table, count: strlen(table) + 1))
    last = ((bytes, entry), last.newer)
    return entry
  }

  fileprivate func drain() -> SQLiteChanges {
    defer {
      entries = [:]
      last = (nil, nil)
      written = []
    }
    return SQLiteChanges(
      rows: entries.mapValues { $0.images.map { .images($0) } ?? .all }, written: written,
      isComplete: isComplete)
  }
}

extension SQLiteConnection {
  /// Begins to collect the changes of the main database.
  ///
  /// Call it before statements are prepared. If SQLite has the preupdate hook, it does not empty a
  /// table at once any more, but row by row.
  ///
  /// - Parameters:
  ///   - usesRowHook: whether to use the preupdate hook, if SQLite has it. The update hook does not
  ///     report all rows (https://sqlite.org/c3ref/update_hook.html).
  ///   - keepsRows: returns whether the content of a table's changed rows is of interest. Called at
  ///     the table's first change; it must not use the connection.
  package func logChanges(
    usesRowHook: Bool = true, keepsRows: @escaping (_ table: String) -> Bool = { _ in false }
  ) {
    let log = SQLiteChangeLog(keepsRows: keepsRows)
    changeLog = log
    let object = Unmanaged.passUnretained(log).toOpaque()
    if usesRowHook { log.isComplete = ferry_row_hook(handle, recordRow, object) != 0 }
    if log.isComplete { return }
    sqlite3_update_hook(
      handle,
      { pointer, _, database, table, _ in
        guard let pointer, let table, let database, strcmp(database, "main") == 0 else { return }
        Unmanaged<SQLiteChangeLog>.fromOpaque(pointer)._withUnsafeGuaranteedRef { $0.record(table) }
      }, object)
  }

  /// Adds tables to which a statement of a user may write.
  package func recordChanges(of tables: Set<String>) {
    if !tables.isEmpty { changeLog?.written.formUnion(tables) }
  }

  /// Returns the changes since the last call, some of them perhaps in a transaction that was rolled
  /// back.
  package func drainChanges() -> SQLiteChanges {
    var changes = changeLog?.drain() ?? SQLiteChanges()
    changes.changesSchema = keeper?.changesSchema ?? false
    keeper?.changesSchema = false
    return changes
  }

  /// Returns a number that changes when another connection has changed the file
  /// (https://sqlite.org/pragma.html#pragma_data_version).
  package func dataVersion() throws -> Int64 {
    try first("PRAGMA data_version") { $0.int64(0) } ?? 0
  }

  /// Returns the declared type of a table's column by which SQLite converts values. ANY converts
  /// none in a strict table (https://sqlite.org/stricttables.html), and is a name of NUMERIC in
  /// others.
  package func type(_ declared: String, in table: String) throws -> String {
    guard declared.utf8.map({ $0 & 0xDF }) == Array("ANY".utf8) else { return declared }
    let isStrict = try exists(
      "SELECT 1 FROM pragma_table_list(?) WHERE schema = 'main' AND strict = 1", table)
    return isStrict ? "" : declared
  }

  /// Returns the name of the order of a column's texts; `nil` if the main database has no such
  /// column.
  package func collation(of column: String, in table: String) -> String? {
    var name: UnsafePointer<CChar>?
    let code = sqlite3_table_column_metadata(
      handle, "main", table, column, nil, &name, nil, nil, nil)
    return code == SQLITE_OK ? name.map { String(cString: $0) } : nil
  }
}

/// Records a row right before the change.
private func recordRow(
  _ pointer: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ operation: Int32,
  _ database: UnsafePointer<CChar>?, _ table: UnsafePointer<CChar>?, _ before: Int64,
  _ after: Int64
) {
  guard let pointer, let connection, let table, let database, strcmp(database, "main") == 0 else {
    return
  }
  Unmanaged<SQLiteChangeLog>.fromOpaque(pointer)._withUnsafeGuaranteedRef { log in
    log.record(table) {
      var images: [SQLiteRowImage] = []
      if operation != SQLITE_INSERT {
        guard let values = values(connection, after: false) else { return nil }
        images.append(SQLiteRowImage(number: before, values: values))
      }
      if operation != SQLITE_DELETE {
        guard let values = values(connection, after: true) else { return nil }
        images.append(SQLiteRowImage(number: after, values: values))
      }
      return images
    }
  }
}

/// Returns the values of the row right before the change; `nil` if SQLite cannot.
private func values(_ connection: OpaquePointer, after: Bool) -> [SQLiteRowImage.Value]? {
  let count = ferry_row_count(connection)
  var values: [SQLiteRowImage.Value] = []
  values.reserveCapacity(Int(count))
  for column in 0..<count {
    guard let value = ferry_row_value(connection, column, after ? 1 : 0) else { return nil }
    values.append(SQLiteRowImage.Value(value))
  }
  return values
}
