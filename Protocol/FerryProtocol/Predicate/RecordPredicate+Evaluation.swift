extension RecordPredicate {
  /// Returns whether the record matches: the predicate is true of it, neither false nor unknown.
  ///
  /// - Parameters:
  ///   - record: The record's identifier.
  ///   - columns: The record's content; a missing name is NULL.
  public func matches(record: Name, columns: [Column]) -> Bool {
    truth(record: .text(record.text)) { name in
      columns.first { $0.name == name }?.value ?? .null
    } == true
  }

  /// Returns `true` if a record of the server's matches. A missing one never does.
  package func matches(record: Name, _ state: RecordState) -> Bool {
    guard state.isAlive else { return false }
    return truth(record: .text(record.text)) { name in
      let index = state.columns.partitioningIndex { $0.name >= name }
      guard index < state.columns.count, state.columns[index].name == name else { return .null }
      return state.columns[index].value
    } == true
  }

  /// Evaluates the predicate: true, false, or `nil` for unknown.
  package func truth(record: Value, _ value: (Name) -> Value) -> Bool? {
    func held(_ field: PredicateField) -> Value {
      switch field {
      case .column(let name): value(name)
      case .record: record
      }
    }
    switch self {
    case .always: return true
    case .compare(let field, let comparison, let other):
      return StorageOrder.compare(held(field), other).map(comparison.holds)
    case .among(let field, let values): return Self.truth(of: held(field), among: values)
    case .isNull(let field): return held(field).isUnknown
    case .isNotNull(let field): return !held(field).isUnknown
    case .not(let part): return part.truth(record: record, value).map { !$0 }
    case .and(let parts):
      return Self.fold(parts, stopsAt: false) { $0.truth(record: record, value) }
    case .or(let parts):
      return Self.fold(parts, stopsAt: true) { $0.truth(record: record, value) }
    }
  }

  /// Evaluates SQLite's IN: false for an empty list and any value, unknown if NULL is on either
  /// side and decides (https://sqlite.org/lang_expr.html#in_op).
  private static func truth(of held: Value, among values: [Value]) -> Bool? {
    if values.isEmpty { return false }
    return fold(values, stopsAt: true) { value in
      StorageOrder.compare(held, value).map { $0 == 0 }
    }
  }

  /// Evaluates `and`, which stops at false, or `or`, which stops at true. An unknown part makes the
  /// result unknown unless another one decides.
  private static func fold<T>(
    _ parts: [T], stopsAt decisive: Bool, _ truth: (T) -> Bool?
  ) -> Bool? {
    var answer: Bool? = !decisive
    for part in parts {
      guard let known = truth(part) else {
        answer = nil
        continue
      }
      if known == decisive { return decisive }
    }
    return answer
  }
}

extension PredicateComparison {
  /// Returns `true` if it holds for a left side that is less (−1), equal (0) or greater (1).
  package func holds(_ order: Int) -> Bool {
    switch self {
    case .equal: order == 0
    case .unequal: order != 0
    case .less: order < 0
    case .lessOrEqual: order <= 0
    case .greater: order > 0
    case .greaterOrEqual: order >= 0
    }
  }
}

extension Value {
  /// NULL, and NaN, which SQLite stores as NULL.
  fileprivate var isUnknown: Bool {
    switch self {
    case .null: true
    case .real(let real): real.isNaN
    case .integer, .text, .blob: false
    }
  }
}

/// SQLite's order of values between storage classes, collation BINARY
/// (https://sqlite.org/datatype3.html §4.1).
enum StorageOrder {
  /// Returns −1, 0 or 1; `nil` if NULL is on either side.
  static func compare(_ left: Value, _ right: Value) -> Int? {
    if left.isUnknown || right.isUnknown { return nil }
    switch (left, right) {
    case (.integer(let left), .integer(let right)): return sign(left, right)
    case (.real(let left), .real(let right)): return sign(left, right)
    case (.integer(let left), .real(let right)): return compare(left, right)
    case (.real(let left), .integer(let right)): return -compare(right, left)
    case (.text(let left), .text(let right)): return compareBytes(left.utf8, right.utf8)
    case (.blob(let left), .blob(let right)): return compareBytes(left, right)
    default: return sign(rank(left), rank(right))
    }
  }

  private static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  /// Compares exactly, even if a conversion to double would lose digits (as sqlite3IntFloatCompare
  /// does).
  private static func compare(_ integer: Int64, _ real: Double) -> Int {
    if real >= 0x1p63 { return -1 }
    if real < -0x1p63 { return 1 }
    let whole = Int64(real.rounded(.towardZero))
    return integer == whole ? sign(Double(whole), real) : sign(integer, whole)
  }

  private static func sign<T: Comparable>(_ left: T, _ right: T) -> Int {
    left < right ? -1 : left > right ? 1 : 0
  }

  private static func compareBytes<T: Collection<UInt8>>(_ left: T, _ right: T) -> Int {
    if left.lexicographicallyPrecedes(right) { return -1 }
    return right.lexicographicallyPrecedes(left) ? 1 : 0
  }
}
