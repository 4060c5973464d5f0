import FerryPersistence
import FerryProtocol

extension Replica {
  /// Returns Ferry's proposed identity for the key of a table of this file, with the reason.
  ///
  /// ```swift
  /// let proposal = try await replica.keyProposal(for: "album")
  /// print(proposal.identity, proposal.reason)
  /// ```
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the table cannot be tracked.
  public func keyProposal(for table: Name) async throws -> KeyProposal {
    try await thread.call { try $0.tracking.proposal(for: table) }
  }

  /// Returns the identifier of the record with a key of this file; `nil` if no row has the key.
  /// Conflicts, uploads and the quarantine name records by this identifier.
  ///
  /// ```swift
  /// let record = try await replica.record(of: "album", key: 42)
  /// ```
  ///
  /// - Parameter key: the values of the key's columns, in the key's order.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the table cannot be tracked.
  public func record(of table: Name, key: Value...) async throws -> Name? {
    try await thread.call { try $0.rows.record(of: table, key: key) }
  }

  /// Returns the key of a record in this file, in the order of the key's columns; `nil` if it has no row.
  ///
  /// ```swift
  /// let key = try await replica.key(of: conflict.record, in: "album")
  /// ```
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if the table cannot be tracked.
  public func key(of record: Name, in table: Name) async throws -> [Value]? {
    try await thread.call { try $0.rows.key(of: record, in: table) }
  }
}
