import FerryPersistence
import FerryProtocol

/// The condition of a page's query or batch: the JSON of SPEC.md §14, never SQL.
enum PagePredicate {
  /// Reads a condition. True and false count as 1 and 0.
  static func read(_ value: ServiceValue?) throws(ServiceError) -> RecordPredicate {
    guard let value, value != .null else { return .always }
    let predicate: RecordPredicate
    do throws(MalformedMessage) {
      predicate = try ServiceValue.read(value.withTruthsAsIntegers.json) {
        (reader) throws(MalformedMessage) in
        try RecordPredicate(from: &reader, limits: .standard)
      }
    } catch {
      throw ServiceError("invalid_argument", "where: \(error.reason)")
    }
    if let fault = predicate.fault() { throw ServiceError("invalid_argument", "where: \(fault)") }
    return predicate
  }

  /// Returns the condition of a query.
  ///
  /// - Parameter key: the table's key column, for `{"key":true}`.
  static func condition(
    _ predicate: RecordPredicate, key: Name?
  ) throws(ServiceError) -> Condition {
    switch predicate {
    case .always: return .always
    case .compare(let field, let comparison, let value):
      return .compare(try column(field, key), comparison, value)
    case .among(let field, let values): return .among(try column(field, key), values)
    case .isNull(let field): return .isNull(try column(field, key))
    case .isNotNull(let field): return .not(.isNull(try column(field, key)))
    case .and(let parts): return .and(try conditions(parts, key))
    case .or(let parts): return .or(try conditions(parts, key))
    case .not(let part): return .not(try condition(part, key: key))
    }
  }

  private static func conditions(
    _ parts: [RecordPredicate], _ key: Name?
  ) throws(ServiceError) -> [Condition] {
    var conditions: [Condition] = []
    for part in parts { conditions.append(try condition(part, key: key)) }
    return conditions
  }

  private static func column(_ field: PredicateField, _ key: Name?) throws(ServiceError) -> Name {
    switch field {
    case .column(let name): return name
    case .record:
      if let key { return key }
      throw ServiceError("invalid_argument", "the table has no key of one column")
    }
  }
}

extension ServiceValue {
  fileprivate var withTruthsAsIntegers: ServiceValue {
    switch self {
    case .bool(let bool): .integer(bool ? 1 : 0)
    case .list(let elements): .list(elements.map(\.withTruthsAsIntegers))
    // {"key":true} keeps the truth value.
    default: self
    }
  }
}
