// A predicate in JSON (SPEC.md §14): an array whose first element names the predicate.
//   ["always"]                       ["=","done",0]   and <> < <= > >=
//   ["in","due","a","b"]             ["is null","due"]    ["is not null","due"]
//   ["and",p,q,…]   ["or",p,q,…]     ["not",p]
// {"key":true} in a column's place stands for the record's identifier.

extension JSONWriter {
  /// Writes a predicate in normalised form.
  package mutating func predicate(_ predicate: RecordPredicate) { normalized(predicate.normalized) }

  private mutating func normalized(_ predicate: RecordPredicate) {
    array { json in
      switch predicate {
      case .always: json.elements("always")
      case .compare(let field, let comparison, let value):
        json.elements(comparison.rawValue, field, [value])
      case .among(let field, let values): json.elements("in", field, values)
      case .isNull(let field): json.elements("is null", field)
      case .isNotNull(let field): json.elements("is not null", field)
      case .and(let parts): json.elements("and", parts)
      case .or(let parts): json.elements("or", parts)
      case .not(let part): json.elements("not", [part])
      }
    }
  }

  private mutating func elements(_ name: String, _ field: PredicateField, _ values: [Value] = []) {
    elements(name)
    element()
    switch field {
    case .column(let column): string(column)
    case .record: object { $0.member("key", true) }
    }
    for value in values {
      element()
      self.value(value)
    }
  }

  private mutating func elements(_ name: String, _ parts: [RecordPredicate] = []) {
    element()
    string(name)
    for part in parts {
      element()
      normalized(part)
    }
  }
}

extension JSONReader {
  /// Returns a predicate within the limits on depth and size.
  package mutating func predicate(limits: Limits) throws(MalformedMessage) -> RecordPredicate {
    var nodes = limits.predicateNodes
    return try predicate(depth: limits.predicateDepth, &nodes, limits)
  }

  private mutating func predicate(
    depth: Int, _ nodes: inout Int, _ limits: Limits
  ) throws(MalformedMessage) -> RecordPredicate {
    guard depth > 0 else { throw malformed("a predicate is nested too deep") }
    try parseNode(&nodes)
    var parts = PredicateParts()
    try array { (reader) throws(MalformedMessage) in
      try reader.element(of: &parts, depth: depth, &nodes, limits)
    }
    return try parts.predicate(self)
  }

  private func parseNode(_ nodes: inout Int) throws(MalformedMessage) {
    guard nodes > 0 else { throw malformed("a predicate has too many parts") }
    nodes -= 1
  }

  private mutating func element(
    of parts: inout PredicateParts, depth: Int, _ nodes: inout Int, _ limits: Limits
  ) throws(MalformedMessage) {
    switch parts.form {
    case nil:
      let name = try string()
      guard let form = PredicateParts.Form(name: name) else {
        throw malformed("'\(name.prefix(40))' begins no predicate")
      }
      parts.form = form
    case .always: throw malformed("\"always\" takes no values")
    case .and, .or, .not:
      parts.children.append(try predicate(depth: depth - 1, &nodes, limits))
    case .compare, .among, .isNull, .isNotNull:
      guard parts.field != nil else { return parts.field = try field(limits: limits) }
      try parseNode(&nodes)
      parts.values.append(try value(limits: limits))
    }
  }

  private mutating func field(limits: Limits) throws(MalformedMessage) -> PredicateField {
    if try peek() == 0x22 {
      let name = try self.name()
      if let fault = NameRule.fault(in: name, limits: limits) { throw malformed(fault) }
      return .column(name)
    }
    var isKey = false
    try object { (key, reader) throws(MalformedMessage) in
      guard "key" ~= key, !isKey, try reader.bool() else {
        throw reader.malformed("a predicate's column is a name or {\"key\":true}")
      }
      isKey = true
    }
    guard isKey else { throw malformed("a predicate's column is a name or {\"key\":true}") }
    return .record
  }
}

/// A predicate while it is read.
private struct PredicateParts {
  enum Form {
    case always, among, isNull, isNotNull, and, or, not
    case compare(PredicateComparison)

    init?(name: String) {
      switch name {
      case "always": self = .always
      case "in": self = .among
      case "is null": self = .isNull
      case "is not null": self = .isNotNull
      case "and": self = .and
      case "or": self = .or
      case "not": self = .not
      default:
        guard let comparison = PredicateComparison(rawValue: name) else { return nil }
        self = .compare(comparison)
      }
    }
  }

  var form: Form?
  var field: PredicateField?
  var values: [Value] = []
  var children: [RecordPredicate] = []

  func predicate(_ reader: JSONReader) throws(MalformedMessage) -> RecordPredicate {
    switch (form, field) {
    case (nil, _): throw reader.malformed("a predicate is an array that begins with a word")
    case (.always, _): return .always
    case (.and, _) where children.count >= 2: return .and(children)
    case (.or, _) where children.count >= 2: return .or(children)
    case (.and, _), (.or, _): throw reader.malformed("\"and\" and \"or\" join two or more")
    case (.not, _) where children.count == 1: return .not(children[0])
    case (.not, _): throw reader.malformed("\"not\" takes one predicate")
    case (_, nil): throw reader.malformed("a predicate names no column")
    case (.compare(let comparison), .some(let field)) where values.count == 1:
      return .compare(field, comparison, values[0])
    case (.compare, _): throw reader.malformed("a comparison takes one value")
    case (.among, .some(let field)): return .among(field, values)
    case (.isNull, .some(let field)) where values.isEmpty: return .isNull(field)
    case (.isNotNull, .some(let field)) where values.isEmpty: return .isNotNull(field)
    case (.isNull, _), (.isNotNull, _): throw reader.malformed("a test for NULL takes no value")
    }
  }
}
