/// The names in a message's last objects, by place.
///
/// Most records of a message have the same columns in the same order. Their names are checked once
/// and shared after that.
final class RecentNames {
  /// The most stored names.
  private static let countMax = 64

  private var names: [Name] = []
  /// The number of ascending names, from the first one on.
  private var ascendingCount = 0
  private var table: Name?

  /// The number of columns to expect.
  var count: Int { names.count }

  /// Returns the name at this place of the last object, if it has the same bytes.
  @inline(__always)
  func name(at place: Int, _ span: JSONSpan) -> Name? {
    guard place < names.count, !span.isEscaped, names[place].isEqual(to: span.bytes) else {
      return nil
    }
    return names[place]
  }

  /// Stores a checked name. Names at later places are forgotten.
  func add(_ name: Name, at place: Int) {
    guard place <= names.count, place < Self.countMax else { return }
    names.removeSubrange(place...)
    ascendingCount = min(ascendingCount, place)
    if ascendingCount == place, place == 0 || names[place - 1] < name { ascendingCount += 1 }
    names.append(name)
  }

  /// Returns `true` if the first columns ascend, provided that the last object had exactly these.
  func ascend(_ count: Int) -> Bool { count <= ascendingCount }

  /// Returns the last table's name, if it has the same bytes.
  @inline(__always)
  func table(_ span: JSONSpan) -> Name? {
    guard let table, !span.isEscaped, table.isEqual(to: span.bytes) else { return nil }
    return table
  }

  /// Stores the checked name of a table.
  func add(table: Name) { self.table = table }
}
