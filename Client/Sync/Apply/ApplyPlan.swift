import FerryProtocol
import FerrySQLite

/// The statements to apply remote changes to one table, prepared once for each set of columns.
final class ApplyPlan {
  let table: TableSchema
  /// The space's rules for the table.
  let rules: TableRules
  /// The names of the table's columns.
  let known: Set<Name>
  /// True if the space knows the table's name, as far as this device knows.
  let isShared: Bool
  /// The columns with names unknown to the space so far.
  let unshared: Set<Name>
  private let connection: SQLiteConnection
  private var lastNames: [Name] = []
  private var lastKnownNames: [Name] = []
  private var lastUpsert: SQLiteStatement?
  private var isLastDeferred = false
  private var lastUpdatedNames: [Name] = []
  private var lastUpdate: SQLiteStatement?
  private var isLastUpdateDeferred = false
  /// Foreign keys that make rows of tracked tables follow a changed value of this table.
  private(set) lazy var followers = parentRules.followers(of: table)
  /// True if SQLite deletes or changes rows of this table along with a parent.
  private(set) lazy var goesWithParents = parentRules.goesWithParents(table.local)
  /// True if a trigger of the user's may write to other rows when a row is deleted.
  private let hasDeleteTrigger: Bool
  /// The rules of the foreign keys of all tables.
  private let parentRules: ParentRules
  private lazy var referring = parentRules.referring(table.local, alias: "p")
  private lazy var leavingChildren = parentRules.leavingChildren(
    of: table.local, where: table.has(record: "?1", in: "p"))
  private lazy var removals = parentRules.removals(
    of: table.local, where: table.has(record: "?1"))

  init(
    table: TableSchema, rules: TableRules, connection: SQLiteConnection,
    hasDeleteTrigger: Bool = false, parentRules: ParentRules = ParentRules([]),
    isShared: Bool = true, unshared: Set<Name> = []
  ) {
    self.table = table
    self.rules = rules
    self.connection = connection
    self.hasDeleteTrigger = hasDeleteTrigger
    self.parentRules = parentRules
    self.isShared = isShared
    self.unshared = unshared
    known = Set(table.columns.map(\.name))
  }

  /// Returns a plan to write the same rows to a copy of the table. The copy has neither triggers
  /// nor referring rows.
  func writing(to copy: Name) -> ApplyPlan {
    ApplyPlan(
      table: TableSchema(
        name: table.name, local: copy, keys: table.keys, identity: table.identity,
        columns: table.columns),
      rules: rules, connection: connection, isShared: isShared, unshared: unshared)
  }

  /// Returns true if the table has all of these columns. Most changes name the same columns as the
  /// change before; this case needs no hashes of their names.
  func knowsAll(_ columns: [ColumnState]) -> Bool {
    if isNamed(columns, lastKnownNames) { return true }
    guard columns.allSatisfy({ known.contains($0.name) }) else { return false }
    lastKnownNames = columns.map(\.name)
    return true
  }

  /// Returns true if these are the columns' names, in order. By index: a loop over the columns
  /// would copy each one.
  private func isNamed(_ columns: [ColumnState], _ names: [Name]) -> Bool {
    columns.count == names.count
      && columns.indices.allSatisfy { columns[$0].name == names[$0] }
  }

  /// Sets columns of a record, or creates it.
  ///
  /// - Parameter kept: values kept by an existing row and given to a new one.
  /// - Throws: ``SQLiteError``, also if a constraint or a trigger of the table silently ignores the
  ///   row.
  func upsert(_ record: Name, _ columns: [ColumnState], isWhole: Bool, kept: [Column]) throws {
    // An insert fails for columns missing from the change, before SQLite considers its ON CONFLICT,
    // although the row has them.
    if !isWhole && !columns.isEmpty {
      if try update(record, columns) { return }
      if try exists(record) { return try checkIgnored(record, columns) }
    }
    let kept = kept.filter { own in !columns.contains { $0.name == own.name } }
    let statement =
      isWhole ? try wholeStatement(columns, kept) : try partialStatement(columns, kept)
    let row = BoundRow(record: record, columns: columns, kept: kept)
    if try statement.run(row) == 0 { try checkIgnored(record, columns) }
  }

  /// Checks a write without effect: the row has these values already, or the table ignored it.
  private func checkIgnored(_ record: Name, _ columns: [ColumnState]) throws {
    let conditions = columns.enumerated().map {
      " AND \(table.quotedColumn($1.name)) COLLATE BINARY IS "
        + table.column($1.name).sought("?\($0 + 2)")
    }
    let isThere = try connection.exists(
      "SELECT 1 FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))" + conditions.joined(),
      BoundRow(record: record, columns: columns))
    if !isThere { throw Self.ignored }
  }

  /// The error for a constraint with ON CONFLICT IGNORE or a trigger with RAISE(IGNORE); they give
  /// no other sign.
  static let ignored = SQLiteError(
    code: SQLiteError.constraintCode,
    message: "the table ignores the row (ON CONFLICT IGNORE of a constraint, or a trigger)")

  /// Removes a record, if it exists.
  ///
  /// - Throws: ``SQLiteError``, also if a trigger of the table silently keeps the row.
  func delete(_ record: Name) throws {
    let removed = try connection.foreignKeyStatement(
      "DELETE FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))"
    ).run(record)
    if try removed == 0 && exists(record) { throw Self.ignored }
  }

  /// Returns true if the delete of a record's row may delete, change or leave other rows.
  func concernsOthers(_ record: Name) throws -> Bool {
    if hasDeleteTrigger { return try exists(record) }
    return try isRow(record, referring)
  }

  /// Returns true if rows of tracked tables protect a record's row from a delete.
  ///
  /// - Parameter choice: the rows that count.
  func isHeld(_ record: Name, by choice: ParentRules.Choice) throws -> Bool {
    try isRow(record, parentRules.holding(table.local, alias: "p", choice))
  }

  private func isRow(_ record: Name, _ condition: String?) throws -> Bool {
    guard let condition else { return false }
    return try connection.exists(
      "SELECT 1 FROM \(quoted(table.local)) AS p WHERE \(table.has(record: "?1", in: "p")) "
        + "AND (\(condition))", record)
  }

  /// Returns the records in ``ParentRules/leaving`` with rows that refer to a record.
  func leavingChildren(_ record: Name) throws -> [RecordKey] {
    try leavingChildren.flatMap { child in
      try connection.rows(child.sql, record) {
        RecordKey(table: child.table, record: $0.name(0))
      }
    }
  }

  /// Removes the rows that go with a record by a rule of the space, although SQLite would keep
  /// them.
  func deleteChildren(_ record: Name) throws {
    for removal in removals { try connection.foreignKeyStatement(removal).run(record) }
  }

  /// Returns true if the record has a row.
  func exists(_ record: Name) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))", record)
  }

  /// Returns values without a stamp, for this device's own writes; omits columns missing from the
  /// table.
  func unstamped(_ columns: [Column]) -> [ColumnState] {
    let nobody = Stamp(time: .zero, device: DeviceID(UniqueID(high: 0, low: 0)))
    return columns.filter { known.contains($0.name) }.map {
      ColumnState(name: $0.name, value: $0.value, stamp: nobody, sequence: 0)
    }
  }

  /// Sets columns of a record if it exists. Returns true if it does.
  func update(_ record: Name, _ columns: [ColumnState]) throws -> Bool {
    try updateStatement(columns).run(BoundRow(record: record, columns: columns)) > 0
  }

  /// Sets columns of a record if it exists.
  ///
  /// - Throws: ``SQLiteError``, also if the table silently ignores the write.
  func change(_ record: Name, _ columns: [ColumnState]) throws {
    if try !update(record, columns) && exists(record) { try checkIgnored(record, columns) }
  }

  private func updateStatement(_ columns: [ColumnState]) throws -> SQLiteStatement {
    let isDeferred = connection.defersForeignKeys
    if let lastUpdate, isLastUpdateDeferred == isDeferred, isNamed(columns, lastUpdatedNames) {
      return lastUpdate
    }
    let sets = columns.enumerated().map {
      "\(table.quotedColumn($1.name)) = \(table.column($1.name).written("?\($0 + 2)"))"
    }
    let statement = try connection.foreignKeyStatement(
      "UPDATE \(quoted(table.local)) SET \(sets.joined(separator: ", ")) "
        + "WHERE \(table.has(record: "?1"))")
    lastUpdatedNames = columns.map(\.name)
    lastUpdate = statement
    isLastUpdateDeferred = isDeferred
    return statement
  }

  private func partialStatement(
    _ columns: [ColumnState], _ kept: [Column]
  ) throws -> SQLiteStatement {
    try statement(columns, kept, resets: [])
  }

  private func wholeStatement(
    _ columns: [ColumnState], _ kept: [Column]
  ) throws -> SQLiteStatement {
    if columns.count == table.columns.count { return try statement(columns, kept, resets: []) }
    let resets = table.columns.filter { info in
      !columns.contains { $0.name == info.name } && !kept.contains { $0.name == info.name }
    }
    return try statement(columns, kept, resets: resets)
  }

  private func statement(
    _ columns: [ColumnState], _ kept: [Column], resets: [TableSchema.ColumnInfo]
  ) throws -> SQLiteStatement {
    let isDeferred = connection.defersForeignKeys
    let isPlain = kept.isEmpty && resets.isEmpty
    if isPlain, let lastUpsert, isLastDeferred == isDeferred, isNamed(columns, lastNames) {
      return lastUpsert
    }
    let names = columns.map { table.quotedColumn($0.name) }
    let sets =
      names.map { "\($0) = excluded.\($0)" }
      + resets.map { "\(quoted($0.local)) = \($0.defaultSQL.map { "(\($0))" } ?? "NULL")" }
    let given = (columns.map(\.name) + kept.map(\.name)).map(table.column)
    let list = (table.keyList + given.map { quoted($0.local) }).joined(separator: ", ")
    let values = given.enumerated().map { $1.written("?\($0 + 2)") }
    let marks = (table.keyValues(ofWritten: "?1") + values).joined(separator: ", ")
    let action = sets.isEmpty ? "NOTHING" : "UPDATE SET " + sets.joined(separator: ", ")
    let statement = try connection.foreignKeyStatement(
      // Without an alias, a table called excluded would hide the inserted values.
      "INSERT INTO \(quoted(table.local)) AS ferry_row(\(list)) VALUES (\(marks)) "
        + "ON CONFLICT(\(table.keyList.joined(separator: ", "))) DO \(action)")
    if isPlain {
      lastNames = columns.map(\.name)
      lastUpsert = statement
      isLastDeferred = isDeferred
    }
    return statement
  }
}

/// A record's key and values, in the order of a statement's parameters.
private struct BoundRow: SQLiteBindable {
  let record: Name
  let columns: [ColumnState]
  var kept: [Column] = []

  func bind(to parameters: inout SQLiteParameters) {
    parameters.append(record)
    // By index: a loop over the columns would copy each one.
    for index in columns.indices { parameters.append(columns[index].value) }
    for column in kept { parameters.append(column.value) }
  }
}
