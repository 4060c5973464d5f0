extension RecordPredicate {
  /// Reads a user's text, such as `due < '2026-10-01' and done = 0`: a subset of SQL's expressions
  /// with SQL's precedence.
  ///
  /// - columns, plain or in double quotes, compared (`= == <> != < <= > >=`) with integers, reals,
  ///   `'text'`, `x'blob'` and `null`;
  /// - `is [not] null`, `[not] in (…)`, `[not] between … and …`, `and`, `or`, `not`, brackets,
  ///   `true` and `false`; keywords in either case.
  ///
  /// - Parameter key: The name of the table's key column, which denotes the record.
  /// - Throws: ``RecordPredicateError`` with the expected text and the place.
  public init(_ text: String, key: Name, limits: Limits = .standard) throws(RecordPredicateError) {
    var parser = PredicateParser(text, key: key)
    self = try parser.predicate()
    if let fault = fault(limits: limits) { throw RecordPredicateError(reason: fault, position: 1) }
  }
}

/// Recursive descent over the words of a predicate.
private struct PredicateParser {
  /// The limit of nested brackets and `not`s: it guards the stack, far above the limit of a packet.
  private static let nestingMax = 100

  private var scanner: PredicateScanner
  private var token = PredicateScanner.Token.end
  private let key: Name
  private var nesting = 0

  init(_ text: String, key: Name) {
    scanner = PredicateScanner(text)
    self.key = key.folded
  }

  /// Returns all of the text.
  mutating func predicate() throws(RecordPredicateError) -> RecordPredicate {
    try advance()
    let predicate = try disjunction()
    guard token == .end else { throw expected("'and', 'or' or the end") }
    return predicate
  }

  // MARK: Joining

  private mutating func disjunction() throws(RecordPredicateError) -> RecordPredicate {
    var parts = [try conjunction()]
    while try accept(word: "or") { parts.append(try conjunction()) }
    return parts.count == 1 ? parts[0] : .or(parts)
  }

  private mutating func conjunction() throws(RecordPredicateError) -> RecordPredicate {
    var parts = [try negation()]
    while try accept(word: "and") { parts.append(try negation()) }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func negation() throws(RecordPredicateError) -> RecordPredicate {
    guard nesting < Self.nestingMax else { throw fault("the predicate is nested too deep") }
    nesting += 1
    defer { nesting -= 1 }
    return try accept(word: "not") ? .not(try negation()) : try test()
  }

  // MARK: Tests

  private mutating func test() throws(RecordPredicateError) -> RecordPredicate {
    if try accept(mark: "(") {
      let inner = try disjunction()
      guard try accept(mark: ")") else { throw expected("')'") }
      return inner
    }
    if try accept(word: "true") { return .always }
    if try accept(word: "false") { return .not(.always) }
    let field = try field()
    if try accept(word: "is") { return try nullTest(field) }
    let isNegated = try accept(word: "not")
    if try accept(word: "in") { return negated(try membership(field), isNegated) }
    if try accept(word: "between") { return negated(try range(field), isNegated) }
    if isNegated { throw expected("'in' or 'between'") }
    guard case .mark(let mark) = token, let comparison = Self.comparison(mark) else {
      throw expected("a comparison (= <> < <= > >=), 'is', 'in', 'between' or 'not'")
    }
    try advance()
    return .compare(field, comparison, try value())
  }

  private func negated(_ predicate: RecordPredicate, _ isNegated: Bool) -> RecordPredicate {
    isNegated ? .not(predicate) : predicate
  }

  private mutating func nullTest(_ field: PredicateField) throws(RecordPredicateError)
    -> RecordPredicate
  {
    let isNegated = try accept(word: "not")
    guard try accept(word: "null") else {
      throw expected(isNegated ? "'null'" : "'null' or 'not null'")
    }
    return isNegated ? .isNotNull(field) : .isNull(field)
  }

  private mutating func membership(_ field: PredicateField) throws(RecordPredicateError)
    -> RecordPredicate
  {
    guard try accept(mark: "(") else { throw expected("'(' and a list of values") }
    var values: [Value] = []
    if try accept(mark: ")") { return .among(field, values) }
    repeat { values.append(try value()) } while try accept(mark: ",")
    guard try accept(mark: ")") else { throw expected("',' or ')'") }
    return .among(field, values)
  }

  private mutating func range(_ field: PredicateField) throws(RecordPredicateError)
    -> RecordPredicate
  {
    let low = try value()
    guard try accept(word: "and") else { throw expected("'and' and the upper end") }
    return .and([
      .compare(field, .greaterOrEqual, low), .compare(field, .lessOrEqual, try value()),
    ])
  }

  private static func comparison(_ mark: String) -> PredicateComparison? {
    switch mark {
    case "==": .equal
    case "!=": .unequal
    default: PredicateComparison(rawValue: mark)
    }
  }

  // MARK: Operands

  private mutating func field() throws(RecordPredicateError) -> PredicateField {
    let name: Name
    switch token {
    case .name(let quoted): name = Name(quoted)
    case .word(let word, let written) where !PredicateScanner.keywords.contains(word):
      name = Name(written)
    default: throw expected("a column, 'not' or '('")
    }
    try advance()
    return name.folded == key ? .record : .column(name)
  }

  private mutating func value() throws(RecordPredicateError) -> Value {
    if try accept(word: "null") { return .null }
    let isNegative = try accept(mark: "-")
    let isPositive = try accept(mark: "+")
    guard case .value(let found) = token, !(isNegative && isPositive) else {
      if case .name = token { throw expected("a value (text is in single quotes)") }
      throw expected("a value")
    }
    let value: Value
    switch found {
    case .integer(let integer) where isNegative: value = .integer(integer)
    case .integer(.min): throw fault("the integer 9223372036854775808 does not fit 64 bits")
    case .integer(let integer): value = .integer(-integer)
    case .real(let real): value = .real(isNegative ? -real : real)
    default:
      if isNegative || isPositive { throw expected("a number after the sign") }
      value = found
    }
    try advance()
    return value
  }

  // MARK: Words

  private mutating func advance() throws(RecordPredicateError) { token = try scanner.next() }

  private mutating func accept(word: String) throws(RecordPredicateError) -> Bool {
    guard case .word(word, _) = token else { return false }
    try advance()
    return true
  }

  private mutating func accept(mark: String) throws(RecordPredicateError) -> Bool {
    guard token == .mark(mark) else { return false }
    try advance()
    return true
  }

  private func expected(_ what: String) -> RecordPredicateError {
    fault("\(what) was expected, not \(token.shown)")
  }

  private func fault(_ reason: String) -> RecordPredicateError {
    RecordPredicateError(reason: reason, position: scanner.position)
  }
}
