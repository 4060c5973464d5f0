import FerryProtocol
import FerryTestSupport

/// Predicates and rows drawn from a seed, with values near each other across storage classes.
struct PredicateSamples {
  private var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// Columns of the rows; one of them no row has.
  static let columns: [Name] = ["a", "b", "C d", "é", "or"]

  static let values: [Value] = [
    .null, 0, 1, -1, 2, 10, .integer(.max), .integer(.min), .integer((1 << 53) + 1),
    .real(0), .real(-0.0), 1.0, 1.5, -1.5, .real(0x1p53), .real(0x1p63), .real(-0x1p63),
    .real(9_007_199_254_740_994), .real(.infinity), .real(-.infinity),
    .real(.leastNonzeroMagnitude), "", "1",
    "1.0", "10", "a", "A", "a ", "b", "ab", "é", "e\u{301}", "it's", "\"", "\u{10FFFF}", .blob([]),
    .blob([0x31]), .blob([0x61]), .blob([0, 255]), .blob([0x61, 0x62]),
  ]

  mutating func value() -> Value { Self.values.randomElement(using: &random) ?? .null }

  mutating func field() -> PredicateField {
    let place = Int.random(in: 0...Self.columns.count, using: &random)
    return place == Self.columns.count ? .record : .column(Self.columns[place])
  }

  mutating func predicate(depth: Int = 4) -> RecordPredicate {
    switch Int.random(in: 0..<(depth > 0 ? 12 : 7), using: &random) {
    case 0...3:
      return .compare(
        field(), PredicateComparison.allCases.randomElement(using: &random) ?? .equal, value())
    case 4: return .among(field(), (0..<Int.random(in: 0...4, using: &random)).map { _ in value() })
    case 5: return Bool.random(using: &random) ? .isNull(field()) : .isNotNull(field())
    case 6: return .always
    case 7, 8: return .and(parts(depth))
    case 9, 10: return .or(parts(depth))
    default: return .not(predicate(depth: depth - 1))
    }
  }

  private mutating func parts(_ depth: Int) -> [RecordPredicate] {
    (0..<Int.random(in: 2...4, using: &random)).map { _ in predicate(depth: depth - 1) }
  }

  /// Returns a row's columns by their places in ``columns``.
  mutating func row() -> [Value] { Self.columns.map { _ in value() } }

  mutating func identifier() -> String {
    ["1", "10", "a", "é", "it's", "r\(Int.random(in: 0...9, using: &random))"]
      .randomElement(using: &random) ?? "a"
  }
}
