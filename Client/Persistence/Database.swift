import FerryProtocol
import FerrySQLite

/// Plain SQL within one transaction. Valid only inside the closure it is passed to.
///
/// In a replica, the same transaction records each write to a tracked table. Three kinds of
/// statements fail before they run:
///
/// - the begin or the end of a transaction,
/// - a change to a table of Ferry's (`ferry_…`); reads of such a table are allowed,
/// - a write to a tracked table of an attached replica.
///
/// ```swift
/// try await replica.write { database in
///   try database.execute("UPDATE tasks SET done = 1 WHERE id = ?", ["t1"])
/// }
/// ```
public final class Database {
  /// For this package's own programs.
  package let connection: SQLiteConnection
  /// The owner of the file, if it participates in the statements.
  package let owner: (any DatabaseOwner)?
  /// True to refuse writing statements, although the connection could run them.
  private let isReadOnly: Bool

  /// The part of the file read by the statements.
  package private(set) var region = ReadRegion()
  /// The tables possibly written by the statements.
  package private(set) var tablesWritten: Set<String> = []
  /// Tables read in this transaction, until a statement changes the schema.
  var knownTables: [Name: TableInfo] = [:]
  /// True if the kept statements are of the present schema.
  private var hasCheckedSchema = false
  /// Statements prepared once for many rows, until a statement changes the schema.
  private var repeated: [String: SQLiteStatement] = [:]
  /// The last INSERT of the record layer, for the next record with the same columns.
  var insertion: Insertion?
  /// The interceptors of the access behind the transaction.
  var interceptors: [Interceptor] = []
  /// The number of running interceptors, one within another.
  var interceptionDepth = 0
  /// True after the return of the closure with this value.
  var isOver = false

  package init(
    connection: SQLiteConnection, owner: (any DatabaseOwner)? = nil, isReadOnly: Bool = false
  ) {
    self.connection = connection
    self.owner = owner
    self.isReadOnly = isReadOnly
  }

  /// Runs one statement with parameters, or a script of several without. Returns the number of
  /// changed rows. Without `parameters`, each `?` is NULL.
  ///
  /// - Throws: ``DatabaseError`` with SQLite's message.
  @discardableResult
  public func execute(_ sql: String, _ parameters: [Value] = []) throws -> Int {
    try run(sql, parameters) { _, _ in }
    return changes
  }

  /// Runs one statement; for SQL with names from outside.
  ///
  /// - Throws: ``DatabaseError``, also if anything follows the statement; then nothing runs.
  @discardableResult
  package func execute(single sql: String, _ parameters: [Value] = []) throws -> Int {
    try run(sql, parameters, isSingle: true) { _, _ in }
    return changes
  }

  /// Runs one statement that changes no schema, prepared once for all calls in this transaction. For
  /// the rows of a large transaction.
  ///
  /// - Throws: ``DatabaseError``
  @discardableResult
  package func execute(repeated sql: String, _ parameters: [Value] = []) throws -> Int {
    try runRepeated(sql, parameters) { _ in }
    changes = connection.changes
    return changes
  }

  /// Returns all rows of one query, prepared once for all calls in this transaction.
  ///
  /// - Throws: ``DatabaseError``
  package func query(repeated sql: String, _ parameters: [Value] = []) throws -> [Row] {
    var rows: [Row] = []
    try runRepeated(sql, parameters) { statement in
      let columns = 0..<statement.columnCount
      rows.append(
        Row(
          names: columns.map { statement.columnName($0) },
          values: columns.map { statement.value($0) }))
    }
    return rows
  }

  /// Returns all rows of one statement, or those of a script's statements one after another.
  ///
  /// - Throws: ``DatabaseError`` with SQLite's message.
  public func query(_ sql: String, _ parameters: [Value] = []) throws -> [Row] {
    var rows: [Row] = []
    try forEach(sql, parameters) { rows.append($0) }
    return rows
  }

  /// Calls a closure with each row, so a large result needs little memory. Several statements
  /// deliver their rows in turn.
  public func forEach(
    _ sql: String, _ parameters: [Value] = [], _ body: (Row) throws -> Void
  ) throws {
    try run(sql, parameters) { statement, names in
      try body(Row(names: names, values: (0..<statement.columnCount).map { statement.value($0) }))
    }
  }

  /// Runs one statement, and calls a closure at each row.
  func each(_ sql: String, _ parameters: [Value], _ body: (SQLiteStatement) throws -> Void) throws {
    try run(sql, parameters, isSingle: true) { statement, _ in try body(statement) }
  }

  /// Runs a script and returns the result of each statement, with all rows.
  package func results(_ sql: String) throws -> [StatementResult] {
    var results: [StatementResult] = []
    try run(
      sql, [],
      begin: { results.append(StatementResult(names: $0)) },
      end: { results[results.count - 1].changes = $0 },
      row: { statement, names in
        let values = (0..<statement.columnCount).map { statement.value($0) }
        results[results.count - 1].rows.append(Row(names: names, values: values))
      })
    return results
  }

  /// Returns true if SQL ends with a semicolon outside of a text, a comment or a trigger's body
  /// (https://sqlite.org/c3ref/complete.html). Text that is not SQL may be complete.
  package static func isComplete(_ sql: String) -> Bool { SQLiteConnection.isComplete(sql) }

  /// The number of rows changed by the statements of the last call.
  package private(set) var changes = 0

  /// Throws if the transaction has ended, or must end: a write would not be part of it.
  func checkIsUsable() throws {
    try connection.checkInterruption()
    if isOver {
      throw DatabaseError("the transaction of this Database is over; open another one", code: 21)
    }
  }

  private func run(
    _ sql: String, _ parameters: [Value], isSingle: Bool = false,
    begin: ([String]) -> Void = { _ in }, end: (Int) -> Void = { _ in },
    row: (SQLiteStatement, [String]) throws -> Void
  ) throws {
    changes = 0
    try checkIsUsable()
    do {
      var rest = sql[...]
      while let statement = try connection.prepareNext(&rest, guarded: true) {
        guard !isSingle || rest.isEmpty else {
          throw DatabaseError("more than one statement", code: 21)
        }
        guard parameters.isEmpty || statement.parameterCount == parameters.count else {
          throw DatabaseError(
            "the statement takes \(statement.parameterCount) parameters, not \(parameters.count)")
        }
        let values =
          parameters.isEmpty
          ? Array(repeating: .null, count: statement.parameterCount) : parameters
        if let table = connection.droppedTable { try owner?.tableWillDrop(Name(table)) }
        // An additional column does not disturb the recording.
        if let table = connection.alteredTable, !statement.addsColumn {
          try owner?.tableWillAlter(Name(table))
        }
        let names = (0..<statement.columnCount).map { statement.columnName($0) }
        try recordTables(statement)
        begin(names)
        do {
          try statement.forEach(SQLiteList(values)) { try row($0, names) }
        } catch {
          // The triggers removed for the change are restored, also if the change failed.
          if statement.altersTable { try owner?.schemaChanged() }
          throw error
        }
        guard connection.isInTransaction else {
          throw DatabaseError(
            "the statement rolled the transaction back, so none of its changes took effect")
        }
        // A return to a savepoint changes the schema as well.
        if statement.changesSchema || (statement.isReadOnly && statement.columnCount == 0) {
          forgetSchema()
        }
        if statement.changesSchema {
          try owner?.schemaChanged()
        } else if !statement.isReadOnly {
          changes += connection.changes
          end(connection.changes)
        }
      }
    } catch let error as SQLiteError {
      throw DatabaseError(error)
    }
  }

  private func runRepeated(
    _ sql: String, _ parameters: [Value], _ row: (SQLiteStatement) throws -> Void
  ) throws {
    changes = 0
    try checkIsUsable()
    do {
      let statement = try repeatedStatement(sql)
      try statement.forEach(SQLiteList(parameters), row: row)
    } catch let error as SQLiteError {
      throw DatabaseError(error)
    }
    guard connection.isInTransaction else {
      throw DatabaseError(
        "the statement rolled the transaction back, so none of its changes took effect")
    }
  }

  private func repeatedStatement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    if let kept = repeated[sql] {
      kept.reset()
      connection.recordChanges(of: kept.tables.written)
      return kept
    }
    let statement = try connection.prepareGuarded(sql)
    precondition(!statement.changesSchema, "a repeated statement changes no schema")
    try recordTables(statement)
    repeated[sql] = statement
    return statement
  }

  // MARK: Statements of the record layer

  /// Returns a statement, kept for the next call.
  ///
  /// - Parameter query: the query behind the statement, if there is one.
  func statement(_ sql: String, of query: SourceQuery? = nil) throws -> SQLiteStatement {
    if !hasCheckedSchema {
      try connection.forgetStatementsOfOldSchema()
      hasCheckedSchema = true
    }
    let statement = try connection.guardedStatement(sql)
    try recordTables(statement, of: query)
    return statement
  }

  /// Returns a statement for this caller alone.
  func ownStatement(
    _ sql: String, of query: SourceQuery
  ) throws(SQLiteError) -> SQLiteStatement {
    let statement = try connection.prepareGuarded(sql)
    try recordTables(statement, of: query)
    return statement
  }

  /// Records that the result depends on absent tables.
  func recordAbsent(_ parts: [TableInfo]) {
    region.add(parts.lazy.filter { !$0.exists }.map(\.name.text))
  }

  /// Reads tables and prepares statements again: the schema may be another one now.
  func forgetSchema() {
    (knownTables, repeated) = ([:], [:])
    insertion = nil
    hasCheckedSchema = false
  }

  /// Records the tables read and written by a statement, for live queries.
  private func recordTables(
    _ statement: SQLiteStatement, of query: SourceQuery? = nil
  ) throws(SQLiteError) {
    // The same error as that of a connection without write access.
    if isReadOnly && !statement.isReadOnly { throw .readOnly }
    if let query, let table = query.onlyTable(of: statement) {
      region.add(table, where: query.condition)
    } else {
      region.add(statement.tables.read)
    }
    tablesWritten.formUnion(statement.tables.written)
    connection.recordChanges(of: statement.tables.written)
  }
}
