import FerryProtocol

/// The unconfirmed state of one record of an upload-only table (SPEC.md §17). In SQL: the view
/// `ferry_uploads`.
public struct UploadState: Sendable, Equatable {
  /// The record. The identifier is empty for a ``batch``.
  public var key: RecordKey
  /// A batch operation with no record known here, such as one rejected by the server.
  public var batch: Batch?
  /// The newest unconfirmed operation. An acknowledgement of it clears the state.
  public var identifier: OperationID
  /// True if an insert or an update is unconfirmed.
  public var isDirty: Bool
  /// True if the record is deleted here and the deletion is unconfirmed.
  public var isDeleted: Bool
  /// True if sending failed. The record waits for ``Uploads/retry(table:record:)``, or, in
  /// an automatic table, for the next sync.
  public var isFailed: Bool
  /// The reason of the failure, for the user.
  public var detail: String?
}

/// The unconfirmed changes of a replica's upload-only tables. Get them with ``Replica/uploads``.
///
/// ```swift
/// if try await replica.uploads.states().contains(where: \.isFailed) {
///   try await replica.uploads.retry()
/// }
/// ```
public struct Uploads: Sendable {
  let thread: ReplicaThread
  let watches: WatchList

  /// Returns the unconfirmed state of upload-only tables, by table and record.
  ///
  /// - Parameter table: an upload-only table, named as in the space; `nil` for all.
  public func states(of table: Name? = nil, limit: Int = 1_000) async throws -> [UploadState] {
    try await thread.call { try $0.uploads.states(of: table, limit: limit) }
  }

  /// Makes the next sync send failed operations again, under the same identifiers. So an operation
  /// that arrived in spite of the failure is a duplicate and has no effect. Failed operations of
  /// the same transactions and of the same records are sent too.
  ///
  /// - Parameters:
  ///   - table: an upload-only table; `nil` for all.
  ///   - record: one record of it; `nil` for all.
  /// - Returns: The number of records to send again.
  /// - Throws: ``ReplicaError/notFound(_:)`` if nothing of a named record failed;
  ///   ``ReplicaError/database(_:code:)`` if a rejected transaction also wrote to two-way tables,
  ///   and these reject it now. The transaction stays rejected then.
  @discardableResult
  public func retry(table: Name? = nil, record: Name? = nil) async throws -> Int {
    let count = try await thread.call { try $0.uploads.retry(table: table, record: record) }
    watches.wake()
    return count
  }
}
