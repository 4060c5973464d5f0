import FerryProtocol

/// A recorded operation that the server has not confirmed yet (seed row S1.3).
public struct PendingOperation: Sendable, Equatable {
  /// The operation; a delete's columns are the row as it was before (seed row S1.10).
  public var operation: Operation
  /// Its place in the order in which this device's user did things.
  public var order: Int64
  /// The local transaction that it belongs to.
  public var group: Int64
  /// Whether the server has told of its record between its making and its freezing.
  var isMet = false
}
