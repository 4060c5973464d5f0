import FerryProtocol
import FerrySQLite

/// Rows temporarily out of their tables within one transaction, so unique values can move between
/// them.
///
/// A row is deleted and inserted again, and not set to other values meanwhile. No value is sure to
/// fit a CHECK, a NOT NULL or an index on an expression. The user's triggers see a delete and an
/// insert, so data derived by them from rows stays right. Foreign keys do not act on these deletes.
final class RowsAside {
  /// The outcome of taking a row out.
  enum Outcome {
    case taken
    /// There is no row of this record.
    case absent
    /// The table's triggers keep the row.
    case stays
  }

  private let connection: SQLiteConnection
  private let capture: CaptureContext
  private var tables: [Name: TableSchema] = [:]
  private var triggers: [Name] = []
  private var uniqueKeys: [Name: UniqueKeys] = [:]

  init(connection: SQLiteConnection, capture: CaptureContext) {
    (self.connection, self.capture) = (connection, capture)
  }

  /// Creates a temporary table for rows of a table. Called before the first row is removed.
  func prepare(_ table: TableSchema) throws {
    guard tables[table.name] == nil else { return }
    tables[table.name] = table
    let place = place(of: table)
    let columns = places(table).map { ", \($0)" }.joined()
    // Columns without a type keep each value unchanged.
    try connection.execute(single: "DROP TABLE IF EXISTS \(place)")
    try connection.execute(single: "CREATE TABLE \(place)(k PRIMARY KEY\(columns))")
    for child in try actingChildren(of: table) { try deferChild(child, of: table) }
    uniqueKeys[table.name] = try UniqueKeys.read(of: table, from: connection)
  }

  /// Drops all rows and lets foreign keys act again.
  func end() throws {
    for trigger in triggers {
      try connection.execute(single: "DROP TRIGGER temp.\(quoted(trigger))")
    }
    for table in tables.values.sorted(by: { $0.name < $1.name }) {
      try connection.execute(single: "DROP TABLE \(place(of: table))")
    }
    (tables, triggers) = ([:], [])
  }

  // MARK: Rows

  /// Moves a record's row out of the table.
  ///
  /// - Throws: ``RecordEndedTransaction`` if a trigger rolls the transaction back.
  func remove(_ key: RecordKey) throws -> Outcome {
    guard let table = tables[key.table] else { return .stays }
    let copied = try connection.run(
      "INSERT INTO \(place(of: table)) SELECT ?1, \(list(table)) FROM \(quoted(table.local)) "
        + "WHERE \(table.has(record: "?1"))", key.record)
    guard copied > 0 else { return .absent }
    let remove = try connection.foreignKeyStatement(
      "DELETE FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))")
    capture.beginApplying(key, .values)
    capture.isTakingAside = true
    defer { capture.isTakingAside = false }
    do {
      if try remove.run(key.record) > 0 { return .taken }
    } catch {
      guard error.concernsRow else { throw error }
      guard connection.isInTransaction else {
        throw RecordEndedTransaction(key: key, reason: error.message)
      }
    }
    try forget(key, table)
    return .stays
  }

  /// Returns true if a record's row is out of the table.
  func holds(_ key: RecordKey) throws -> Bool {
    guard let table = tables[key.table] else { return false }
    return try connection.exists("SELECT 1 FROM \(place(of: table)) WHERE k = ?", key.record)
  }

  /// Returns the values, in these columns of this file, of a row out of its table; `nil` if there
  /// is none.
  func values(of key: RecordKey, _ columns: [Name]) throws -> [Value]? {
    guard let table = tables[key.table] else { return nil }
    let places = columns.compactMap { column in
      table.columns.firstIndex { $0.local.folded == column.folded }
    }
    guard places.count == columns.count else { return nil }
    return try connection.first(
      "SELECT \(places.map { "c\($0)" }.joined(separator: ", ")) FROM \(place(of: table)) "
        + "WHERE k = ?", key.record
    ) { row in places.indices.map { row.value(Int32($0)) } }
  }

  /// Inserts a row again unchanged, except for these columns.
  func restore(_ key: RecordKey, changing columns: [ColumnState] = []) throws {
    guard let table = tables[key.table] else { return }
    var values: [Value] = []
    let sources = table.columns.enumerated().map { index, info in
      guard let column = columns.first(where: { $0.name == info.name }) else { return "c\(index)" }
      values.append(column.value)
      return info.written("?\(values.count + 1)")
    }
    try connection.foreignKeyStatement(
      "INSERT INTO \(quoted(table.local))(\(list(table))) "
        + "SELECT \((table.keys.indices.map { "k\($0)" } + sources).joined(separator: ", ")) "
        + "FROM \(place(of: table)) WHERE k = ?1"
    ).run(key.record, SQLiteList(values))
  }

  /// Returns the records of rows now with unique values of a removed row.
  func successors(of key: RecordKey) throws -> [RecordKey] {
    guard let table = tables[key.table], let uniqueKeys = uniqueKeys[table.name] else { return [] }
    return try uniqueKeys.keys.flatMap { columns -> [RecordKey] in
      let conditions = columns.map { part in
        let index = table.columns.firstIndex { $0.local == part.column.local } ?? 0
        return "t.\(quoted(part.column.local)) = old.c\(index) COLLATE \(quoted(part.collation))"
      }
      return try connection.rows(
        "SELECT \(table.record(of: "t")) FROM \(place(of: table)) AS old "
          + "JOIN \(quoted(table.local)) AS t ON \(conditions.joined(separator: " AND ")) "
          + "WHERE old.k = ?", key.record
      ) { RecordKey(table: table.name, record: $0.name(0)) }
    }
  }

  private func forget(_ key: RecordKey, _ table: TableSchema) throws {
    try connection.run("DELETE FROM \(place(of: table)) WHERE k = ?", key.record)
  }

  private func place(of table: TableSchema) -> String {
    "temp.\(quoted(Name(connection.namespace.name("ferry_aside_\(table.name)"))))"
  }

  private func list(_ table: TableSchema) -> String {
    (table.keys.map(\.local) + table.columns.map(\.local)).map(quoted).joined(separator: ", ")
  }

  /// Returns the columns for a row's key and values, as they are.
  private func places(_ table: TableSchema) -> [String] {
    table.keys.indices.map { "k\($0)" } + table.columns.indices.map { "c\($0)" }
  }

  // MARK: The schema

  /// Returns tables with rows that a foreign key changes or deletes together with their parent.
  private func actingChildren(of table: TableSchema) throws -> [Name] {
    try connection.prepare(
      """
      SELECT DISTINCT child.name FROM main.sqlite_schema AS child,
        pragma_foreign_key_list(child.name) AS link
      WHERE child.type = 'table' AND link."table" = ? COLLATE NOCASE
        AND link.on_delete NOT IN ('NO ACTION', 'RESTRICT') ORDER BY child.name
      """
    ).rows(table.local) { $0.name(0) }
  }

  /// Keeps a child's rows unchanged while a parent's row is out of the table.
  private func deferChild(_ child: Name, of parent: TableSchema) throws {
    let record =
      child == parent.local
      ? "\(quoted(literal: parent.name.text)), \(parent.record(of: "OLD"))" : "'', ''"
    for event in ["DELETE", "UPDATE"] {
      let name = Name(connection.namespace.name("ferry_aside_\(event)_\(child)"))
      guard !triggers.contains(name) else { continue }
      try connection.execute(
        single: """
          CREATE TEMP TRIGGER \(quoted(name)) BEFORE \(event) ON main.\(quoted(child))
          WHEN ferry_aside(\(record)) BEGIN SELECT RAISE(IGNORE); END
          """)
      triggers.append(name)
    }
  }
}
