import FerryProtocol

/// How far a device has seen rows that SQLite deletes or changes along with a parent (ON DELETE
/// CASCADE, SET NULL, SET DEFAULT) while a pull list is applied: the `base` of what is recorded of
/// them.
///
/// Such a row holds the changes up to the cursor before the list. If the list has changed it already,
/// it holds all changes up to the place of the parent's, since a list names a record at its newest
/// change. A later change of the same list is unseen.
struct SeenRows {
  /// The cursor before the list.
  let cursor: SequenceNumber
  /// The place of the change being applied; `nil` if all of the list is applied already.
  var place: SequenceNumber?
  private var changed: Set<RecordKey> = []

  init(cursor: SequenceNumber) { self.cursor = cursor }

  /// Notes that the list has changed a row.
  mutating func note(_ key: RecordKey) { changed.insert(key) }

  /// - Parameter head: the cursor after the list.
  func base(of key: RecordKey, head: SequenceNumber) -> SequenceNumber {
    guard changed.contains(key) else { return min(cursor, head) }
    return min(max(cursor, place ?? head), head)
  }
}
