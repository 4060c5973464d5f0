import FerryProtocol
import FerryStoredValues

extension Database {
  /// Renames a column. In a replica, the space keeps the column's first name, so that devices which
  /// still call it so go on syncing with this one (SPEC.md §26).
  ///
  /// ```swift
  /// try await replica.write { try $0.renameColumn("title", of: "tasks", to: "name") }
  /// ```
  ///
  /// - Throws: ``DatabaseError`` if SQLite refuses it, and nothing has changed then. In a replica also if
  ///   the table cannot be tracked so; let the transaction fail then.
  public func renameColumn(_ column: Name, of table: Name, to new: Name) throws {
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
  /// A table that takes the name of one that the same transaction has dropped is that table, created
  /// again.
  ///
  /// - Throws: the same as ``renameColumn(_:of:to:)``.
  public func renameTable(_ table: Name, to new: Name) throws {
    try rename(
      nil, of: table, to: new, "ALTER TABLE \(quoted(table)) RENAME TO \(quoted(new))")
  }

  private func rename(_ column: Name?, of table: Name, to new: Name, _ statement: String) throws {
    guard let owner else { return _ = try execute(single: statement) }
    try owner.rename(column, of: table, to: new) { try execute(single: statement) }
  }
}
