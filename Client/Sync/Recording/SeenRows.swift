import FerryProtocol

/// The place up to which a device has seen rows that a pull changes along with a parent (ON DELETE
/// CASCADE, SET NULL, SET DEFAULT). It gives the `base` of the operations on such rows.
///
/// Such a row has the changes up to the cursor before the list. If a page of the list has changed
/// it already, it has all changes up to the head at which the server wrote that page. The device
/// has not seen later changes: later pages of the same list bring them.
struct SeenRows {
  /// The cursor before the list.
  let cursor: SequenceNumber
  /// The head at which the server wrote the current page.
  var pageHead: SequenceNumber = 0
  /// The place of the current change; `nil` if the whole list is applied already.
  var place: SequenceNumber?
  /// The rows that the list has changed, each with the head of its page.
  private var changed: [RecordKey: SequenceNumber] = [:]

  init(cursor: SequenceNumber) { self.cursor = cursor }

  /// Notes that the current page has changed a row.
  mutating func note(_ key: RecordKey) { changed[key] = pageHead }

  /// Returns the base of an operation on a row.
  ///
  /// - Parameter head: the cursor after the list.
  func base(of key: RecordKey, head: SequenceNumber) -> SequenceNumber {
    guard let seen = changed[key] else { return min(cursor, head) }
    guard let place else { return head }
    return min(max(cursor, min(place, seen)), head)
  }
}
