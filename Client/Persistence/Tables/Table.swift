import FerryProtocol
import FerrySQLite

/// A table of records: finds, inserts, updates and deletes rows within a transaction.
///
/// With columns, the first write creates the table and the indexes; until then it is empty. Without
/// columns, it is an existing table or view.
///
/// ```swift
/// let notes = Table<Note>(
///   "notes", [.text("id").primaryKey(), .text("title").notNull(), .integer("done")],
///   indexes: [IndexDefinition("done", "title")])
/// try await database.write { try notes.insert(Note(id: "n1", title: "Milk"), in: $0) }
/// ```
public struct Table<R: Record>: Sendable {
  let layout: TableLayout
  var interceptors: [Interceptor] = []

  /// Names a table and the columns to create it from.
  public init(
    _ name: Name, _ columns: [ColumnDefinition] = [], indexes: [IndexDefinition] = []
  ) {
    let part = TableDefinition(name, columns, indexes: indexes)
    layout = TableLayout(parts: [part], division: .none)
  }

  /// Splits rows by columns: each part has the key and some columns. The first part decides which
  /// rows there are; in the others a row may be absent, and the columns are NULL then.
  ///
  /// ```swift
  /// let notes = Table<Note>(
  ///   splitByColumns: TableDefinition("notes", [.text("id").primaryKey(), .text("title")]),
  ///   TableDefinition("note_bodies", [.text("id").primaryKey(), .text("body")]))
  /// ```
  public init(splitByColumns first: TableDefinition, _ others: TableDefinition...) {
    layout = TableLayout(parts: [first] + others, division: .columns)
  }

  /// Splits rows among tables with equal columns. A rule returns the name of a row's table from its
  /// values. An update with another result of the rule moves the row.
  ///
  /// ```swift
  /// let columns: [ColumnDefinition] = [.text("id").primaryKey(), .integer("year")]
  /// let invoices = Table<Invoice>(
  ///   splitByRows: TableDefinition("recent", columns), TableDefinition("archive", columns)
  /// ) { $0["year"] == 2026 ? "recent" : "archive" }
  /// ```
  public init(
    splitByRows first: TableDefinition, _ others: TableDefinition...,
    rule: @escaping @Sendable (RecordColumns) throws -> Name
  ) {
    layout = TableLayout(parts: [first] + others, division: .rows(rule))
  }

  private init(layout: TableLayout, interceptors: [Interceptor]) {
    (self.layout, self.interceptors) = (layout, interceptors)
  }

  /// The table's name; the first part's if it is split.
  public var name: Name { layout.name }

  /// All rows, as a query to refine.
  public var all: TableQuery<R> { TableQuery(table: self) }

  /// Returns the same table with further interceptors; they run after the earlier ones.
  public func intercepting(_ more: Interceptor...) -> Table {
    Table(layout: layout, interceptors: interceptors + more)
  }

  /// Returns the same rows as records of another type.
  public func records<Other: Record>(as type: Other.Type) -> Table<Other> {
    Table<Other>(layout: layout, interceptors: interceptors)
  }

  // MARK: Reading

  /// Returns the columns. They are those of the definition until the table exists.
  public func info(in database: Database) throws -> TableInfo {
    try database.typed { try layout.source(in: database).info }
  }

  /// Returns the row with a key; `nil` if there is none. Give the values of a key of several
  /// columns in the key's order.
  ///
  /// - Throws: ``RecordError`` if the table has no key, or one of another number of columns.
  public func find(_ key: any ColumnValue..., in database: Database) throws -> R? {
    try all.where(try condition(key: key, in: database)).first(database)
  }

  /// Returns the latest row: the largest value of `column`, or else the row with the largest row number.
  ///
  /// - Throws: ``RecordError`` for a split table if `column` is `nil`; ``DatabaseError`` then for a
  ///   WITHOUT ROWID table.
  public func latest(by column: Name? = nil, in database: Database) throws -> R? {
    if let column { return try all.order(Field(column).descending).first(database) }
    return try all.latest(database)
  }

  /// Returns the number of rows.
  public func count(in database: Database) throws -> Int { try all.count(database) }

  /// Returns true if there is a row with this key.
  public func exists(_ key: any ColumnValue..., in database: Database) throws -> Bool {
    try all.where(try condition(key: key, in: database)).exists(database)
  }

  private func condition(key: [any ColumnValue], in database: Database) throws -> Condition {
    .and(try columns(ofKey: key, in: database).all.map { .compare($0.name, .equal, $0.value) })
  }

  /// Returns the key's columns with these values, in the key's order.
  func columns(ofKey key: [any ColumnValue], in database: Database) throws -> RecordColumns {
    let info = try info(in: database)
    let names = try info.checkedKey()
    guard names.count == key.count else {
      throw RecordError(
        .noKey, table: info.name,
        "table \(info.name): the key has \(names.count) columns "
          + "(\(names.map(\.text).joined(separator: ", "))), not \(key.count)")
    }
    var columns = RecordColumns(capacity: names.count)
    for (name, value) in zip(names, key) { columns.append(name, value.columnValue) }
    return columns
  }
}

extension Database {
  /// Runs work of the record layer: checks the transaction, and converts SQLite's errors.
  func typed<T>(_ body: () throws -> T) throws -> T {
    try checkIsUsable()
    guard connection.isInTransaction else {
      throw DatabaseError("the transaction was rolled back; no further statement of it runs")
    }
    do { return try body() } catch let error as SQLiteError { throw DatabaseError(error) }
  }

  /// Runs work of several statements: if it throws, none of them has an effect.
  ///
  /// - Parameter isNeeded: true if there are several.
  func atomically<T>(_ isNeeded: Bool, _ body: () throws -> T) throws -> T {
    guard isNeeded else { return try body() }
    try connection.execute("SAVEPOINT ferry_record")
    do {
      let result = try body()
      try connection.execute("RELEASE ferry_record")
      return result
    } catch {
      // An error may have ended the transaction, and the savepoint with it.
      if connection.isInTransaction {
        try connection.execute("ROLLBACK TO ferry_record; RELEASE ferry_record")
      }
      forgetSchema()
      throw error
    }
  }

  /// Runs one writing statement; returns the number of changed rows.
  func run(_ sql: String, _ values: [Value]) throws -> Int {
    try statement(sql).run(SQLiteList(values))
  }
}
