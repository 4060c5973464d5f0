/// The total order of values for ``ConflictPolicy/max`` and ``ConflictPolicy/min``: numbers, then
/// texts, then blobs. Integers and reals are ordered by their exact numbers; of equal ones the
/// integer is first, and −0.0 before 0.0. Texts and blobs are ordered by their bytes. NULL is no
/// value and loses to every other, in both directions.
package enum ValueOrder {
  /// Returns the winner of two values.
  package static func extreme(_ first: Value, _ second: Value, _ policy: ConflictPolicy) -> Value {
    if first == .null { return second }
    if second == .null { return first }
    let isFirst = policy == .min ? precedes(first, second) : precedes(second, first)
    return isFirst ? first : second
  }

  /// Returns whether `first` is before `second`, neither being NULL.
  package static func precedes(_ first: Value, _ second: Value) -> Bool {
    switch (first, second) {
    case (.integer(let first), .integer(let second)): first < second
    case (.real(let first), .real(let second)):
      first < second || first == second && first.sign == .minus && second.sign == .plus
    case (.integer(let first), .real(let second)): compare(first, second) <= 0
    case (.real(let first), .integer(let second)): compare(second, first) > 0
    case (.text(let first), .text(let second)):
      first.utf8.lexicographicallyPrecedes(second.utf8)
    case (.blob(let first), .blob(let second)): first.lexicographicallyPrecedes(second)
    default: rank(first) < rank(second)
    }
  }

  /// Returns a number below 0, 0 or above, as `integer` is below, equal to or above `real`. A
  /// double cannot hold every integer, so the real is cut to one instead.
  private static func compare(_ integer: Int64, _ real: Double) -> Int {
    if real >= 0x1p63 { return -1 }
    if real < -0x1p63 { return 1 }
    let whole = real.rounded(.towardZero)
    let other = Int64(whole)
    if integer != other { return integer < other ? -1 : 1 }
    return real > whole ? -1 : real < whole ? 1 : 0
  }

  private static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }
}
