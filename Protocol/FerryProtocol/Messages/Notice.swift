/// A message to a device about its lost values: against its own operation, or later against another
/// device's (SPEC.md §15).
public struct Notice: Sendable, Equatable {
  /// The place of the deciding operation, in the space's order.
  public let sequence: SequenceNumber
  /// The deciding operation: the device's own if it lost itself.
  public let operation: OperationID
  /// The record with the values.
  public let key: RecordKey
  /// The lost values of the device, in the order of the operation's outcome.
  public let conflicts: [Conflict]
  /// The reason of the deciding operation, if another device overruled the values with one.
  public let overruling: Overruling?

  /// An operation that overrules values with a reason.
  public struct Overruling: Sendable, Equatable {
    /// The operation's kind: a delete has removed the record with the values.
    public let kind: OperationKind
    /// The author's reason, for users.
    public let reason: String

    /// Creates it from the given parts.
    public init(kind: OperationKind, reason: String) { (self.kind, self.reason) = (kind, reason) }
  }

  /// Creates a notice from the given parts.
  public init(
    sequence: SequenceNumber, operation: OperationID, key: RecordKey, conflicts: [Conflict],
    overruling: Overruling? = nil
  ) {
    self.sequence = sequence
    self.operation = operation
    self.key = key
    self.conflicts = conflicts
    self.overruling = overruling
  }
}
