import FerryProtocol

/// A batch as a user asks for it. Names are looked up, and a text is read, where the table is
/// known.
struct BatchRequest {
  let table: Name
  let effect: Batch.Effect
  let columns: [Column]
  /// Makes the predicate, given what the table's key column is called.
  let predicate: (_ key: Name) throws -> Predicate
}

extension Database {
  /// Sets columns of all records of a tracked table that match, here at once and on the server at
  /// the operation's place in the order: also of records that this replica does not have. It is
  /// one pending operation however many records match. What the server decided otherwise is
  /// corrected by a sync after it was sent.
  ///
  /// - Parameters:
  ///   - predicate: Such as `due < '2026-10-01' and done = 0`; see ``Predicate``.
  ///   - columns: What to set, sent as it is given. The key cannot be set.
  /// - Returns: the records changed here.
  /// - Throws: ``ReplicaError/invalidBatch(_:)`` where the predicate or a column is wrong;
  ///   ``ReplicaError/database(_:code:)`` where the table refuses the values.
  @discardableResult
  public func batch(
    _ table: Name, where predicate: String, set columns: [Name: Value]
  ) throws -> Int {
    try batch(table, .set, Self.columns(columns)) { try Predicate($0, predicate) }
  }

  /// The same with a predicate as a value.
  @discardableResult
  public func batch(
    _ table: Name, where predicate: Predicate, set columns: [Name: Value]
  ) throws -> Int {
    try batch(table, .set, Self.columns(columns)) { _ in predicate }
  }

  /// Deletes all records of a tracked table that match, in the same way.
  @discardableResult
  public func batchDelete(_ table: Name, where predicate: String) throws -> Int {
    try batch(table, .delete, []) { try Predicate($0, predicate) }
  }

  /// The same with a predicate as a value.
  @discardableResult
  public func batchDelete(_ table: Name, where predicate: Predicate) throws -> Int {
    try batch(table, .delete, []) { _ in predicate }
  }

  private func batch(
    _ table: Name, _ effect: Batch.Effect, _ columns: [Column],
    _ predicate: @escaping (Name) throws -> Predicate
  ) throws -> Int {
    do {
      return try recordBatch(
        BatchRequest(table: table, effect: effect, columns: columns, predicate: predicate))
    } catch {
      throw ReplicaError(error)
    }
  }

  private static func columns(_ columns: [Name: Value]) -> [Column] {
    columns.sorted { $0.key < $1.key }.map { Column($0.key, $0.value) }
  }
}

extension Predicate {
  /// Reads a text; what is wrong with it is the caller's mistake.
  fileprivate init(_ key: Name, _ text: String) throws {
    do {
      try self.init(text, key: key)
    } catch {
      throw ReplicaError.invalidBatch("the predicate cannot be read: \(error)")
    }
  }
}

extension Replica {
  /// Sets columns of all records that match, in a transaction of its own.
  @discardableResult
  public func batch(
    _ table: Name, where predicate: String, set columns: [Name: Value]
  ) async throws -> Int {
    try await write { try $0.batch(table, where: predicate, set: columns) }
  }

  /// Deletes all records that match, in a transaction of its own.
  @discardableResult
  public func batchDelete(_ table: Name, where predicate: String) async throws -> Int {
    try await write { try $0.batchDelete(table, where: predicate) }
  }
}
