import FerryProtocol

/// The reason of a deferred change whose table or column is spelled differently here: a pure rule
/// (SPEC.md §23).
enum SpellingFault {
  /// Returns the reason if the table or a column has another spelling here, or if another column has
  /// the name; `nil` for any other reason.
  ///
  /// - Parameter table: the change's table in this file; `nil` without one.
  static func reason(of change: Change, in table: TableSchema?) -> String? {
    guard let table else { return nil }
    guard table.name == change.key.table else {
      return
        "its table is \(change.key.table), but SQLite uses the existing table \(table.name) for this "
        + "name, and the space has both. Write its rows to one of them"
    }
    return change.state.columns.lazy.compactMap { reason(of: $0.name, in: table) }.first
  }

  private static func reason(of column: Name, in table: TableSchema) -> String? {
    let isKnown = table.columns.contains { $0.name == column }
    if !isKnown, let own = table.columns.first(where: { $0.local == column }) {
      return
        "the column \(own.local) here is the column \(own.name) of the space. To have the space's "
        + "column \(column), give the one here another name, and add \(column)"
    }
    let others = table.keys.map(\.local) + table.columns.map(\.name)
    guard let other = others.first(where: { $0.folded == column.folded }), other != column else {
      return nil
    }
    return
      "SQLite uses the existing column \(other) for its column \(column), and the space has both. "
      + "To have its values here, replace the column: drop \(other), and add \(column)"
  }
}
