/// A predicate as SQL, for a device's own table: the text of an expression, and the values to bind
/// to the question marks in order.
public struct PredicateSQL: Sendable, Equatable {
  /// An expression for WHERE, with one `?` for each value.
  public let text: String
  /// The values, in the order of their question marks.
  public let values: [Value]
}

extension RecordPredicate {
  /// Returns the expression that is true of exactly the matching rows.
  ///
  /// A unary plus removes a column's affinity, and COLLATE the collation
  /// (https://sqlite.org/datatype3.html §3.2, §7.1): both would change the equality of values.
  /// Columns are named with their table, since SQLite reads an unknown quoted name as text.
  ///
  /// - Parameter key: The table's own key column.
  public func sql(table: Name, key: Name) -> PredicateSQL {
    let place = quoted(table)
    return sql { field in
      switch field {
      case .column(let name): "\(place).\(quoted(name))"
      case .record: "\(place).\(quoted(key))"
      }
    }
  }

  /// Returns the same expression.
  ///
  /// - Parameter operand: returns the SQL of a column, with the table.
  package func sql(operand: @escaping (PredicateField) -> String) -> PredicateSQL {
    var writer = SQLWriter(place: operand)
    writer.write(normalized)
    return PredicateSQL(text: writer.text, values: writer.values)
  }
}

private struct SQLWriter {
  let place: (PredicateField) -> String
  var text = ""
  var values: [Value] = []

  init(place: @escaping (PredicateField) -> String) { self.place = place }

  mutating func write(_ predicate: RecordPredicate) {
    switch predicate {
    case .always: text += "1"
    case .compare(let field, let comparison, let value):
      text += "\(operand(field)) \(comparison.rawValue) ?"
      values.append(value)
    case .among(let field, let list):
      text += "\(operand(field)) IN (" + list.map { _ in "?" }.joined(separator: ", ") + ")"
      values += list
    case .isNull(let field): text += "\(operand(field)) IS NULL"
    case .isNotNull(let field): text += "\(operand(field)) IS NOT NULL"
    case .not(let part):
      text += "NOT ("
      write(part)
      text += ")"
    case .and(let parts): join(parts[...], " AND ")
    case .or(let parts): join(parts[...], " OR ")
    }
  }

  private func operand(_ field: PredicateField) -> String {
    "((+\(place(field))) COLLATE BINARY)"
  }

  /// Joins in halves: SQLite's parser bounds the depth of an expression, not the length.
  private mutating func join(_ parts: ArraySlice<RecordPredicate>, _ word: String) {
    guard parts.count > 1, let first = parts.indices.first else {
      if let only = parts.first { bracketed { $0.write(only) } }
      return
    }
    let middle = first + parts.count / 2
    bracketed { $0.join(parts[..<middle], word) }
    text += word
    bracketed { $0.join(parts[middle...], word) }
  }

  private mutating func bracketed(_ body: (inout SQLWriter) -> Void) {
    text += "("
    body(&self)
    text += ")"
  }
}
