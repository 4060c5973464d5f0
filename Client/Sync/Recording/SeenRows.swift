import FerryProtocol

/// The place up to which a device has seen rows that a pull changes along with a parent (ON DELETE
/// CASCADE, SET NULL, SET DEFAULT). It gives the `base` of the operations on such rows.
///
/// Such a row has the changes up to the cursor before the list. If the list has changed it already,
/// it has all changes up to the parent's place: a list names a record at its newest change. The
/// device has not seen later changes of the same list.
struct SeenRows {
  /// The cursor before the list.
  let cursor: SequenceNumber
  /// The place of the current change; `nil` if the whole list is applied already.
  var place: SequenceNumber?
  private var changed: Set<RecordKey> = []

  init(cursor: SequenceNumber) { self.cursor = cursor }

  /// Notes that the list has changed a row.
  mutating func note(_ key: RecordKey) { changed.insert(key) }

  /// Returns the base of an operation on a row.
  ///
  /// - Parameter head: the cursor after the list.
  func base(of key: RecordKey, head: SequenceNumber) -> SequenceNumber {
    guard changed.contains(key) else { return min(cursor, head) }
    return min(max(cursor, place ?? head), head)
  }
}
