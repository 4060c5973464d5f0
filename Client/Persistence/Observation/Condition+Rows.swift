import FerryProtocol
import FerrySQLite

/// The possible results of a condition for a row. SQLite decides by rules that depend on the
/// columns (https://sqlite.org/datatype3.html#comparison_expressions). This type knows the plain
/// cases, and treats every result as possible in all others.
private struct Outcomes: OptionSet {
  let rawValue: Int
  static let isTrue = Outcomes(rawValue: 1)
  static let isFalse = Outcomes(rawValue: 2)
  static let isNull = Outcomes(rawValue: 4)
  static let any: Outcomes = [.isTrue, .isFalse, .isNull]

  static func known(_ result: Bool) -> Outcomes { result ? .isTrue : .isFalse }

  static prefix func ! (outcomes: Outcomes) -> Outcomes {
    var result = outcomes.intersection(.isNull)
    if outcomes.contains(.isTrue) { result.insert(.isFalse) }
    if outcomes.contains(.isFalse) { result.insert(.isTrue) }
    return result
  }

  static func && (left: Outcomes, right: Outcomes) -> Outcomes {
    var result = left.union(right).intersection(.isFalse)
    if left.contains(.isTrue) && right.contains(.isTrue) { result.insert(.isTrue) }
    if left.contains(.isNull) && right != .isFalse { result.insert(.isNull) }
    if right.contains(.isNull) && left != .isFalse { result.insert(.isNull) }
    return result
  }

  static func || (left: Outcomes, right: Outcomes) -> Outcomes { !(!left && !right) }
}

extension Condition {
  /// Returns true if a row may fulfil the condition. `false` is certain, `true` is not.
  func mayHold(for row: SQLiteRowImage, of table: TableShape) -> Bool {
    outcomes(row, table).contains(.isTrue)
  }

  private func outcomes(_ row: SQLiteRowImage, _ table: TableShape) -> Outcomes {
    switch self {
    case .always: return .isTrue
    case .compare(let name, let comparison, let value):
      return Self.outcomes(row, table, name) { $0.compared(comparison, with: value) }
    case .among(let name, let values):
      return Self.outcomes(row, table, name) { field in
        values.reduce(.isFalse) { $0 || field.compared(.equal, with: $1) }
      }
    case .between(let name, let low, let high):
      return Self.outcomes(row, table, name) {
        $0.compared(.greaterOrEqual, with: low) && $0.compared(.lessOrEqual, with: high)
      }
    case .like: return .any
    case .isNull(let name):
      return Self.outcomes(row, table, name) { .known($0.value == .null) }
    case .not(let part): return !part.outcomes(row, table)
    case .and(let parts): return parts.reduce(.isTrue) { $0 && $1.outcomes(row, table) }
    case .or(let parts): return parts.reduce(.isFalse) { $0 || $1.outcomes(row, table) }
    }
  }

  private static func outcomes(
    _ row: SQLiteRowImage, _ table: TableShape, _ name: Name, _ body: (StoredField) -> Outcomes
  ) -> Outcomes {
    StoredField(row, table, name).map(body) ?? .any
  }
}

/// A value of a changed row, with the column.
private struct StoredField {
  let value: SQLiteRowImage.Value
  let affinity: TableShape.Affinity
  let isBinary: Bool

  /// Finds the value; `nil` if it is unknown.
  init?(_ row: SQLiteRowImage, _ table: TableShape, _ name: Name) {
    guard let place = table.place(of: name) else {
      guard name == QuerySQL.rowNumber else { return nil }
      (value, affinity, isBinary) = (.integer(row.number), .number, true)
      return
    }
    guard row.values.count == table.columns.count else { return nil }
    let column = table.columns[place]
    (value, affinity, isBinary) = (row.values[place], column.affinity, column.isBinary)
    if value == .null && column.hasDefault { return nil }
  }

  func compared(_ comparison: PredicateComparison, with other: Value) -> Outcomes {
    if value == .null || other == .null { return .isNull }
    return order(other).map { .known(comparison.holds($0)) } ?? [.isTrue, .isFalse]
  }

  /// Compares the value as SQLite does: negative, zero or positive if it is before, at or after the
  /// other one; `nil` if this type does not know how.
  private func order(_ other: Value) -> Int? {
    switch (value, other) {
    case (.integer(let stored), .integer(let other)) where affinity != .text:
      // Such a column stores a large integer as the nearest real.
      if affinity == .real && (Self.exact(stored) == nil || Self.exact(other) == nil) { return nil }
      return stored < other ? -1 : stored > other ? 1 : 0
    case (.integer(let stored), .real(let other)) where affinity != .text:
      return Self.exact(stored).map { Self.order($0, other) }
    case (.real(let stored), .integer(let other)) where affinity != .text:
      return Self.exact(other).map { Self.order(stored, $0) }
    case (.real(let stored), .real(let other)) where affinity != .text:
      return Self.order(stored, other)
    case (.text(let stored), .text(let other)) where affinity == .text || affinity == .none:
      return isBinary ? Self.order(stored, Array(other.utf8)) : nil
    case (.text(let stored), .integer(let other)) where affinity == .text:
      return isBinary ? Self.order(stored, Array(String(other).utf8)) : nil
    case (.blob(let stored), .blob(let other)):
      return Self.order(stored, other)
    default: return nil
    }
  }

  /// Returns a number within the precision of a real.
  private static func exact(_ integer: Int64) -> Double? {
    integer.magnitude < 1 << 53 ? Double(integer) : nil
  }

  private static func order(_ left: Double, _ right: Double) -> Int {
    left < right ? -1 : left > right ? 1 : 0
  }

  private static func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
    if left == right { return 0 }
    return left.lexicographicallyPrecedes(right) ? -1 : 1
  }
}
