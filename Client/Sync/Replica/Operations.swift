import FerryProtocol

/// An operation recorded on this replica.
public struct OwnOperation: Sendable, Equatable {
  /// The operation; of a delete, the columns are the row before it.
  public var operation: SyncOperation
  /// Of an update: the former values of the columns.
  public var former: [Column]
  /// True if the server has the operation, and the replica has applied the server's result.
  public var isConfirmed: Bool
}

/// The operations of a replica. Get them with ``Replica/operations``.
///
/// ```swift
/// if let newest = try await replica.operations.recorded(limit: 1).first {
///   try await replica.operations.undo(newest.operation.id)
/// }
/// ```
public struct Operations: Sendable {
  let thread: ReplicaThread
  let watches: WatchList

  /// Returns the operations not confirmed by the server, oldest first.
  public func pending(limit: Int = 1_000) async throws -> [PendingOperation] {
    try await thread.call { try $0.queue.oldest(limit) }
  }

  /// Returns the operations recorded on this replica, newest first. Confirmed operations are kept
  /// for 14 days, at most 100,000 of them.
  public func recorded(limit: Int = 1_000) async throws -> [OwnOperation] {
    try await thread.call { try $0.queue.newestOwn(limit) }
  }

  /// Returns the operations with this beginning of the identifier, newest first.
  package func recorded(
    beginningWith prefix: UniqueIDPrefix, limit: Int
  ) async throws -> [OwnOperation] {
    try await thread.call { try $0.queue.newestOwn(limit, beginningWith: prefix) }
  }

  /// Returns whether an operation is pending, or confirmed and still kept here.
  package func has(_ operation: OperationID) async throws -> Bool {
    try await thread.call { try $0.queue.hasOwn(operation) }
  }

  /// Returns the identifiers of all operations this replica can undo, for their short forms.
  package func identifiers() async throws -> UniqueIDAbbreviations {
    try await thread.call { try $0.queue.ownIDs() }
  }

  /// Undoes an operation of this replica with an ordinary operation. Values unchanged since become
  /// the former values again.
  ///
  /// If the server accepts no operation with the replica's token, the undone operation leaves the queue
  /// instead, and the next pull fetches its records. Undo the newest operation of a record first.
  ///
  /// - Returns: The number of columns that were undone.
  /// - Throws: ``ReplicaError/notFound(_:)`` if the operation is not kept here;
  ///   ``ReplicaError/cannotAnswer(_:advice:)`` if it can be sent, and is a batch or has no value
  ///   left to undo.
  @discardableResult
  public func undo(_ operation: OperationID) async throws -> Int {
    let count = try await thread.call { try $0.undoSteps.undo(operation) }
    watches.wake()
    return count
  }
}
