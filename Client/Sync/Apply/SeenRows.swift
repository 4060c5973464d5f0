import FerryProtocol

/// The place up to which a device has seen certain rows, after the whole list. A pull changes these
/// rows along with a parent (ON DELETE CASCADE, SET NULL, SET DEFAULT). It is the `base` of the
/// operations on such rows.
struct SeenRows {
  /// The cursor before the list.
  let cursor: SequenceNumber
  /// The rows changed by the list.
  private var changed: Set<RecordKey> = []
  /// The tables with no rows but those of the list.
  private var filled: Set<Name> = []

  init(cursor: SequenceNumber) { self.cursor = cursor }

  /// Records that the list has changed a row.
  mutating func add(_ key: RecordKey) { changed.insert(key) }

  /// Notes tables that the list has filled.
  mutating func add(allOf tables: [Name]) { filled.formUnion(tables) }

  /// Returns the base of an operation on a row.
  ///
  /// - Parameter head: the cursor after the list.
  func base(of key: RecordKey, head: SequenceNumber) -> SequenceNumber {
    changed.contains(key) || filled.contains(key.table) ? head : min(cursor, head)
  }
}
