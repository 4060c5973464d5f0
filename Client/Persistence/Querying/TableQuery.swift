import FerryProtocol
import FerrySQLite

/// A query on one table, with the type of the records. A value: it reads the file only when it is
/// run.
///
/// ```swift
/// let open = Note.all.where(Field("done") == false)
/// let notes = try open.order(Field("due").ascending).limit(20).fetch(database)
/// let titles = try open.records(as: Heading.self).fetch(database)
/// ```
public struct TableQuery<R: Record>: Sendable, QueryBuilding {
  let table: Table<R>
  public var query = Query()

  init(table: Table<R>) { self.table = table }

  /// Returns the same query with records of another type.
  public func records<Other: Record>(as type: Other.Type) -> TableQuery<Other> {
    var other = TableQuery<Other>(table: table.records(as: type))
    other.query = query
    return other
  }

  /// Returns all records found.
  ///
  /// - Throws: ``RecordError`` for a column missing from the table, or a value that does not fit
  ///   the property; ``DatabaseError``.
  @inlinable
  public func fetch(_ database: Database) throws -> [R] {
    var records: [R] = []
    try rows(database, isShared: true) {
      records.reserveCapacity($0)
    } each: {
      records.append(try R(row: $0))
    }
    return records
  }

  /// Returns the first record found; `nil` if there is none.
  public func first(_ database: Database) throws -> R? {
    var copy = self
    copy.query.limit = min(query.limit ?? 1, 1)
    return try copy.fetch(database).first
  }

  /// Calls a closure with each record, so a large result needs little memory.
  @inlinable
  public func forEach(_ database: Database, _ body: (R) throws -> Void) throws {
    try rows(database, isShared: false) { _ in
    } each: {
      try body(try R(row: $0))
    }
  }

  /// Returns the number of rows.
  public func count(_ database: Database) throws -> Int {
    try database.typed {
      let (source, query) = try prepared(database)
      let (sql, values) = try QuerySQL.count(query, from: source)
      database.recordAbsent(source.parts)
      guard source.info.exists else { return 0 }
      let statement = try database.statement(sql, of: SourceQuery(source, query.condition))
      return try statement.first(SQLiteList(values)) { Int($0.int64(0)) } ?? 0
    }
  }

  /// Returns true if there is a row.
  public func exists(_ database: Database) throws -> Bool {
    var copy = self
    copy.query.limit = min(query.limit ?? 1, 1)
    return try copy.count(database) > 0
  }

  /// Returns the row with the largest row number.
  func latest(_ database: Database) throws -> R? {
    try order(Field(QuerySQL.rowNumber).descending).first(database)
  }

  // MARK: Running

  /// Returns the source and the query, after the interceptors.
  private func prepared(_ database: Database) throws -> (TableSource, Query) {
    let source = try table.layout.source(in: database)
    var action = Interception(action: .query, table: source.info)
    action.query = query
    try database.intercept(.before, &action, with: table.interceptors)
    return (source, action.query)
  }

  /// Calls `body` with each row.
  ///
  /// - Parameters:
  ///   - isShared: true if the statement is kept for the next call. `body` must not run the same
  ///     query then.
  ///   - begin: receives the number of rows of the last run with the same values, if it is known.
  @usableFromInline
  func rows(
    _ database: Database, isShared: Bool, begin: (Int) -> Void,
    each body: (RecordRow) throws -> Void
  ) throws {
    try database.typed {
      let (source, query) = try prepared(database)
      let info = source.info
      let (sql, values) = try QuerySQL.select(query, from: source)
      database.recordAbsent(source.parts)
      guard info.exists else { return }
      let reading = SourceQuery(source, query.condition)
      let statement =
        isShared
        ? try database.statement(sql, of: reading)
        : try database.ownStatement(sql, of: reading)
      let row = RecordRow(statement, of: info.name)
      guard database.intercepts(.after, .query, on: info, with: table.interceptors) else {
        var run = (values: values.hashValue, rows: 0)
        if let last = statement.lastRun, last.values == run.values { begin(last.rows) }
        try row.decodingRows {
          try statement.forEach(SQLiteList(values)) { _ in
            run.rows += 1
            try body(row)
          }
        }
        statement.lastRun = run
        return
      }
      var action = Interception(action: .query, table: info)
      action.query = query
      action.rows = try statement.rows(SQLiteList(values)) { _ in row.columns }
      try database.intercept(.after, &action, with: table.interceptors)
      for columns in action.rows { try body(RecordRow(columns, of: info.name)) }
    }
  }
}

extension TableQuery {
  /// Sets these columns in all rows found, and returns the number of rows.
  ///
  /// ```swift
  /// try Note.all.where(Field("list") == "l1").update(["done": true], in: database)
  /// ```
  ///
  /// - Throws: ``RecordError`` for a column missing from the table, or one of the key.
  @discardableResult
  public func update(_ columns: RecordColumns, in database: Database) throws -> Int {
    try database.typed {
      try table.layout.create(in: database)
      let source = try table.layout.source(in: database)
      for name in columns.names where try source.info.column(name).keyPlace > 0 {
        throw RecordError(
          .invalid, table: source.info.name, column: name,
          "table \(source.info.name): an update does not change the key \(name); delete the row "
            + "and insert another one")
      }
      guard !columns.isEmpty else { return 0 }
      if try needsKeys(.update, source, database) {
        return try keys(source, database).count {
          try table.update($0.merged(with: columns, override: true), in: database)
        }
      }
      let assignments = columns.names.map { "\(quoted($0)) = ?" }.joined(separator: ", ")
      let (sql, values) = try QuerySQL.change(
        "UPDATE \(source.sql) SET \(assignments)", columns.all.map(\.value),
        where: query.condition, of: source)
      return try database.run(sql, values)
    }
  }

  /// Deletes the rows found, and returns their number.
  @discardableResult
  public func delete(in database: Database) throws -> Int {
    try database.typed {
      try table.layout.create(in: database)
      let source = try table.layout.source(in: database)
      if try needsKeys(.delete, source, database) {
        return try keys(source, database).count { try table.delete($0, in: database) }
      }
      let (sql, values) = try QuerySQL.change(
        "DELETE FROM \(source.sql)", [], where: query.condition, of: source)
      return try database.run(sql, values)
    }
  }

  /// Returns true if each row must be changed by itself.
  private func needsKeys(
    _ action: RecordAction, _ source: TableSource, _ database: Database
  ) throws -> Bool {
    let own = table.interceptors
    return table.layout.isDivided || query.limit != nil || query.offset != 0
      || database.intercepts(.before, action, on: source.info, with: own)
      || database.intercepts(.after, action, on: source.info, with: own)
  }

  /// Returns the keys of the rows found, without interceptors.
  private func keys(_ source: TableSource, _ database: Database) throws -> [RecordColumns] {
    var query = query
    query.selection = try source.info.checkedKey()
    let (sql, values) = try QuerySQL.select(query, from: source)
    guard source.info.exists else { return [] }
    let statement = try database.statement(sql)
    let row = RecordRow(statement, of: source.info.name)
    return try statement.rows(SQLiteList(values)) { _ in row.columns }
  }
}
