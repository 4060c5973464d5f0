import FerryPersistence
import FerryProtocol

/// A batch as the user requests it. The replica looks up names and parses a text predicate once it
/// knows the table.
struct BatchRequest {
  let table: Name
  let effect: Batch.Effect
  let columns: [Column]
  /// Makes the predicate from the name of the table's key column.
  let predicate: (_ key: Name) throws -> RecordPredicate
}

extension Database {
  /// Sets columns of all matching records of a tracked table, here at once. The server does the
  /// same at the operation's place in the order, also for records missing from this replica.
  ///
  /// It is one pending operation for any number of matching records. If the server's result
  /// differs, a sync after the upload corrects the rows here.
  ///
  /// - Parameters:
  ///   - predicate: Such as `due < '2026-10-01' and done = 0`; see ``RecordPredicate``.
  ///   - columns: The values to set, sent unchanged. The key cannot be set.
  /// - Returns: The number of records changed here.
  /// - Throws: ``ReplicaError/invalidBatch(_:)`` if the predicate or a column is wrong;
  ///   ``ReplicaError/database(_:code:)`` if the table rejects the values.
  @discardableResult
  public func batch(
    _ table: Name, where predicate: String, set columns: [Name: Value]
  ) throws -> Int {
    try batch(table, .set, Self.columns(columns)) { try RecordPredicate($0, predicate) }
  }

  /// Sets columns of all records matching a predicate value.
  @discardableResult
  public func batch(
    _ table: Name, where predicate: RecordPredicate, set columns: [Name: Value]
  ) throws -> Int {
    try batch(table, .set, Self.columns(columns)) { _ in predicate }
  }

  /// Deletes all matching records of a tracked table, in the same way.
  @discardableResult
  public func batchDelete(_ table: Name, where predicate: String) throws -> Int {
    try batch(table, .delete, []) { try RecordPredicate($0, predicate) }
  }

  /// Deletes all records matching a predicate value.
  @discardableResult
  public func batchDelete(_ table: Name, where predicate: RecordPredicate) throws -> Int {
    try batch(table, .delete, []) { _ in predicate }
  }

  private func batch(
    _ table: Name, _ effect: Batch.Effect, _ columns: [Column],
    _ predicate: @escaping (Name) throws -> RecordPredicate
  ) throws -> Int {
    guard let spaces = owner as? FileSpaces else {
      throw ReplicaError.invalidBatch("a batch writes; use Replica.write")
    }
    let request = BatchRequest(
      table: table, effect: effect, columns: columns, predicate: predicate)
    do {
      return try spaces.files(of: table).reduce(0) { sum, file in
        guard !file.schemaChanges.isSuspended else {
          throw ReplicaError.invalidBatch(
            "a step of a migration makes no batch unless it is recorded; add it with recorded: true"
          )
        }
        try file.schemaChanges.refreshIfNew()
        return try sum + file.batches.record(request)
      }
    } catch {
      throw ReplicaError(error)
    }
  }

  private static func columns(_ columns: [Name: Value]) -> [Column] {
    columns.sorted { $0.key < $1.key }.map { Column($0.key, $0.value) }
  }
}

extension RecordPredicate {
  /// Parses a text predicate; an error in it is the caller's mistake.
  fileprivate init(_ key: Name, _ text: String) throws {
    do {
      try self.init(text, key: key)
    } catch {
      throw ReplicaError.invalidBatch("the predicate cannot be read: \(error)")
    }
  }
}

extension Replica {
  /// Sets columns of all matching records, in a separate transaction.
  @discardableResult
  public func batch(
    _ table: Name, where predicate: String, set columns: [Name: Value]
  ) async throws -> Int {
    try await write { try $0.batch(table, where: predicate, set: columns) }
  }

  /// Deletes all matching records, in a separate transaction.
  @discardableResult
  public func batchDelete(_ table: Name, where predicate: String) async throws -> Int {
    try await write { try $0.batchDelete(table, where: predicate) }
  }
}
