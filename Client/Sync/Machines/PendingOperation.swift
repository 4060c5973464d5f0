import FerryProtocol

/// A recorded operation that the server has not confirmed yet (SPEC.md §4).
public struct PendingOperation: Sendable, Equatable {
  /// The operation; of a delete, its columns are the row before it.
  public var operation: SyncOperation
  /// The operation's place in the order of the user's actions on this device.
  public var order: Int64
  /// The operation's local transaction.
  public var group: Int64
  /// The operation before it on this device: the server applies it first. `nil` of the device's
  /// first operation.
  public var dependency: OperationID?
  /// Of an update: the former values of its columns, as far as they are known.
  public var former: [Column] = []
  /// Whether a change of its record came from the server between its recording and its freezing.
  var isConcurrent = false
  /// Of a batch: the number of records that it matched here. The server may match others.
  var matches = 0
}
