import FerryProtocol
import FerrySQLite

/// A query as SQL over the rows of a source, with a question mark for each value. Every column is
/// checked: SQLite would read an unknown name in quotes as a text.
struct QuerySQL {
  /// The name of the source in the statement.
  static let alias = quoted("r")
  /// SQLite's own name of a row's number (https://sqlite.org/rowidtable.html).
  static let rowNumber: Name = "rowid"

  private let source: TableSource
  private var text = ""
  private var values: [Value] = []

  private init(_ source: TableSource) { self.source = source }

  /// Returns the SELECT of a query.
  static func select(
    _ query: Query, from source: TableSource
  ) throws -> (sql: String, values: [Value]) {
    var sql = QuerySQL(source)
    let names = query.selection.isEmpty ? source.info.columns.map(\.name) : query.selection
    let columns = try names.map { try sql.column($0) }.joined(separator: ", ")
    sql.text = "SELECT \(query.isDistinct ? "DISTINCT " : "")\(columns)"
    try sql.rest(of: query)
    return (sql.text, sql.values)
  }

  /// Returns the SELECT of the number of a query's rows.
  static func count(
    _ query: Query, from source: TableSource
  ) throws -> (sql: String, values: [Value]) {
    if query.isDistinct || query.limit != nil || query.offset != 0 {
      let (sql, values) = try select(query, from: source)
      return ("SELECT count(*) FROM (\(sql))", values)
    }
    var sql = QuerySQL(source)
    sql.text = "SELECT count(*)"
    var bare = query
    bare.ordering = []
    try sql.rest(of: bare)
    return (sql.text, sql.values)
  }

  /// Returns an UPDATE (`verb` has the assignments) or DELETE of the rows that fulfil a condition.
  static func change(
    _ verb: String, _ assigned: [Value], where condition: Condition, of source: TableSource
  ) throws -> (sql: String, values: [Value]) {
    var sql = QuerySQL(source)
    (sql.text, sql.values) = (verb, assigned)
    try sql.condition(condition)
    return (sql.text, sql.values)
  }

  // MARK: Clauses

  private mutating func rest(of query: Query) throws {
    text += " FROM \(source.sql)"
    try condition(query.condition)
    if !query.ordering.isEmpty {
      text += " ORDER BY "
      text += try query.ordering.map {
        try column($0.name) + ($0.isDescending ? " DESC" : "")
      }.joined(separator: ", ")
    }
    guard query.limit != nil || query.offset != 0 else { return }
    guard query.limit ?? 0 >= 0, query.offset >= 0 else {
      throw RecordError(
        .invalid, table: source.info.name,
        "table \(source.info.name): a limit of \(query.limit ?? 0) rows with offset "
          + "\(query.offset) is not possible; both must be 0 or more")
    }
    text += " LIMIT ? OFFSET ?"
    values += [.integer(Int64(query.limit ?? -1)), .integer(Int64(query.offset))]
  }

  private mutating func condition(_ condition: Condition) throws {
    if condition == .always { return }
    text += " WHERE "
    try write(condition)
  }

  private func column(_ name: Name) throws -> String {
    if name == Self.rowNumber && source.parts.count == 1 { return "\(Self.alias).rowid" }
    return "\(Self.alias).\(quoted(try source.info.column(name).name))"
  }

  // MARK: Conditions

  private mutating func write(_ condition: Condition) throws {
    switch condition {
    case .always: text += "1"
    case .compare(let name, let comparison, let value):
      try write(name, " \(comparison.rawValue) ?", [value])
    case .among(let name, let list):
      let marks = list.map { _ in "?" }.joined(separator: ", ")
      try write(name, " IN (\(marks))", list)
    case .between(let name, let low, let high):
      try write(name, " BETWEEN ? AND ?", [low, high])
    case .like(let name, let pattern): try write(name, " LIKE ? ESCAPE '\\'", [.text(pattern)])
    case .isNull(let name): try write(name, " IS NULL", [])
    case .not(let part):
      text += "NOT "
      try bracketed { try $0.write(part) }
    case .and(let parts): try join(parts[...], " AND ", empty: "1")
    case .or(let parts): try join(parts[...], " OR ", empty: "0")
    }
  }

  private mutating func write(_ name: Name, _ rest: String, _ bound: [Value]) throws {
    text += try column(name) + rest
    values += bound
  }

  /// Joins in halves: SQLite's parser bounds the depth of an expression, not the length.
  private mutating func join(
    _ parts: ArraySlice<Condition>, _ word: String, empty: String
  ) throws {
    guard let first = parts.first else { return text += empty }
    guard parts.count > 1 else { return try bracketed { try $0.write(first) } }
    let middle = parts.startIndex + parts.count / 2
    try bracketed { try $0.join(parts[..<middle], word, empty: empty) }
    text += word
    try bracketed { try $0.join(parts[middle...], word, empty: empty) }
  }

  private mutating func bracketed(_ body: (inout QuerySQL) throws -> Void) throws {
    text += "("
    try body(&self)
    text += ")"
  }
}

/// The rows read by a query.
struct SourceQuery {
  private let source: TableSource
  let condition: Condition

  init(_ source: TableSource, _ condition: Condition) {
    (self.source, self.condition) = (source, condition)
  }

  /// Returns the table if the query's statement reads only rows of it that fulfil the condition;
  /// `nil` if it reads other rows or several tables, such as those behind a view.
  func onlyTable(of statement: SQLiteStatement) -> String? {
    let read = statement.tables.read
    guard condition != .always, source.parts.count == 1, read.count == 1, let table = read.first,
      Name(table).folded == source.info.name.folded
    else { return nil }
    return table
  }
}
