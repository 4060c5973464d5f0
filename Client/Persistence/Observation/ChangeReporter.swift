import FerrySQLite

/// Reports the tables that a writing connection changes.
package final class ChangeReporter {
  private let connection: SQLiteConnection
  /// The WITHOUT ROWID and virtual tables of the schema with this version.
  private var rowless: (version: Int64, tables: Set<String>)?

  /// - Parameter isLogging: whether to observe the connection's changes; of another library's
  ///   connection, that library has the update hook.
  package init(_ connection: SQLiteConnection, isLogging: Bool = true) {
    self.connection = connection
    if isLogging { connection.logChanges() }
  }

  /// Reports the tables that have changed since the last call. SQLite does not report WITHOUT ROWID
  /// tables, to which foreign keys may write, and virtual tables, to which triggers may write: each of
  /// them counts as changed.
  package func report(to hub: ChangeHub) {
    var tables = connection.takeChanges()
    guard !tables.isEmpty, hub.hasListeners else { return }
    guard let rowless = try? rowlessTables() else { return hub.report(.unknown) }
    tables.formUnion(rowless)
    hub.report(.some(tables))
  }

  private func rowlessTables() throws -> Set<String> {
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    if let rowless, rowless.version == version { return rowless.tables }
    let tables = try connection.rows(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND (wr OR type = 'virtual')"
    ) { $0.text(0) }
    rowless = (version, Set(tables))
    return Set(tables)
  }
}
