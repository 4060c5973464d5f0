extension SpaceSchema {
  /// The rules that decide about an authority's operations (SPEC.md §40).
  package var forAuthority: SpaceSchema {
    var schema = self
    schema.tables = tables.mapValues(\.forAuthority)
    return schema
  }
}

extension TableRules {
  /// The rules that decide about an authority's operations: time alone decides between two values,
  /// and sums and texts are still merged. No rule refuses a value.
  package var forAuthority: TableRules {
    var rules = self
    rules.isAuthority = true
    rules.policy = policy.forAuthority
    rules.write = .writer
    rules.columns = columns.mapValues { column in
      ColumnRules(
        policy: column.policy?.forAuthority, type: .any, isRequired: false,
        aliases: column.aliases)
    }
    // An edit wins against a delete of others; the authority's own delete always wins.
    if deletes == .ask { rules.deletes = .editWins }
    return rules
  }
}

extension ConflictPolicy {
  fileprivate var forAuthority: ConflictPolicy {
    switch self {
    case .serverWins, .ask, .max, .min, .setUnion: .lastWriterWins
    case .lastWriterWins, .clientWins, .counter, .textMerge: self
    }
  }
}
