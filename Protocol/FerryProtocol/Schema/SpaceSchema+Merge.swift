/// Documents that replace the schema in force: their losses, and the union of both; pure.
extension SpaceSchema {
  /// Returns the rules and definitions of `former` without a successor in this document, each as a
  /// text such as `the definition of lists`. A rule with another value has a successor.
  public func losses(replacing former: SpaceSchema) -> [String] {
    var losses: [String] = []
    if former.requiresCursor && !requiresCursor { losses.append("requireCursor") }
    if former.minimumProtocol > minimumProtocol { losses.append("minimumProtocol") }
    for (name, table) in former.tables.sorted(by: { $0.key < $1.key }) {
      losses += rules(for: name).losses(replacing: table).map { "\($0) of \(name)" }
    }
    return losses
  }

  /// Returns `former` with the rules and definitions of this document, which count first. It has
  /// this document's version.
  public func merged(into former: SpaceSchema) -> SpaceSchema {
    var merged = former
    merged.version = version
    merged.requiresCursor = requiresCursor || former.requiresCursor
    merged.minimumProtocol = max(minimumProtocol, former.minimumProtocol)
    for (name, table) in tables {
      merged.tables[name] = table.merged(into: former.rules(for: name))
    }
    return merged
  }
}

extension TableRules {
  fileprivate func losses(replacing former: TableRules) -> [String] {
    var losses: [String] = []
    func check(_ name: String, _ isLost: Bool) { if isLost { losses.append(name) } }
    check("the definition", former.definition != nil && definition == nil)
    check("policy", former.policy != policy && policy == .lastWriterWins)
    check("deletes", former.deletes != deletes && deletes == .deleteWins)
    check("write", former.write != write && write == .writer)
    for (name, column) in former.columns.sorted(by: { $0.key < $1.key }) {
      let own = columns[name] ?? ColumnRules()
      check("the policy of column \(name)", column.policy != nil && own.policy == nil)
      check("the type of column \(name)", column.type != own.type && own.type == .any)
      check("required of column \(name)", column.isRequired && !own.isRequired)
      for alias in column.aliases where !own.aliases.contains(alias) {
        losses.append("the alias \(alias) of column \(name)")
      }
    }
    for list in former.unique where !unique.contains(list) {
      losses.append("the unique key (\(list.map(\.text).joined(separator: ", ")))")
    }
    for clash in former.clashes where !clashes.contains(where: { $0.columns == clash.columns }) {
      let columns = clash.columns.map(\.text).joined(separator: ", ")
      losses.append("the clash rule for (\(columns))")
    }
    for alias in former.aliases where !aliases.contains(alias) {
      losses.append("the alias \(alias)")
    }
    return losses
  }

  fileprivate func merged(into former: TableRules) -> TableRules {
    var merged = former
    if policy != .lastWriterWins { merged.policy = policy }
    if deletes != .deleteWins { merged.deletes = deletes }
    if write != .writer { merged.write = write }
    for (name, column) in columns {
      merged.columns[name] = column.merged(into: former.columns[name] ?? ColumnRules())
    }
    merged.unique += unique.filter { !former.unique.contains($0) }
    merged.clashes.removeAll { clash in clashes.contains { $0.columns == clash.columns } }
    merged.clashes += clashes
    merged.aliases += aliases.filter { !former.aliases.contains($0) }
    merged.definition = definition ?? former.definition
    return merged
  }
}

extension ColumnRules {
  fileprivate func merged(into former: ColumnRules) -> ColumnRules {
    var merged = former
    merged.policy = policy ?? former.policy
    if type != .any { merged.type = type }
    merged.isRequired = isRequired || former.isRequired
    merged.aliases += aliases.filter { !former.aliases.contains($0) }
    return merged
  }
}
