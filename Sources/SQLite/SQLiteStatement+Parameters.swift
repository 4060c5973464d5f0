/// Running a statement with values for all parameters, in one call. A number of values other than
/// the statement's number of parameters is a programming error.
///
/// Packs are not boxed, but each value costs an indirect call. A loop with most of the rows passes
/// one value: its own ``SQLiteBindable``.
extension SQLiteStatement {
  /// Binds all parameters, for ``step()``.
  @inlinable
  package func bind<each Value: SQLiteBindable>(_ values: repeat each Value) {
    var parameters = parameters
    repeat (each values).bind(to: &parameters)
    check(parameters)
  }

  /// Runs to the end, passing over any rows. Returns how many rows it changed.
  @inlinable @discardableResult
  package func run<each Value: SQLiteBindable>(
    _ values: repeat each Value
  ) throws(SQLiteError) -> Int {
    bind(repeat each values)
    return try finish()
  }

  /// Runs as the form for several values does, without an indirect call.
  @inlinable @discardableResult
  package func run(_ value: some SQLiteBindable) throws(SQLiteError) -> Int {
    var parameters = parameters
    value.bind(to: &parameters)
    check(parameters)
    return try finish()
  }

  /// Steps once; the statement is reset afterwards, whatever `row` does.
  @inlinable
  package func first<each Value: SQLiteBindable, T>(
    _ values: repeat each Value, row: (SQLiteStatement) throws -> T
  ) throws -> T? {
    defer { reset() }
    bind(repeat each values)
    return try step() ? try row(self) : nil
  }

  /// Returns `true` if there is a row.
  @inlinable
  package func exists<each Value: SQLiteBindable>(
    _ values: repeat each Value
  ) throws(SQLiteError) -> Bool {
    defer { reset() }
    bind(repeat each values)
    return try step()
  }

  /// Calls `row` for every row in turn; the statement is reset afterwards.
  @inlinable
  package func forEach<each Value: SQLiteBindable>(
    _ values: repeat each Value, row: (SQLiteStatement) throws -> Void
  ) throws {
    defer { reset() }
    bind(repeat each values)
    while try step() { try row(self) }
  }

  /// Maps all rows.
  @inlinable
  package func rows<each Value: SQLiteBindable, T>(
    _ values: repeat each Value, row: (SQLiteStatement) throws -> T
  ) throws -> [T] {
    var rows: [T] = []
    try forEach(repeat each values) { rows.append(try row($0)) }
    return rows
  }
}

/// The same by the text of a statement, which is prepared once (``statement(_:)``).
extension SQLiteConnection {
  /// Runs a statement to the end. Returns the number of changed rows.
  @inlinable @discardableResult
  package func run<each Value: SQLiteBindable>(
    _ sql: String, _ values: repeat each Value
  ) throws(SQLiteError) -> Int {
    try statement(sql).run(repeat each values)
  }

  /// Returns the first row; `nil` if there is none.
  @inlinable
  package func first<each Value: SQLiteBindable, T>(
    _ sql: String, _ values: repeat each Value, row: (SQLiteStatement) throws -> T
  ) throws -> T? {
    try statement(sql).first(repeat each values, row: row)
  }

  /// Returns `true` if there is a row.
  @inlinable
  package func exists<each Value: SQLiteBindable>(
    _ sql: String, _ values: repeat each Value
  ) throws(SQLiteError) -> Bool {
    try statement(sql).exists(repeat each values)
  }

  /// Calls `row` for every row in turn.
  @inlinable
  package func forEach<each Value: SQLiteBindable>(
    _ sql: String, _ values: repeat each Value, row: (SQLiteStatement) throws -> Void
  ) throws {
    try statement(sql).forEach(repeat each values, row: row)
  }

  /// Maps all rows.
  @inlinable
  package func rows<each Value: SQLiteBindable, T>(
    _ sql: String, _ values: repeat each Value, row: (SQLiteStatement) throws -> T
  ) throws -> [T] {
    try statement(sql).rows(repeat each values, row: row)
  }
}
