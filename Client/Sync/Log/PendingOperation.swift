import FerryProtocol

/// A recorded operation not confirmed by the server yet (SPEC.md §4).
public struct PendingOperation: Sendable, Equatable {
  /// The operation; of a delete, the columns are the row before it.
  public var operation: SyncOperation
  /// The operation's place in the order of the user's actions on this device.
  public var order: Int64
  /// The operation's local transaction.
  public var group: Int64
  /// The operation before it on this device: the server applies it first. `nil` of the device's
  /// first operation.
  public var dependency: OperationID?
  /// Of an update: the known former values of the columns.
  public var former: [Column] = []
  /// True if a change of the operation's record came from the server between the recording and the
  /// freezing.
  var isConcurrent = false
  /// Of a batch: the number of records that it matched here. The server may match others.
  var matches = 0
}
