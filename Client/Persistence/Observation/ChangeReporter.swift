import FerryPlatform
import FerrySQLite

/// Reports to live queries what a writing connection changes.
package final class ChangeReporter {
  /// The tables of one version of the schema.
  private struct Schema {
    let version: Int64
    /// Tables with rows of their own in the file.
    let stored: Set<String>
    /// Tables that may change without a report by SQLite: each of them counts as changed whenever
    /// another one does.
    let silent: Set<String>
    /// By the bytes of their names.
    var shapes: [[UInt8]: TableShape?] = [:]
  }

  /// The live queries of the file.
  package weak var hub: ChangeHub?
  private let connection: SQLiteConnection
  private var known: Schema?

  /// - Parameters:
  ///   - isLogging: true to observe the connection's changes; on another library's connection, that
  ///     library has the hooks.
  ///   - usesRowHook: see ``SQLiteConnection/logChanges(usesRowHook:keepsRows:)``.
  package init(_ connection: SQLiteConnection, isLogging: Bool = true, usesRowHook: Bool = true) {
    self.connection = connection
    guard isLogging else { return }
    connection.logChanges(usesRowHook: usesRowHook) { [weak self] table in
      self?.hub?.needsRows(of: table) ?? false
    }
  }

  /// Reports the changes since the last call.
  package func report() {
    let changes = connection.drainChanges()
    guard !changes.isEmpty, let hub, hub.hasListeners else { return }
    if changes.changesSchema { return hub.report(.unknown) }
    do { hub.report(.some(try tables(of: changes))) } catch { hub.report(.unknown) }
  }

  private func tables(of changes: SQLiteChanges) throws -> [String: ChangedRows] {
    let schema = try schema(isComplete: changes.isComplete)
    var changed: [String: ChangedRows] = [:]
    for (table, rows) in changes.rows {
      switch rows {
      case .all: changed[table] = .all
      case .images(let images):
        changed[table] = try shape(of: table).map { .rows(images, $0) } ?? .all
      }
    }
    for table in changes.written where !changes.isComplete || !schema.stored.contains(table) {
      changed[table] = .all
    }
    guard !changed.isEmpty else { return [:] }
    for table in schema.silent { changed[table] = .all }
    return changed
  }

  /// Returns the tables of the present schema. Triggers may write to virtual tables, and SQLite itself
  /// to `sqlite_sequence`. Without the row hook, foreign keys may write to WITHOUT ROWID tables.
  private func schema(isComplete: Bool) throws -> Schema {
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    if let known, known.version == version { return known }
    let tables = try connection.rows(
      "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'"
    ) { (name: $0.text(0), type: $0.text(1), isRowless: $0.int64(2) != 0) }
    let silent = tables.filter {
      $0.type == "virtual" || $0.name.begins(with: "sqlite_") || ($0.isRowless && !isComplete)
    }.map(\.name)
    let stored = tables.filter { $0.type == "table" || $0.type == "shadow" }.map(\.name)
    let schema = Schema(
      version: version, stored: Set(stored).subtracting(silent), silent: Set(silent))
    known = schema
    return schema
  }

  private func shape(of table: String) throws -> TableShape? {
    let key = Array(table.utf8)
    if let shape = known?.shapes[key] { return shape }
    let shape = try TableShape.read(table, from: connection)
    known?.shapes[key] = .some(shape)
    return shape
  }
}
