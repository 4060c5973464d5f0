import FerryProtocol

/// An operation that was recorded on this replica.
public struct OwnOperation: Sendable, Equatable {
  /// The operation; of a delete, its columns are the row as it was.
  public var operation: Operation
  /// Of an update: what its columns held before.
  public var former: [Column]
  /// Whether the server has it, and the replica has applied what the server made of it.
  public var isConfirmed: Bool
}

extension Replica {
  /// What was recorded on this replica, newest first; what is confirmed is kept for 14 days, and
  /// not more than 100,000 operations.
  public func ownOperations(limit: Int = 1_000) async throws -> [OwnOperation] {
    try await typed { try await thread.run { try $0.ownOperations(limit: limit) } }
  }

  /// Takes an operation of this replica back by an ordinary operation: what it wrote and still
  /// stands becomes what it was before.
  ///
  /// - Returns: How many columns were taken back.
  /// - Throws: ``ReplicaError/notFound(_:)`` where the operation is not kept here, is a batch, or
  ///   nothing of it stands any more.
  @discardableResult
  public func undo(_ operation: OperationID) async throws -> Int {
    let count = try await typed { try await thread.run { try $0.undo(operation) } }
    wakeWatchers()
    return count
  }
}
