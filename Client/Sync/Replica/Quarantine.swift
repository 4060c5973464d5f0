import FerryProtocol

/// Operations rejected by the server, with all dependent operations, or one write that another device
/// overruled with a reason (``RefusalCode/overruled``). They are not sent, and the tables show the
/// server's rows.
public struct QuarantineEntry: Sendable, Equatable {
  /// Names the entry on this replica.
  public var number: Int64
  /// The kind of the reason.
  public var code = RefusalCode(rawValue: "unknown")
  /// A description of the problem for the user; of an overruled write, the other device's reason.
  public var detail = ""
  /// With ``RefusalCode/uniqueTaken``: the record with the unique key.
  public var holder: Name?
  /// When this device heard of the problem, in milliseconds since 1970.
  public var refusedAt: Int64 = 0
  /// All operations, in the order of their recording; of a delete, the row before it.
  public var operations: [SyncOperation] = []
  /// The rejected or overruled operations; the others depend on them or belong to their transactions.
  public var refused: [OperationID] = []

  /// Creates an entry without operations.
  init(number: Int64) { self.number = number }
}

/// The quarantine of a replica: operations rejected by the server. Get it with ``Replica/quarantine``.
///
/// ```swift
/// for entry in try await replica.quarantine.entries() {
///   print(entry.detail)
///   try await replica.quarantine.retry(entry.number)
/// }
/// ```
public struct Quarantine: Sendable {
  let thread: ReplicaThread
  let watches: WatchList

  /// Returns the entries, oldest first.
  public func entries(limit: Int = 1_000) async throws -> [QuarantineEntry] {
    try await thread.call { try $0.quarantine.oldest(limit) }
  }

  /// Writes an entry's operations to the tables again, as new operations, in one transaction. Call
  /// it when the reason has gone, or with other values for the rejected ones.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if there is no such entry;
  ///   ``ReplicaError/cannotRetry(entry:_:)`` if a record updated by it has gone;
  ///   ``ReplicaError/cannotAnswer(_:advice:)`` if the table lacks a column of the changes, or the
  ///   entry has no values;
  ///   ``ReplicaError/database(_:code:)`` if the tables reject the operations. The entry stays
  ///   then.
  public func retry(_ number: Int64, changing changes: [Column] = []) async throws {
    try await thread.call { try $0.quarantineAnswers.retry(number, changing: changes) }
    watches.wake()
  }

  /// Deletes an entry and all operations in it; they cannot be restored.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)``.
  public func discard(_ number: Int64) async throws {
    try await ReplicaError.converting {
      guard try await thread.run({ try $0.quarantineAnswers.discard(number) }) else {
        throw ReplicaError.notFound(.quarantineEntry(number))
      }
    }
  }
}
