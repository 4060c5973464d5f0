import FerryProtocol

extension DeclaredKey {
  /// Returns `true` if a table of the company can have another definition's key. The space decides
  /// whether numbers are values.
  func agrees(with other: DeclaredKey) -> Bool {
    if self == other { return true }
    guard case .mapped(let name) = self, case .value(let columns) = other else { return false }
    return columns == [DeclaredKeyColumn(name, .integer)]
  }
}

extension DeclaredTable {
  /// Returns the first part in which two definitions differ. The order of columns, defaults and
  /// indexes do not count.
  func difference(from other: DeclaredTable) -> String? {
    guard key.agrees(with: other.key) else { return "its key is another one" }
    let names = Set(columns.map(\.name)).union(other.columns.map(\.name)).sorted()
    for name in names {
      guard let here = columns.first(where: { $0.name == name }) else {
        return "it has a column \(name) there that does not travel"
      }
      guard let there = other.columns.first(where: { $0.name == name }) else {
        return "it has no column \(name) there"
      }
      guard here.affinity == there.affinity else {
        return "column \(name) is declared \(there.affinity.rawValue) there, and would be "
          + here.affinity.rawValue
      }
      guard here.isRequired == there.isRequired else {
        return "column \(name) is \(there.isRequired ? "" : "not ")required there"
      }
    }
    guard Set(unique) == Set(other.unique) else { return "it has other unique keys there" }
    let isSame =
      references.allSatisfy(other.references.contains)
      && other.references.allSatisfy(references.contains)
    return isSame ? nil : "it has other foreign keys there"
  }
}
