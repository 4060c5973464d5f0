/// A typed condition on one record, never SQL, for the records of a batch operation (SPEC.md §14).
///
/// It has the meaning of the same words in SQLite, without column affinity and with collation
/// BINARY. So every replica gives the same answer, with any declared types of its columns:
/// - NULL makes a comparison unknown, `and`, `or` and `not` know three truths
///   (https://sqlite.org/nulls.html), and only a true condition matches;
/// - values of different storage classes are ordered numbers, text, blobs; integers and reals are
///   compared exactly, text and blobs by their bytes (https://sqlite.org/datatype3.html §4.1);
/// - a missing column of a record is NULL.
public indirect enum RecordPredicate: Sendable, Equatable {
  /// Every record.
  case always
  /// A column against a value; never true of NULL.
  case compare(PredicateField, PredicateComparison, Value)
  /// A column equals one of the values.
  case among(PredicateField, [Value])
  /// A column is NULL, or absent.
  case isNull(PredicateField)
  /// A column holds something.
  case isNotNull(PredicateField)
  /// All of them; true if there are none.
  case and([RecordPredicate])
  /// One of them at least; false if there are none.
  case or([RecordPredicate])
  /// The opposite; unknown stays unknown.
  case not(RecordPredicate)
}

/// The operand of a comparison.
public enum PredicateField: Sendable, Hashable {
  /// A column by name.
  case column(Name)
  /// The record's identifier, in the key column of each replica's own table.
  case record
}

/// The comparison of a column with a value.
public enum PredicateComparison: String, Sendable, CaseIterable {
  case equal = "="
  case unequal = "<>"
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
}

extension RecordPredicate {
  /// The same condition, in which every `and` and `or` has two parts or more: a single part
  /// replaces it. Predicates are sent and printed in this form.
  public var normalized: RecordPredicate {
    switch self {
    case .always, .compare, .among, .isNull, .isNotNull: return self
    case .not(let part): return .not(part.normalized)
    case .and(let parts):
      if parts.isEmpty { return .always }
      return parts.count == 1 ? parts[0].normalized : .and(parts.map(\.normalized))
    case .or(let parts):
      if parts.isEmpty { return .not(.always) }
      return parts.count == 1 ? parts[0].normalized : .or(parts.map(\.normalized))
    }
  }

  /// Returns the reason why it cannot be sent, or `nil` when it can.
  public func fault(limits: Limits = .standard) -> String? {
    if depth > limits.predicateDepth {
      return "a predicate is nested at most \(limits.predicateDepth) deep"
    }
    if nodes > limits.predicateNodes {
      return "a predicate has at most \(limits.predicateNodes) comparisons, values and operators"
    }
    return detailFault(limits)
  }

  /// All named columns, sorted, each once.
  package var columns: [Name] {
    var names = Set<Name>()
    visitFields { if case .column(let name) = $0 { names.insert(name) } }
    return names.sorted()
  }

  /// Returns the same with other fields in the place of these.
  package func mapFields<E: Error>(
    _ change: (PredicateField) throws(E) -> PredicateField
  ) throws(E) -> RecordPredicate {
    switch self {
    case .always: return self
    case .compare(let field, let comparison, let value):
      return .compare(try change(field), comparison, value)
    case .among(let field, let values): return .among(try change(field), values)
    case .isNull(let field): return .isNull(try change(field))
    case .isNotNull(let field): return .isNotNull(try change(field))
    case .not(let part): return .not(try part.mapFields(change))
    case .and(let parts): return .and(try Self.map(parts, change))
    case .or(let parts): return .or(try Self.map(parts, change))
    }
  }

  private static func map<E: Error>(
    _ parts: [RecordPredicate], _ change: (PredicateField) throws(E) -> PredicateField
  ) throws(E) -> [RecordPredicate] {
    var mapped: [RecordPredicate] = []
    for part in parts { mapped.append(try part.mapFields(change)) }
    return mapped
  }

  /// Returns the same condition with other values. `change` returns each of them for a field, the
  /// comparison and the value.
  package func mapValues(
    _ change: (PredicateField, PredicateComparison, Value) throws -> Value
  ) rethrows -> RecordPredicate {
    switch self {
    case .always, .isNull, .isNotNull: self
    case .compare(let field, let comparison, let value):
      .compare(field, comparison, try change(field, comparison, value))
    case .among(let field, let values):
      .among(field, try values.map { try change(field, .equal, $0) })
    case .not(let part): .not(try part.mapValues(change))
    case .and(let parts): .and(try parts.map { try $0.mapValues(change) })
    case .or(let parts): .or(try parts.map { try $0.mapValues(change) })
    }
  }

  // MARK: Measures

  private var depth: Int {
    switch self {
    case .always, .compare, .among, .isNull, .isNotNull: 1
    case .not(let part): 1 + part.depth
    case .and(let parts), .or(let parts): 1 + (parts.map(\.depth).max() ?? 0)
    }
  }

  private var nodes: Int {
    switch self {
    case .always, .isNull, .isNotNull: 1
    case .compare: 2
    case .among(_, let values): 1 + values.count
    case .not(let part): 1 + part.nodes
    case .and(let parts), .or(let parts): parts.reduce(1) { $0 + $1.nodes }
    }
  }

  private func detailFault(_ limits: Limits) -> String? {
    switch self {
    case .always: return nil
    case .compare(let field, _, let value): return field.fault(limits) ?? value.fault(limits)
    case .among(let field, let values):
      return field.fault(limits) ?? values.lazy.compactMap { $0.fault(limits) }.first
    case .isNull(let field), .isNotNull(let field): return field.fault(limits)
    case .not(let part): return part.detailFault(limits)
    case .and(let parts), .or(let parts):
      return parts.lazy.compactMap { $0.detailFault(limits) }.first
    }
  }

  private func visitFields(_ body: (PredicateField) -> Void) {
    switch self {
    case .always: break
    case .compare(let field, _, _), .among(let field, _), .isNull(let field),
      .isNotNull(let field):
      body(field)
    case .not(let part): part.visitFields(body)
    case .and(let parts), .or(let parts): for part in parts { part.visitFields(body) }
    }
  }
}

extension PredicateField {
  fileprivate func fault(_ limits: Limits) -> String? {
    guard case .column(let name) = self else { return nil }
    return NameRule.fault(in: name, limits: limits)
  }
}

extension Value {
  fileprivate func fault(_ limits: Limits) -> String? {
    switch self {
    case .text, .blob:
      return byteCount <= limits.valueBytes
        ? nil : "a value has \(byteCount) bytes; \(limits.valueBytes) are allowed"
    case .real(let real): return real.isNaN ? "NaN is not a value" : nil
    case .null, .integer: return nil
    }
  }
}
