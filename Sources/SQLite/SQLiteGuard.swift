import CFerrySQLite
import Foundation

/// The effect of a statement, as SQLite reports it while the statement is prepared
/// (https://sqlite.org/c3ref/c_alter_table.html).
package struct SQLiteAction {
  /// The kinds of actions checked by a guard; all others are allowed.
  package enum Kind: Sendable {
    /// A row of `name` is inserted, updated or deleted.
    case write
    /// The table, view, index or trigger `name`, of the table `owner`, is made, altered or dropped.
    case make
    case alter
    case dropTable
    case dropTrigger
    case drop
    /// BEGIN, COMMIT or ROLLBACK: `name`.
    case transaction
    /// The function `name` is called.
    case call
  }

  package let kind: Kind
  package let name: String
  /// Of a trigger or an index: the table.
  package let owner: String
  /// `main`, `temp` or the name of an attached file; empty if SQLite reports none.
  package let database: String
  /// The trigger with this effect; `nil` if it is the statement's own.
  package let trigger: String?
}

/// Decides about the actions of statements. One guard stays with one connection. It is called only
/// while statements are prepared through ``SQLiteConnection/prepareNext(_:guarded:)``.
final class SQLiteGuard {
  let refusal: (SQLiteAction) -> String?
  var isAsked = false
  /// The reason to refuse the statement in preparation.
  var reason: String?
  /// The table of the main database dropped by the last prepared statement.
  var dropped: String?
  /// The table of the main database altered by the last prepared statement.
  var altered: String?
  /// The tables of the main database read and written by the last prepared statement.
  var tables = SQLiteStatement.Tables()
  /// True if the tables of all statements are recorded, and not only those of guarded ones.
  var notesAll = false
  /// True if users' triggers fire as they do by default; see
  /// ``SQLiteConnection/fireTriggersByDefault()``.
  var firesTriggersByDefault = false
  /// The users' triggers that the last prepared statement may fire, and views.
  var triggers = Set<String>()
  /// The tables of any file written by the last prepared statement, or by one of its triggers.
  var writtenTables = Set<String>()
  /// True after a statement was prepared that makes, alters or drops a table or a view of a file.
  var changesSchema = false

  init(_ refusal: @escaping (SQLiteAction) -> String?) { self.refusal = refusal }

  /// Records a table read or written by the statement.
  fileprivate func record(_ code: Int32, _ table: Text?, _ database: Text?) {
    let isRead = code == SQLITE_READ
    guard isRead || [SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE].contains(code), let table
    else { return }
    // SQLite names no database for a table of which no column is read.
    if let database, strcmp(database, "main") != 0 { return }
    // SQLite names a table once for each column.
    if isRead {
      tables.read.insert(String(cString: table))
    } else {
      tables.written.insert(String(cString: table))
    }
  }

  /// Records a user's trigger that the statement may fire, and a written table.
  fileprivate func recordTrigger(_ trigger: Text?, _ code: Int32, _ table: Text?) {
    guard firesTriggersByDefault else { return }
    if let trigger, strncmp(trigger, "ferry_", 6) != 0 {
      triggers.insert(String(cString: trigger))
    }
    if let table, [SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE].contains(code) {
      writtenTables.insert(String(cString: table))
    }
  }

  fileprivate func allows(_ action: SQLiteAction) -> Bool {
    if action.kind == .dropTable && action.database == "main" { dropped = action.name }
    if action.kind == .alter && action.database == "main" { altered = action.name }
    guard let why = refusal(action) else { return true }
    reason = reason ?? why
    return false
  }
}

extension SQLiteConnection {
  /// Makes `refusal` check the actions of guarded statements.
  ///
  /// The closure returns the reason to refuse an action, or `nil`. It must not use the connection.
  /// Set it once, before statements are prepared: SQLite prepares all of them again after it is
  /// set.
  package func guardStatements(_ refusal: @escaping (SQLiteAction) -> String?) {
    let keeper = SQLiteGuard(refusal)
    self.keeper = keeper
    sqlite3_set_authorizer(
      handle,
      { pointer, code, first, second, database, trigger in
        guard let pointer else { return SQLITE_OK }
        let keeper = Unmanaged<SQLiteGuard>.fromOpaque(pointer).takeUnretainedValue()
        if keeper.isAsked || keeper.notesAll { keeper.record(code, first, database) }
        keeper.recordTrigger(trigger, code, first)
        if changesSchema(code) { keeper.changesSchema = true }
        guard keeper.isAsked, let (kind, name, owner) = told(code, first, second) else {
          return SQLITE_OK
        }
        // Of ALTER TABLE the first argument is the file's name.
        let file = code == SQLITE_ALTER_TABLE ? first : database
        let action = SQLiteAction(
          kind: kind, name: text(name), owner: text(owner), database: text(file),
          trigger: trigger.map { String(cString: $0) })
        return keeper.allows(action) ? SQLITE_OK : SQLITE_DENY
      }, Unmanaged.passUnretained(keeper).toOpaque())
  }

  /// Makes every statement know the tables read and written, and not only guarded ones.
  package func recordTables() { keeper?.notesAll = true }

  /// The table of the main database dropped by the last prepared guarded statement, if any.
  package var droppedTable: String? { keeper?.dropped }

  /// The table of the main database altered by the last prepared guarded statement, if any.
  package var alteredTable: String? { keeper?.altered }

  /// Prepares as ``prepareNext(_:)`` does, for SQL of a user: the guard is asked.
  ///
  /// - Throws: `SQLITE_AUTH` with the guard's reason.
  package func prepareNext(
    _ script: inout Substring, guarded: Bool
  ) throws(SQLiteError) -> SQLiteStatement? {
    guard guarded, let keeper else { return try prepareNext(&script) }
    keeper.isAsked = true
    keeper.reason = nil
    keeper.dropped = nil
    keeper.altered = nil
    defer { keeper.isAsked = false }
    do {
      return try prepareNext(&script)
    } catch {
      guard let reason = keeper.reason else { throw error }
      throw SQLiteError(code: SQLITE_AUTH, message: reason, sql: error.sql)
    }
  }
}

/// Returns `true` if an action changes the content or the columns of a table or a view without
/// changing rows.
private func changesSchema(_ code: Int32) -> Bool {
  switch code {
  case SQLITE_CREATE_TABLE, SQLITE_CREATE_VIEW, SQLITE_CREATE_VTABLE, SQLITE_ALTER_TABLE,
    SQLITE_DROP_TABLE, SQLITE_DROP_VIEW, SQLITE_DROP_VTABLE:
    true
  default: false
  }
}

private typealias Text = UnsafePointer<CChar>

private func text(_ pointer: Text?) -> String { pointer.map { String(cString: $0) } ?? "" }

/// Returns the kind of an action, and the positions of name and owner among the arguments.
private func told(
  _ code: Int32, _ first: Text?, _ second: Text?
) -> (SQLiteAction.Kind, name: Text?, owner: Text?)? {
  switch code {
  case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE: (.write, first, nil)
  case SQLITE_CREATE_TABLE, SQLITE_CREATE_TEMP_TABLE, SQLITE_CREATE_VIEW, SQLITE_CREATE_TEMP_VIEW,
    SQLITE_CREATE_VTABLE:
    (.make, first, nil)
  case SQLITE_CREATE_INDEX, SQLITE_CREATE_TEMP_INDEX, SQLITE_CREATE_TRIGGER,
    SQLITE_CREATE_TEMP_TRIGGER:
    (.make, first, second)
  case SQLITE_ALTER_TABLE: (.alter, second, nil)
  case SQLITE_DROP_TABLE, SQLITE_DROP_TEMP_TABLE, SQLITE_DROP_VTABLE: (.dropTable, first, nil)
  case SQLITE_DROP_TRIGGER, SQLITE_DROP_TEMP_TRIGGER: (.dropTrigger, first, second)
  case SQLITE_DROP_INDEX, SQLITE_DROP_TEMP_INDEX: (.drop, first, second)
  case SQLITE_DROP_VIEW, SQLITE_DROP_TEMP_VIEW: (.drop, first, nil)
  case SQLITE_TRANSACTION: (.transaction, first, nil)
  case SQLITE_FUNCTION: (.call, second, nil)
  default: nil
  }
}
