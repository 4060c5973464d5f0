extension RecordPredicate {
  /// Returns the predicate in the words for ``init(_:key:limits:)``: a subset of SQL's expressions.
  ///
  /// - Parameter key: The name of the table's key column.
  public func text(key: Name) -> String {
    var writer = PredicateWriter(key: key)
    writer.write(normalized, inside: .top)
    return writer.text
  }
}

private struct PredicateWriter {
  /// The surrounding expression of a part, which decides about brackets.
  enum Place {
    case top
    case and
    case or
  }

  let key: Name
  var text = ""

  init(key: Name) { self.key = key }

  mutating func write(_ predicate: RecordPredicate, inside place: Place) {
    switch predicate {
    case .always: text += "true"
    case .compare(let field, let comparison, let value):
      text += "\(name(field)) \(comparison.rawValue) \(Self.literal(value))"
    case .among(let field, let values):
      let list = values.map(Self.literal).joined(separator: ", ")
      text += "\(name(field)) in (\(list))"
    case .isNull(let field): text += "\(name(field)) is null"
    case .isNotNull(let field): text += "\(name(field)) is not null"
    case .not(let part):
      text += "not ("
      write(part, inside: .top)
      text += ")"
    case .and(let parts): join(parts, " and ", inside: .and, hasBrackets: place == .and)
    case .or(let parts): join(parts, " or ", inside: .or, hasBrackets: place != .top)
    }
  }

  private mutating func join(
    _ parts: [RecordPredicate], _ word: String, inside place: Place, hasBrackets: Bool
  ) {
    if hasBrackets { text += "(" }
    for (index, part) in parts.enumerated() {
      if index > 0 { text += word }
      write(part, inside: place)
    }
    if hasBrackets { text += ")" }
  }

  private func name(_ field: PredicateField) -> String {
    switch field {
    case .column(let name): Self.identifier(name)
    case .record: Self.identifier(key)
    }
  }

  private static func identifier(_ name: Name) -> String {
    PredicateScanner.isPlain(name.text) ? name.text : quoted(name)
  }

  private static func literal(_ value: Value) -> String {
    switch value {
    case .null: return "null"
    case .integer(let integer): return String(integer)
    case .real(let real):
      // SQL has no word for infinity; a literal beyond a double is infinite.
      if real.isInfinite { return real < 0 ? "-9e999" : "9e999" }
      return real.description
    case .text(let text): return quoted(literal: text)
    case .blob(let bytes): return quoted(blob: bytes)
    }
  }
}
