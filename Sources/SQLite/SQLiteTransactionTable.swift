import CFerrySQLite

/// Observes transactions without the connection's hooks, of which SQLite keeps only one of each
/// kind.
///
/// SQLite reports the end of a transaction to each written virtual table
/// (https://sqlite.org/vtab.html#xcommit). So this is an empty table without any content, and a
/// transaction is observed from the first insert on.
private final class TransactionTable {
  let ended: (Bool) -> Void
  let closing: () -> Void

  init(ended: @escaping (Bool) -> Void, closing: @escaping () -> Void) {
    (self.ended, self.closing) = (ended, closing)
  }

  /// Returns the object behind SQLite's part of a table. The module keeps it.
  static func behind(_ table: UnsafeMutablePointer<sqlite3_vtab>?) -> TransactionTable? {
    UnsafeMutableRawPointer(table)?.assumingMemoryBound(to: ferry_virtual_table.self)
      .pointee.object.map { Unmanaged<TransactionTable>.fromOpaque($0).takeUnretainedValue() }
  }
}

extension SQLiteConnection {
  /// The name of the table in SQL.
  private static var transactionTable: String { "ferry_transaction" }

  /// Prepares ``joinTransaction()``.
  ///
  /// SQLite keeps both closures, and all values captured by them, until the connection is closed.
  ///
  /// - Parameters:
  ///   - ended: called at the end of each joined transaction, after a commit (`true`) or rollback
  ///     (`false`).
  ///   - closing: called before the connection is closed, and perhaps earlier as well. It drops the
  ///     kept statements, with which SQLite would refuse to close.
  package func observeJoinedTransactions(
    ended: @escaping (_ isCommitted: Bool) -> Void, closing: @escaping () -> Void
  ) throws(SQLiteError) {
    let table = Unmanaged.passRetained(TransactionTable(ended: ended, closing: closing))
    // If this fails, SQLite has released the table already.
    let code = sqlite3_create_module_v2(
      handle, Self.transactionTable, transactionModule.address, table.toOpaque(),
      { pointer in pointer.map { Unmanaged<TransactionTable>.fromOpaque($0).release() } })
    guard code == SQLITE_OK else { throw error(code, sql: nil) }
  }

  /// Makes SQLite report the end of the connection.
  package func connectTransactionTable() throws(SQLiteError) {
    _ = try prepare("SELECT 1 FROM \(Self.transactionTable)").exists()
  }

  /// Makes SQLite report the end of the open transaction.
  package func joinTransaction() throws(SQLiteError) {
    let row = lastInsertedRow
    defer { lastInsertedRow = row }
    try prepare("INSERT INTO \(Self.transactionTable)(mark) VALUES (NULL)").run()
  }
}

/// The functions of the table; SQLite keeps their address.
private struct TransactionModule: @unchecked Sendable {
  // SAFETY: written once, before any use, and never freed.
  let address: UnsafePointer<sqlite3_module>

  init(_ module: sqlite3_module) {
    let memory = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
    memory.initialize(to: module)
    address = UnsafePointer(memory)
  }
}

private let transactionModule = TransactionModule(makeTransactionModule())

private func makeTransactionModule() -> sqlite3_module {
  var module = sqlite3_module()
  module.iVersion = 1
  module.xConnect = { connection, object, _, _, table, _ in
    let code = sqlite3_declare_vtab(connection, "CREATE TABLE x(mark)")
    guard code == SQLITE_OK else { return code }
    let memory = UnsafeMutablePointer<ferry_virtual_table>.allocate(capacity: 1)
    memory.initialize(to: ferry_virtual_table(base: sqlite3_vtab(), object: object))
    table?.pointee = UnsafeMutableRawPointer(memory).assumingMemoryBound(to: sqlite3_vtab.self)
    return SQLITE_OK
  }
  module.xDisconnect = { table in
    TransactionTable.behind(table)?.closing()
    UnsafeMutableRawPointer(table)?.assumingMemoryBound(to: ferry_virtual_table.self).deallocate()
    return SQLITE_OK
  }
  module.xUpdate = { _, _, _, row in
    row?.pointee = 0
    return SQLITE_OK
  }
  module.xBegin = { _ in SQLITE_OK }
  module.xCommit = { table in
    TransactionTable.behind(table)?.ended(true)
    return SQLITE_OK
  }
  module.xRollback = { table in
    TransactionTable.behind(table)?.ended(false)
    return SQLITE_OK
  }
  readNothing(&module)
  return module
}

/// Makes queries of the table return no row.
private func readNothing(_ module: inout sqlite3_module) {
  module.xBestIndex = { _, _ in SQLITE_OK }
  module.xOpen = { _, cursor in
    let memory = UnsafeMutablePointer<sqlite3_vtab_cursor>.allocate(capacity: 1)
    memory.initialize(to: sqlite3_vtab_cursor())
    cursor?.pointee = memory
    return SQLITE_OK
  }
  module.xClose = { cursor in
    cursor?.deallocate()
    return SQLITE_OK
  }
  module.xFilter = { _, _, _, _, _ in SQLITE_OK }
  module.xNext = { _ in SQLITE_OK }
  module.xEof = { _ in 1 }
  module.xColumn = { _, context, _ in
    sqlite3_result_null(context)
    return SQLITE_OK
  }
  module.xRowid = { _, row in
    row?.pointee = 0
    return SQLITE_OK
  }
}
