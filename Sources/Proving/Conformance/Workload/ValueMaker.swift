import FerryProtocol

/// Makes the values written by users: short texts mostly, and now and then awkward values.
struct ValueMaker {
  static let awkward: [Value] = [
    .null, .text(""), .text("it's \"quoted\"; -- not a comment"), .text("two\nlines\tand a tab"),
    .text("😀 naïve Ωmega"), .text("e\u{301}"), .text("\u{E9}"), .text("before\u{0}after"),
    .text("\\u0000 \u{1F}\u{7F}"), .integer(9_007_199_254_740_993), .integer(.min),
    .integer(.max), .integer(0), .real(0.1), .real(-1e300), .real(1.0), .real(1e16),
    .real(.infinity), .blob([]), .blob([0, 255, 39, 0]), .text("1"), .text("1.0"), .text("NULL"),
  ]

  private static let words = ["milk", "call back", "rent", "seeds", "tickets", "paint", "oil"]

  /// Returns any value, for a column without a type.
  static func any(_ random: inout SeededRandom) -> Value {
    if random.chance(1, in: 4) { return awkward[random.below(awkward.count)] }
    // Larger than one SQLite page, now and then.
    if random.chance(1, in: 60) { return .text(String(repeating: "long ", count: 1_200)) }
    return text(&random)
  }

  /// Returns a text different from most others.
  static func text(_ random: inout SeededRandom) -> Value {
    .text(words[random.below(words.count)] + " \(random.below(100))")
  }

  /// Returns a text, or now and then one of the awkward values, which the column's type turns to
  /// text.
  static func title(_ random: inout SeededRandom) -> Value {
    random.chance(1, in: 8) ? awkward[random.below(awkward.count)] : text(&random)
  }

  /// Returns a value for a column of integers.
  static func stars(_ random: inout SeededRandom) -> Value {
    random.chance(1, in: 12) ? .null : .integer(Int64(random.below(6)))
  }

  /// Returns a value for a column of reals. Whole ones are among them, but none that a column
  /// declared REAL cannot keep, such as −0.0.
  static func weight(_ random: inout SeededRandom) -> Value {
    random.chance(1, in: 8) ? .null : .real(Double(random.below(64)) / 4)
  }

  /// Returns a value for a column of `notes`.
  static func makeNoteValue(_ column: String, _ random: inout SeededRandom) -> Value {
    switch column {
    case "stars": stars(&random)
    case "body", "extra": any(&random)
    default: title(&random)
    }
  }
}
