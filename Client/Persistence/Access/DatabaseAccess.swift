/// A SQLite file that runs closures in transactions: ``LocalDatabase``, `Replica` or
/// ``DataCenter``.
///
/// ```swift
/// func openNotes(in access: some DatabaseAccess) async throws -> [Note] {
///   try await access.read { try Note.all.where(Field("done") == false).fetch($0) }
/// }
/// ```
public protocol DatabaseAccess: Sendable {
  /// Runs `body` on one snapshot of the file, beside current writes.
  ///
  /// - Throws: the error of `body`; an error of the file. A `Replica` throws each
  ///   ``DatabaseError`` as `ReplicaError.database`.
  func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T

  /// Runs `body` in one transaction: committed when it returns, rolled back when it throws.
  ///
  /// - Throws: the same as ``read(_:)``.
  @discardableResult
  func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T
}
