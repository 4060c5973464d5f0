extension RecordPredicate {
  /// The highest cost of one evaluation: operators, comparisons and values, and the length of
  /// values, which are compared byte by byte (SPEC.md §14).
  package var cost: Int {
    switch self {
    case .always, .isNull, .isNotNull: 1
    case .compare(_, _, let value): 1 + value.cost
    case .among(_, let values): values.reduce(1) { $0 + $1.cost }
    case .not(let part): 1 + part.cost
    case .and(let parts), .or(let parts): parts.reduce(1) { $0 + $1.cost }
    }
  }

  /// The identifiers of the only possible matches; `nil` if any record can match.
  package var records: [Name]? {
    switch self {
    case .compare(.record, .equal, let value): [value].compactMap(\.recordID)
    case .among(.record, let values): values.compactMap(\.recordID)
    case .and(let parts): parts.compactMap(\.records).min { $0.count < $1.count }
    case .or(let parts):
      parts.reduce([]) { known, part in
        guard let known, let more = part.records else { return nil }
        return known + more
      }
    case .always, .compare, .among, .isNull, .isNotNull, .not: nil
    }
  }
}

extension Value {
  /// Bytes compared in about the time of one number.
  private static let bytesPerStep = 64

  fileprivate var cost: Int {
    switch self {
    case .null, .integer, .real: 1
    case .text(let text): 1 + text.utf8.count / Self.bytesPerStep
    case .blob(let blob): 1 + blob.count / Self.bytesPerStep
    }
  }

  /// Identifiers are text, and nothing else equals them.
  fileprivate var recordID: Name? {
    if case .text(let text) = self { Name(text) } else { nil }
  }
}
