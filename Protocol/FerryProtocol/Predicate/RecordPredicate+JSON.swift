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

extension RecordPredicate {
  /// Reads a predicate within the limits on depth and size.
  package init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var room = PredicateRoom(depth: limits.predicateDepth, nodes: limits.predicateNodes)
    try self.init(from: &reader, &room, limits)
  }

  fileprivate init(
    from reader: inout JSONReader, _ room: inout PredicateRoom, _ limits: Limits
  ) throws(MalformedMessage) {
    guard room.depth > 0 else { throw reader.malformed("a predicate is nested too deep") }
    try room.enterNode(reader)
    room.depth -= 1
    var parts = PredicateParts()
    try reader.array { (reader) throws(MalformedMessage) in
      try parts.readElement(from: &reader, &room, limits)
    }
    room.depth += 1
    self = try parts.predicate(reader)
  }
}

/// The remaining depth and nodes of a predicate while it is read.
private struct PredicateRoom {
  var depth: Int
  var nodes: Int

  mutating func enterNode(_ reader: JSONReader) throws(MalformedMessage) {
    guard nodes > 0 else { throw reader.malformed("a predicate has too many parts") }
    nodes -= 1
  }
}

extension PredicateField {
  fileprivate init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    if try reader.peek() == 0x22 {
      let name = try reader.name()
      if let fault = NameRule.fault(in: name, limits: limits) { throw reader.malformed(fault) }
      self = .column(name)
      return
    }
    var isKey = false
    try reader.object { (key, reader) throws(MalformedMessage) in
      guard "key" ~= key, !isKey, try reader.bool() else {
        throw reader.malformed("a predicate's column is a name or {\"key\":true}")
      }
      isKey = true
    }
    guard isKey else {
      throw reader.malformed("a predicate's column is a name or {\"key\":true}")
    }
    self = .record
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

  mutating func readElement(
    from reader: inout JSONReader, _ room: inout PredicateRoom, _ limits: Limits
  ) throws(MalformedMessage) {
    switch form {
    case nil:
      let name = try reader.string()
      guard let form = Form(name: name) else {
        throw reader.malformed("'\(name.prefix(40))' begins no predicate")
      }
      self.form = form
    case .always: throw reader.malformed("\"always\" takes no values")
    case .and, .or, .not: children.append(try RecordPredicate(from: &reader, &room, limits))
    case .compare, .among, .isNull, .isNotNull:
      guard field != nil else {
        field = try PredicateField(from: &reader, limits: limits)
        return
      }
      try room.enterNode(reader)
      values.append(try reader.value(limits: limits))
    }
  }

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
