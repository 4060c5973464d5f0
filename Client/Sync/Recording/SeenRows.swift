import FerryProtocol

/// The place up to which a device has seen rows that a pull changes along with a parent (ON DELETE
/// CASCADE, SET NULL, SET DEFAULT), after the whole list. It gives the `base` of the operations on
/// such rows.
struct SeenRows {
  /// The cursor before the list.
  let cursor: SequenceNumber
  /// The rows that the list has changed.
  private var changed: Set<RecordKey> = []

  init(cursor: SequenceNumber) { self.cursor = cursor }

  /// Notes that the list has changed a row.
  mutating func note(_ key: RecordKey) { changed.insert(key) }

  /// Returns the base of an operation on a row.
  ///
  /// - Parameter head: the cursor after the list.
  func base(of key: RecordKey, head: SequenceNumber) -> SequenceNumber {
    changed.contains(key) ? head : min(cursor, head)
  }
}
