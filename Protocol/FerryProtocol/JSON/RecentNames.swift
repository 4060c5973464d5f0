/// The names that a message's last objects had, by their places.
///
/// Most records of a message have the same columns in the same order. Their names are checked once
/// and shared after that.
final class RecentNames {
  /// The most names that are kept.
  private static let countMax = 64

  private var names: [Name] = []
  /// How many of the names ascend, from the first one on.
  private var ascendingCount = 0
  private var table: Name?

  /// The number of columns to expect.
  var count: Int { names.count }

  /// Returns the name that the last object had at this place, if it has the same bytes.
  @inline(__always)
  func name(at place: Int, _ span: JSONSpan) -> Name? {
    guard place < names.count, !span.isEscaped, names[place].isEqual(to: span.bytes) else {
      return nil
    }
    return names[place]
  }

  /// Keeps a name that has been checked. Names at later places are forgotten.
  func add(_ name: Name, at place: Int) {
    guard place <= names.count, place < Self.countMax else { return }
    names.removeSubrange(place...)
    ascendingCount = min(ascendingCount, place)
    if ascendingCount == place, place == 0 || names[place - 1] < name { ascendingCount += 1 }
    names.append(name)
  }

  /// Whether the first columns ascend, given that the last object had exactly these.
  func ascend(_ count: Int) -> Bool { count <= ascendingCount }

  /// Returns the last table's name, if it has the same bytes.
  @inline(__always)
  func table(_ span: JSONSpan) -> Name? {
    guard let table, !span.isEscaped, table.isEqual(to: span.bytes) else { return nil }
    return table
  }

  /// Keeps a table's name that has been checked.
  func add(table: Name) { self.table = table }
}
