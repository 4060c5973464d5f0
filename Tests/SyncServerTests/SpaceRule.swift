/// The rule that makes a statement distributable: each reference to a table distributed by the
/// space is compared with the space. It is compared as `space = $1`, in the same query or by an
/// inner join.
///
/// Citus sends such a statement whole to the one worker that has the space's rows. It does not
/// derive the comparison from an outer join's condition, nor from a query around a subquery.
struct SpaceRule {
  /// The tables distributed by the space, each with the space's column.
  let columns: [String: String]

  /// Returns the references of a statement without a comparison with the space, as names of tables.
  func violations(in sql: String) -> [String] {
    var level = Level(rule: self)
    level.take(SQLNode.parse(sql))
    return level.violations
  }
}

/// A token of SQL, or the contents of a pair of parentheses.
private enum SQLNode {
  case token(Substring)
  case group([SQLNode])

  static func parse(_ sql: String) -> [SQLNode] {
    var open: [[SQLNode]] = [[]]
    for token in tokens(of: sql) {
      switch token {
      case "(": open.append([])
      case ")":
        let group = open.removeLast()
        open[open.count - 1].append(.group(group))
      default: open[open.count - 1].append(.token(token))
      }
    }
    return open[0]
  }

  /// Texts are one token, and so is a name with a table, as in `r.space`.
  private static func tokens(of sql: String) -> [Substring] {
    let name = #"[A-Za-z_]\w*(?:\.[A-Za-z_*]\w*)?"#
    guard let token = try? Regex(#"'[^']*'|"[^"]*"|\$\d+|"# + name + #"|\d+|<=|>=|\S"#) else {
      preconditionFailure("the pattern of a token is wrong")
    }
    return sql.matches(of: token).map { sql[$0.range] }
  }

  var token: String? { if case .token(let token) = self { token.lowercased() } else { nil } }

  /// Whether this is a query in parentheses.
  var isQuery: Bool {
    guard case .group(let nodes) = self, let first = nodes.first?.token else { return false }
    return ["select", "with", "insert", "update", "delete"].contains(first)
  }
}

/// One query, without the queries in it.
private struct Level {
  let rule: SpaceRule
  private(set) var violations: [String] = []
  /// Tables by their names in the query.
  private var references: [(name: String, table: String)] = []
  private var compared: Set<String> = []
  private var joins: [(String, String)] = []
  /// New rows of a query, each with the column of the space.
  private var insertions: [(String, String)] = []
  private var words: [String] = []

  init(rule: SpaceRule) { self.rule = rule }

  mutating func take(_ nodes: [SQLNode]) {
    gather(nodes)
    readTables()
    for (name, column) in insertions {
      if let source = reference(column) { joins.append((name, source)) }
    }
    readComparisons()
    var isGrowing = true
    while isGrowing {
      let before = compared.count
      for (one, other) in joins where compared.contains(one) || compared.contains(other) {
        compared.formUnion([one, other])
      }
      isGrowing = compared.count > before
    }
    violations += references.filter { !compared.contains($0.name) }.map(\.table)
  }

  /// Lists the words of this query, and checks the queries in it.
  private mutating func gather(_ nodes: [SQLNode]) {
    for node in nodes {
      switch node {
      case .token: words.append(node.token ?? "")
      case .group(let inner) where node.isQuery:
        var query = Level(rule: rule)
        query.take(inner)
        violations += query.violations
        words.append("(query)")
      case .group(let inner):
        words.append("(")
        gather(inner)
        words.append(")")
      }
    }
  }

  private mutating func readTables() {
    // A table follows one of these, or a comma between tables.
    let openers: Set = ["from", "join", "into", "update", "using"]
    let closers: Set = [
      "where", "set", "group", "order", "limit", "returning", "on", "select", "values", "offset",
      "for", "(",
    ]
    var isList = false
    for (index, word) in words.enumerated() {
      if openers.contains(word) { isList = word != "into" && word != "update" }
      if closers.contains(word) { isList = false }
      let before = index > 0 ? words[index - 1] : ""
      guard rule.columns[word] != nil, openers.contains(before) || isList && before == "," else {
        continue
      }
      var name = word
      if words.dropFirst(index + 1).first == "as" { name = words[index + 2] }
      references.append((name, word))
      if before == "into" { readInsertion(into: name, word, at: index) }
    }
  }

  /// A new row has the space first: a parameter, or the space of another table.
  private mutating func readInsertion(into name: String, _ table: String, at index: Int) {
    let rest = words.dropFirst(index + 1)
    guard rest.starts(with: ["(", rule.columns[table] ?? ""]),
      let end = rest.firstIndex(of: ")")
    else { return }
    let values = Array(words[(end + 1)...].prefix(3))
    if values.first == "values", values.last?.hasPrefix("$") == true { compared.insert(name) }
    if values.first == "select", let column = values.dropFirst().first {
      insertions.append((name, column))
    }
  }

  private mutating func readComparisons() {
    // Conditions count in WHERE, and in ON of an inner join.
    var counts = false
    for (index, word) in words.enumerated() {
      switch word {
      case "where": counts = true
      case "on": counts = !isOuterJoin(before: index)
      case "from", "join", "using", "set", "returning", "order", "group", "select": counts = false
      default: break
      }
      guard word == "=", counts, index > 0, index + 1 < words.count else { continue }
      // The left side has to be the column alone, not the end of an expression.
      let before = index > 1 ? words[index - 2] : ""
      guard ["where", "and", "on", "("].contains(before) else { continue }
      guard let left = reference(words[index - 1]) else { continue }
      if words[index + 1].hasPrefix("$") {
        compared.insert(left)
      } else if let right = reference(words[index + 1]) {
        joins.append((left, right))
      }
    }
  }

  private func isOuterJoin(before index: Int) -> Bool {
    guard let join = words[..<index].lastIndex(of: "join"), join > 0 else { return false }
    return ["left", "right", "full", "outer"].contains(words[join - 1])
  }

  /// Returns the name of the table whose space a column is.
  private func reference(_ column: String) -> String? {
    let parts = column.split(separator: ".")
    let (name, last) = (parts.count == 2 ? String(parts[0]) : nil, String(parts.last ?? ""))
    let found = references.filter { reference in
      rule.columns[reference.table] == last && (name == nil || name == reference.name)
    }
    return found.count == 1 ? found[0].name : nil
  }
}
