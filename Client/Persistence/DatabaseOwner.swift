import FerryProtocol

/// The owner of a file that takes part in its users' changes of the schema.
package protocol DatabaseOwner: AnyObject {
  /// Runs before a statement that drops a table.
  func tableWillDrop(_ table: Name) throws
  /// Runs before a statement that alters a table; one that only adds a column is left out.
  func tableWillAlter(_ table: Name) throws
  /// Runs after each statement that changed the schema, and after a failed one that altered a
  /// table.
  func schemaChanged() throws
  /// Runs `alter`, which gives a table or one of its columns another name.
  ///
  /// - Parameter column: the column; `nil` to rename the table.
  func rename(
    _ column: Name?, of table: Name, to new: Name, by alter: () throws -> Void
  ) throws
}
