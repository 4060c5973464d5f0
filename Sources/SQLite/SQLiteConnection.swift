import CFerrySQLite
import Foundation

/// One connection to a SQLite file. Not `Sendable`: it stays on one thread, or behind one lock.
@usableFromInline
package final class SQLiteConnection {
  /// The mode of opening the file.
  package enum Mode: Sendable {
    case readOnly
    case readWrite
    case create
  }

  /// The lock mode of a transaction (https://sqlite.org/lang_transaction.html).
  package enum TransactionKind: String, Sendable {
    case deferred = "BEGIN"
    case immediate = "BEGIN IMMEDIATE"
  }

  /// The path of a database in memory. Each connection has a separate one
  /// (https://sqlite.org/inmemorydb.html).
  package static let memory = ":memory:"

  /// For the extensions of this module only.
  let handle: OpaquePointer
  private var statements = KeptStatements()
  /// Statements allowed by the guard.
  private var guardedStatements = KeptStatements()
  /// The version of the schema for which those were prepared.
  private var guardedSchema: Int64?
  var hooks: ConnectionHooks?
  /// Kept for as long as SQLite may ask it.
  var keeper: SQLiteGuard?
  /// Kept for as long as SQLite may report to it.
  var changeLog: SQLiteChangeLog?
  /// The reason to end the current work; see ``interrupting(when:_:)``.
  var interruption: SQLiteInterruption? {
    get { owner.map(\.interruption) ?? ownInterruption }
    set {
      if let owner { owner.interruption = newValue } else { ownInterruption = newValue }
    }
  }
  private var ownInterruption: SQLiteInterruption?
  private var isDeferring = false
  /// True if another library, or ``owner``, closes the handle.
  private let isBorrowed: Bool
  /// The connection whose handle this one shares.
  let owner: SQLiteConnection?
  /// The names of the program's own tables and functions in statements of the program.
  package let namespace: SQLNamespace

  /// Uses a connection opened by another library, which will close it. The connection keeps all
  /// hooks, the authorizer and the busy timeout.
  ///
  /// Call ``forgetStatements()`` before the handle is closed.
  package init(borrowing handle: OpaquePointer) {
    self.handle = handle
    isBorrowed = true
    owner = nil
    namespace = SQLNamespace(prefix: "")
  }

  /// Shares the handle, the hooks and the transactions of another connection, for statements with
  /// names of another set. It keeps the other connection open.
  package init(sharing owner: SQLiteConnection, namespace: SQLNamespace) {
    handle = owner.handle
    isBorrowed = true
    self.owner = owner
    self.namespace = namespace
  }

  /// Opens `path`. `busyTimeout`: how long a statement waits for another connection's lock;
  /// `fileSystem`: a registered VFS by name, `nil` for the operating system's. A new file there is
  /// the owner's alone (0600), and SQLite makes the log and index with the same mode.
  package init(
    path: String, mode: Mode = .create, busyTimeout: Duration = .seconds(10),
    fileSystem: String? = nil
  ) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags =
      switch mode {
      case .readOnly: SQLITE_OPEN_READONLY
      case .readWrite: SQLITE_OPEN_READWRITE
      case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      }
    let fault = mode == .create && fileSystem == nil ? makePrivateFile(at: path) : 0
    let code = sqlite3_open_v2(
      path, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, fileSystem)
    guard code == SQLITE_OK, let opened else {
      let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      sqlite3_close_v2(opened)
      // SQLite reports only a failure to open such a file; the system reports the reason.
      throw SQLiteError(diskFault: fault, path: path)
        ?? SQLiteError(code: code, message: "\(path): \(message)")
    }
    handle = opened
    isBorrowed = false
    owner = nil
    namespace = SQLNamespace(prefix: "")
    let milliseconds =
      busyTimeout.components.seconds * 1000
      + busyTimeout.components.attoseconds / 1_000_000_000_000_000
    sqlite3_busy_timeout(handle, Int32(clamping: milliseconds))
  }

  deinit {
    forgetStatements()
    if !isBorrowed { sqlite3_close_v2(handle) }
  }

  // MARK: Statements

  /// Runs a script of any number of statements, without parameters and without rows. For the
  /// program's own SQL; see ``execute(single:)``.
  package func execute(_ script: String) throws(SQLiteError) {
    try checkText(script)
    let code = sqlite3_exec(handle, namespace.rewrite(script), nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code, sql: script) }
  }

  /// Runs one statement, without parameters and without rows. For SQL with a name from outside.
  ///
  /// - Throws: `SQLITE_MISUSE` if anything follows the statement; then nothing is run.
  package func execute(single sql: String) throws(SQLiteError) { try prepare(sql).run() }

  /// Returns the prepared statement for `sql`, made once for each connection. It comes back reset;
  /// only one use of it may be under way at a time.
  @usableFromInline
  package func statement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    let key = SQLText(sql)
    if let kept = statements[key] { return kept }
    let prepared = try prepare(sql)
    statements.store(prepared, for: key)
    return prepared
  }

  /// Drops all kept statements.
  package func forgetStatements() {
    statements.removeAll()
    guardedStatements.removeAll()
  }

  /// Releases the memory of kept statements, cached pages and the parsed schema, outside of a
  /// transaction. SQLite reads them again when it needs them.
  package func releaseMemory() {
    guard !isInTransaction else { return }
    forgetStatements()
    // It frees the parsed schema (https://sqlite.org/pragma.html#pragma_writable_schema).
    sqlite3_exec(handle, "PRAGMA writable_schema=RESET", nil, nil, nil)
    sqlite3_db_release_memory(handle)
  }

  /// Drops the kept statements of users if the schema has changed since: SQLite would prepare them
  /// again without the guard.
  package func forgetStatementsOfOldSchema() throws {
    let version = try first("PRAGMA schema_version") { $0.int64(0) }
    if version != guardedSchema { guardedStatements.removeAll() }
    guardedSchema = version
  }

  /// Returns the prepared statement for a user's SQL as ``statement(_:)`` does, after the guard has
  /// allowed it.
  ///
  /// - Throws: `SQLITE_AUTH` with the guard's reason.
  package func guardedStatement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    let key = SQLText(sql)
    if let kept = guardedStatements[key] { return kept }
    let prepared = try prepareGuarded(sql)
    guardedStatements.store(prepared, for: key)
    return prepared
  }

  /// Returns a separate statement for a user's SQL, after the guard has allowed it.
  package func prepareGuarded(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    var rest = sql[...]
    guard let prepared = try prepareNext(&rest, guarded: true), rest.isEmpty else {
      throw SQLiteError(code: SQLITE_MISUSE, message: "not exactly one statement", sql: sql)
    }
    return prepared
  }

  /// Returns a separate statement, not shared and not kept.
  ///
  /// - Throws: `SQLITE_MISUSE` if there is no statement, or more than one.
  package func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    var sql = sql[...]
    guard let statement = try prepareNext(&sql) else {
      throw SQLiteError(code: SQLITE_MISUSE, message: "the statement is empty")
    }
    guard sql.utf8.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) else {
      throw SQLiteError(code: SQLITE_MISUSE, message: "more than one statement")
    }
    return statement
  }

  /// Removes the first statement from `script` and returns it; `nil` when only white space and
  /// comments are left.
  package func prepareNext(_ script: inout Substring) throws(SQLiteError) -> SQLiteStatement? {
    let text = namespace.rewrite(String(script))
    try checkText(text)
    let (statement, consumed) = try compileForTriggers(text)
    let rest = text.utf8.index(text.startIndex, offsetBy: consumed, limitedBy: text.endIndex)
    script = text[(rest ?? text.endIndex)...]
    return statement.map {
      SQLiteStatement(handle: $0, connection: self, tables: keeper?.tables ?? .init())
    }
  }

  /// Returns `true` if SQL ends with a semicolon outside of texts, comments and triggers' bodies
  /// (https://sqlite.org/c3ref/complete.html).
  package static func isComplete(_ sql: String) -> Bool { sqlite3_complete(sql) == 1 }

  /// Throws if the text contains U+0000: SQLite reads a text up to the first one and ignores the
  /// rest.
  private func checkText(_ sql: String) throws(SQLiteError) {
    guard SQLText(sql).containsZero else { return }
    throw SQLiteError(
      code: SQLITE_MISUSE, message: "the SQL contains U+0000, at which SQLite would stop reading")
  }

  // MARK: Transactions

  /// True if a transaction is open.
  package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs `body` in a transaction: committed when it returns, rolled back when it throws. An
  /// interrupted one is not committed; see ``interrupting(when:_:)``.
  package func transaction<T>(
    _ kind: TransactionKind = .immediate, _ body: () throws -> T
  ) throws -> T {
    try checkInterruption()
    try statement(kind.rawValue).run()
    do {
      // The wait for another connection's lock may have been long.
      try checkInterruption()
      let result = try body()
      // The body may have caught the error of an interrupted statement.
      if let reason = interruption?.reason { throw reason }
      try statement("COMMIT").run()
      isDeferring = false
      return result
    } catch {
      rollback()
      throw error
    }
  }

  /// Ends an open transaction without any change.
  package func rollback() {
    isDeferring = false
    // A failed statement may have ended the transaction already; then there is nothing to roll
    // back.
    if isInTransaction { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  /// True if ``deferForeignKeys()`` holds in the open transaction.
  package var defersForeignKeys: Bool { isDeferring && isInTransaction }

  /// Defers foreign keys to the end of the open transaction.
  ///
  /// `PRAGMA defer_foreign_keys` takes effect when it is prepared. If it is run, it makes SQLite
  /// prepare every other statement of the connection again, which takes longer than to apply a
  /// small pull list. Each version of SQLite may decide when a pragma takes effect
  /// (https://sqlite.org/pragma.html). So the state is checked, and the pragma is run if it has had
  /// no effect.
  package func deferForeignKeys() throws(SQLiteError) {
    precondition(isInTransaction, "foreign keys are put off to the end of a transaction")
    let pragma = try prepare("PRAGMA defer_foreign_keys=ON")
    var isOn = false
    let state = try prepare("PRAGMA defer_foreign_keys")
    while try state.step() { isOn = state.int64(0) != 0 }
    if !isOn { try pragma.run() }
    isDeferring = true
  }

  /// Runs `body` while foreign keys are deferred. Later statements of the transaction are checked
  /// as before.
  package func deferringForeignKeys<T>(_ body: () throws -> T) throws -> T {
    if defersForeignKeys { return try body() }
    // A prepared pragma returns the state in which it was prepared.
    let state = try prepare("PRAGMA defer_foreign_keys")
    var wasOn = false
    while try state.step() { wasOn = state.int64(0) != 0 }
    try deferForeignKeys()
    defer {
      isDeferring = false
      if !wasOn { try? execute(single: "PRAGMA defer_foreign_keys=OFF") }
    }
    return try body()
  }

  /// Returns the prepared statement for a write to a table that may have foreign keys. SQLite
  /// compiles it differently if they are deferred, so each variant has a separate statement.
  package func foreignKeyStatement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try statement(defersForeignKeys ? sql + " -- foreign keys deferred" : sql)
  }

  // MARK: State

  /// Rows changed by the last statement.
  package var changes: Int { Int(sqlite3_changes64(handle)) }

  /// The last inserted row, as SQL's `last_insert_rowid()` returns it.
  package var lastInsertedRow: Int64 {
    get { sqlite3_last_insert_rowid(handle) }
    set { sqlite3_set_last_insert_rowid(handle, newValue) }
  }

  func error(_ code: Int32, sql: String?) -> SQLiteError {
    SQLiteError(code: code, message: String(cString: sqlite3_errmsg(handle)), sql: sql)
  }
}

/// Prepared statements by their text. When there are 512, all are dropped.
private struct KeptStatements {
  private var statements: [SQLText: SQLiteStatement] = [:]

  /// Returns a statement, reset.
  subscript(key: SQLText) -> SQLiteStatement? {
    let statement = statements[key]
    statement?.reset()
    return statement
  }

  mutating func store(_ statement: SQLiteStatement, for key: SQLText) {
    if statements.count >= 512 { removeAll() }
    statements[key] = statement
  }

  mutating func removeAll() { statements.removeAll() }
}

/// Creates an empty file readable by the owner only, unless there is one. Returns the system's
/// error, or 0; SQLite fails as well then.
private func makePrivateFile(at path: String) -> Int32 {
  if path.isEmpty || path.utf8.first == UInt8(ascii: ":") { return 0 }
  let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
  guard descriptor >= 0 else { return errno }
  close(descriptor)
  return 0
}

extension SQLiteError {
  /// Returns the error of a file that cannot be created because the disk is full or read-only;
  /// `nil` for other reasons.
  init?(diskFault: Int32, path: String) {
    let code: Int32
    switch diskFault {
    case ENOSPC, EDQUOT: code = SQLITE_FULL
    case EROFS: code = SQLITE_READONLY
    default: return nil
    }
    self.init(code: code, message: "\(path): \(String(cString: strerror(diskFault)))")
  }
}
