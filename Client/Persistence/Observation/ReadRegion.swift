/// The part of a file that the result of a query depends on.
package struct ReadRegion: Sendable, Equatable {
  /// Rows of one table: those that fulfil one of the conditions.
  struct Rows: Sendable, Equatable {
    /// True if they are all rows of the table.
    private(set) var isAll = false
    private(set) var conditions: Set<Condition> = []
    /// The number of comparisons with values in the conditions.
    private(set) var valueCount = 0

    static let all = Rows(isAll: true)

    fileprivate mutating func add(_ condition: Condition) {
      guard !isAll, conditions.insert(condition).inserted else { return }
      valueCount += condition.valueCount
      if valueCount > ReadRegion.valuesMax { self = .all }
    }
  }

  /// The most values in the conditions of a table. With more, the query depends on all rows of the
  /// table.
  static let valuesMax = 4_096

  /// The tables read, with their rows.
  private(set) var tables: [String: Rows] = [:]

  /// Adds all rows of tables.
  mutating func add(_ names: some Sequence<String>) { for name in names { tables[name] = .all } }

  /// Adds the rows of a table that fulfil a condition.
  mutating func add(_ table: String, where condition: Condition) {
    tables[table, default: Rows()].add(condition)
  }

  /// Returns true if only some rows of a table count.
  func hasConditions(on table: String) -> Bool { tables[table].map { !$0.isAll } ?? false }
}

extension Condition {
  /// The number of comparisons with values.
  var valueCount: Int {
    switch self {
    case .always, .compare, .like, .isNull: 1
    case .between: 2
    case .among(_, let values): values.count + 1
    case .and(let parts), .or(let parts): parts.reduce(1) { $0 + $1.valueCount }
    case .not(let part): part.valueCount
    }
  }
}
