import FerryPersistence
import FerryProtocol

extension Replica {
  /// Runs `body` in one transaction as ``write(_:)`` does, and gives its operations a reason.
  ///
  /// The other devices whose values they replace or remove find these values in their quarantine, with
  /// the reason, once both sides have synced. Their users may edit them and send them again.
  ///
  /// ```swift
  /// try await replica.write(overruling: "the budget is closed") { database in
  ///   try database.execute("UPDATE budgets SET amount = 0 WHERE id = 'b1'")
  /// }
  /// ```
  ///
  /// Changes of tables in other spaces of the file have no reason.
  ///
  /// - Parameter reason: Words for those users, cut at ``Limits/reasonBytes``. An empty text is none.
  /// - Throws: the error of `body`; ``ReplicaError/database(_:code:)``.
  @discardableResult
  public func write<T: Sendable>(
    overruling reason: String, _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await writeMarked { database, marks in
      marks.reason = reason
      return try body(database)
    }
  }

  /// Runs one transaction of a program's writes, with marks of the operations: the times of writes
  /// made elsewhere before, and reasons of writes that overrule other devices' values.
  ///
  /// - Parameter body: sets the marks of the next writes.
  @discardableResult
  package func writeMarked<T: Sendable>(
    _ body: @escaping @Sendable (Database, WriteMarks) throws -> T
  ) async throws -> T {
    let result = try await thread.call { try $0.writeMarked(body) }
    wakeWatchers()
    return result
  }
}
