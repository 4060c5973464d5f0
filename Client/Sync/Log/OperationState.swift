/// The state of an own operation in `ferry_operations`, with the stored number.
///
/// A packet's range of places shows whether a pending operation was sent.
enum OperationState: Int64 {
  /// In the queue, perhaps in a packet, until the cursor has passed it.
  case pending = 0
  /// In the archive: the server has it, and may lose it (SPEC.md §18).
  case confirmed = 1
  /// A failed operation of an upload-only table; it waits for the user (SPEC.md §17).
  case unsent = 2
  /// Rejected for good by the server, or dependent on a rejected operation (SPEC.md §12).
  case quarantined = 3
}
