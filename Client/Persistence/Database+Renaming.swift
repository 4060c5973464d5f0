import FerryProtocol
import FerrySQLite

extension Database {
  /// Renames a column. In a replica, the space keeps the column's first name, so devices with the
  /// first name continue to sync with this one (SPEC.md §26).
  ///
  /// ```swift
  /// try await replica.write { try $0.renameColumn("title", of: "tasks", to: "name") }
  /// ```
  ///
  /// - Throws: ``DatabaseError`` if SQLite refuses it, and nothing has changed then. In a replica
  ///   also if the table cannot be tracked so; let the transaction fail then.
  public func renameColumn(_ column: Name, of table: Name, to new: Name) throws {
    try check(column, of: table)
    try rename(
      column, of: table, to: new,
      "ALTER TABLE \(quoted(table)) RENAME COLUMN \(quoted(column)) TO \(quoted(new))")
  }

  /// Renames a table. In a replica, the space keeps the table's first name.
  ///
  /// ```swift
  /// try await replica.write { try $0.renameTable("tasks", to: "todos") }
  /// ```
  ///
  /// If the new name is that of a table dropped by the same transaction, the table counts as that
  /// one, created again.
  ///
  /// - Throws: the same as ``renameColumn(_:of:to:)``.
  public func renameTable(_ table: Name, to new: Name) throws {
    if owner != nil, let fault = StatementGuard.fault(in: new.text) {
      throw DatabaseError(fault, code: 23)
    }
    try rename(
      nil, of: table, to: new, "ALTER TABLE \(quoted(table)) RENAME TO \(quoted(new))")
  }

  /// Throws if a table does not have a column. SQLite's own message would quote the name twice, and
  /// name no other.
  private func check(_ column: Name, of table: Name) throws {
    let known = try query("SELECT name FROM pragma_table_info(?)", [.text(table.text)])
      .compactMap { $0["name"].stringValue }
    if known.isEmpty || known.contains(where: { Name($0).folded == column.folded }) { return }
    throw DatabaseError(
      "ferry: table \(table) has no column \(column); it has \(known.joined(separator: ", "))",
      code: 1)
  }

  private func rename(_ column: Name?, of table: Name, to new: Name, _ statement: String) throws {
    guard let owner else { return _ = try execute(single: statement) }
    try owner.rename(column, of: table, to: new) { try execute(single: statement) }
  }
}
