import FerryProtocol

/// What the server has not confirmed of one record of an upload-only table (seed row S2.1). In SQL:
/// the view `ferry_uploads`.
public struct UploadState: Sendable, Equatable {
  /// The record; a batch operation whose rows are not known stands under an empty one.
  public var key: RecordKey
  /// The newest operation that is not confirmed. Its acknowledgement clears the state.
  public var identifier: OperationID
  /// Whether an insert or an update is not confirmed.
  public var isDirty: Bool
  /// Whether the record is deleted here, and that is not confirmed.
  public var isDeleted: Bool
  /// Whether its sending failed. It waits for ``Replica/retryUploads(table:record:)``; in a table
  /// that is automatic, for the next sync.
  public var isFailed: Bool
  /// Why it failed, for a person.
  public var detail: String?
}

extension Replica {
  /// What upload-only tables hold that the server has not confirmed, by table and record.
  ///
  /// - Parameter table: one of them; `nil` for all.
  public func uploads(table: Name? = nil, limit: Int = 1_000) async throws -> [UploadState] {
    try await typed { try await thread.run { try $0.uploads(of: table, limit: limit) } }
  }

  /// Has the next sync send what failed, under the same identifiers: what has arrived in spite of
  /// the failure is known to the server and takes no effect twice. What failed in the same
  /// transactions, and of the same records, goes along.
  ///
  /// - Parameters:
  ///   - table: an upload-only table; `nil` for all.
  ///   - record: one record of it; `nil` for all.
  /// - Returns: records that are to be sent again.
  /// - Throws: ``ReplicaError/notFound(_:)`` when a record is named of which nothing failed;
  ///   ``ReplicaError/database(_:code:)`` when a refused transaction also wrote to two-way tables,
  ///   and these refuse it now. It stays refused then.
  @discardableResult
  public func retryUploads(table: Name? = nil, record: Name? = nil) async throws -> Int {
    let count = try await typed {
      try await thread.run { try $0.retryUploads(table: table, record: record) }
    }
    wakeWatchers()
    return count
  }
}
