import FerryProtocol

/// Operations that the server refuses for good, with what depends on them. They are not sent; the
/// tables show what the server has.
public struct QuarantineEntry: Sendable, Equatable {
  /// Names the entry on this replica.
  public var number: Int64
  /// Why the server refuses.
  public var code = RefusalCode(rawValue: "unknown")
  /// What is wrong, for a person.
  public var detail = ""
  /// With ``RefusalCode/uniqueTaken``: the record that holds the unique key.
  public var holder: Name?
  /// When it was refused, milliseconds since 1970.
  public var refusedAt: Int64 = 0
  /// All operations, in the order in which they were made; of a delete, the row as it was.
  public var operations: [Operation] = []
  /// Those that were refused; the others depend on them or belong to their transactions.
  public var refused: [OperationID] = []

  /// An entry without operations.
  init(number: Int64) { self.number = number }
}

extension Replica {
  /// What the server refuses for good, oldest first.
  public func quarantine(limit: Int = 1_000) async throws -> [QuarantineEntry] {
    try await typed { try await thread.run { try $0.quarantine(limit: limit) } }
  }

  /// Writes an entry's operations to the tables again, as new operations, in one transaction: for
  /// when the reason has gone, or with other values for what was refused.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` when there is no such entry, or a record that it
  ///   updates has gone; ``ReplicaError/database(_:code:)`` when the tables refuse it. The entry
  ///   stays then.
  public func retryQuarantined(_ number: Int64, changing changes: [Column] = []) async throws {
    try await typed {
      try await thread.run { try $0.retryQuarantined(number, changing: changes) }
    }
    wakeWatchers()
  }

  /// Forgets an entry for good.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)``.
  public func discardQuarantined(_ number: Int64) async throws {
    try await typed {
      guard try await thread.run({ try $0.discardQuarantined(number) }) else {
        throw ReplicaError.notFound("the quarantine has no entry \(number)")
      }
    }
  }
}
