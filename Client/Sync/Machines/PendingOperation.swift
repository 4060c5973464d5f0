import FerryProtocol

/// A recorded operation that the server has not confirmed yet (SPEC.md §4).
public struct PendingOperation: Sendable, Equatable {
  /// The operation; of a delete, its columns are the row before it.
  public var operation: Operation
  /// The operation's place in the order of the user's actions on this device.
  public var order: Int64
  /// The operation's local transaction.
  public var group: Int64
  /// Whether a change of its record came from the server between its recording and its freezing.
  var isMet = false
}
