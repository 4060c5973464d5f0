extension Value {
  /// Reads a value from a command line: integers, reals, `null`, `'text'` and `x'blob'` as in SQL;
  /// any other text as itself.
  package init(argument: String) {
    self = Self.literal(argument) ?? .text(argument)
  }

  private static func literal(_ text: String) -> Value? {
    var scanner = PredicateScanner(text)
    guard let first = try? scanner.next() else { return nil }
    var (token, sign) = (first, "")
    if case .mark(let mark) = first, mark == "-" || mark == "+" {
      guard let next = try? scanner.next() else { return nil }
      (token, sign) = (next, mark)
    }
    guard (try? scanner.next()) == .end else { return nil }
    switch token {
    // The scanner reads magnitudes as negative numbers, of which there is one more.
    case .value(.integer(let negated)):
      if sign == "-" { return .integer(negated) }
      return negated == .min ? nil : .integer(-negated)
    case .value(.real(let real)): return .real(sign == "-" ? -real : real)
    case .value(let value): return sign.isEmpty ? value : nil
    case .word("null", _): return sign.isEmpty ? .null : nil
    default: return nil
    }
  }
}
