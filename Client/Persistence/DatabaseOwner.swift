import FerryProtocol

/// The owner of a file; it participates in changes of the schema by users.
package protocol DatabaseOwner: AnyObject {
  /// Runs before a statement drops a table.
  func tableWillDrop(_ table: Name) throws
  /// Runs before a statement alters a table, except by adding a column.
  func tableWillAlter(_ table: Name) throws
  /// Runs after each statement that changed the schema, and after a failed one that altered a
  /// table.
  func schemaChanged() throws
  /// Runs `alter` to give a table or one of its columns another name.
  ///
  /// - Parameter column: the column; `nil` to rename the table.
  func rename(
    _ column: Name?, of table: Name, to new: Name, by alter: () throws -> Void
  ) throws
}
