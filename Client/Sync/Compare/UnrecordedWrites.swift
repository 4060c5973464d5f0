import FerryProtocol
import FerrySQLite

/// A table that may have unrecorded rows or values.
struct UnrecordedTable: Equatable, Sendable {
  let table: Name
  /// The place in the history; rows may be unrecorded after it.
  var since: SequenceNumber
  /// True if the table was created again or was untracked; if not, only columns are new.
  let isRemade: Bool
  /// The newest operation recorded before.
  let recorded: Int64
  /// The new columns.
  let newColumns: Set<Name>
  /// The version of the schema at that time.
  let schemaVersion: Int64

  /// Returns true if both are of the same unrecorded writes. A pull from the start changes the
  /// place alone.
  func hasSameWrites(as other: UnrecordedTable) -> Bool {
    var moved = other
    moved.since = since
    return self == moved
  }
}

/// The marks of writes that bypassed the triggers: in `ferry_tables`, `ferry_columns` and
/// `ferry_untracked` (SPEC.md §25). A sync compares the tables.
struct UnrecordedWrites {
  let file: ReplicaFile

  private var connection: SQLiteConnection { file.connection }

  // MARK: Tables

  /// Returns tables to compare with the server, row by row.
  func tables() throws -> [UnrecordedTable] {
    let tables = try connection.rows(
      "SELECT name, since, remade, recorded FROM ferry_tables WHERE since IS NOT NULL ORDER BY name"
    ) { ($0.name(0), $0.int64(1), $0.int64(2) != 0, $0.int64(3)) }
    if tables.isEmpty { return [] }
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    return try tables.filter { isPresent($0.0) }.map { name, since, isRemade, recorded in
      let columns = try connection.rows(
        "SELECT name FROM ferry_columns WHERE tbl = ? AND is_new <> 0", name
      ) { $0.name(0) }
      return UnrecordedTable(
        table: name, since: since, isRemade: isRemade, recorded: recorded,
        newColumns: Set(columns), schemaVersion: version)
    }
  }

  /// Returns true if the file has a table with exactly this name.
  private func isPresent(_ table: Name) -> Bool {
    (try? file.tables.schema(of: table))?.name == table
  }

  /// Returns tables to compare, also if another program has just changed them.
  func current() throws -> [UnrecordedTable] {
    try file.schemaChanges.notice()
    return try tables()
  }

  /// Records whether a table was compared as a whole in the round under way.
  func setCompared(_ table: UnrecordedTable, _ isWhole: Bool) {
    file.compared.removeAll { $0.table == table.table }
    if isWhole { file.compared.append(table) }
  }

  /// Returns tables that may have unrecorded rows, found only on this device.
  func tablesWithUnknownRows() throws -> Set<Name> {
    let tables = try tables().filter { table in
      table.isRemade && !file.compared.contains { $0.hasSameWrites(as: table) }
    }
    return Set(tables.map(\.table))
  }

  /// Marks a whole table: it may have unrecorded rows. It was dropped and created again, it lost
  /// its triggers, or it was untracked for a time.
  ///
  /// - Parameter since: the place in the history; `nil` for the cursor.
  func mark(_ table: Name, since: SequenceNumber? = nil) throws {
    try connection.run(
      """
      UPDATE ferry_tables SET remade = 1, since = min(ifnull(since, ?1), ?1),
        recorded = (SELECT ifnull(max(seq), 0) FROM ferry_operations)
      WHERE name = ?2
      """, since ?? file.syncState().applied, table)
    guard connection.changes > 0 else { return }
    if let here = try? file.tables.schema(of: table), here.name == table {
      try KeyNumbers(connection: connection).assignRows(of: here, fresh: file.capture.newRecord)
    }
    try file.log(
      "unrecorded",
      "\(table) was written to unrecorded; the next sync compares its rows with the server")
  }

  /// Marks a tracked table as absent. If it returns, the rows are compared.
  func markAbsent(_ table: Name) throws {
    // After a rename by another program, the triggers would record the other table as this one.
    try file.triggers.drop(of: table)
    try connection.run(
      """
      UPDATE ferry_tables SET remade = 1,
        since = ifnull(since, (SELECT applied FROM ferry_replica))
      WHERE name = ? AND remade = 0
      """, table)
  }

  /// Ends the mark of a table compared as a whole, unless some rows cannot be recorded.
  func end(_ table: Name) throws {
    try connection.run(
      "UPDATE ferry_tables SET since = NULL, remade = 0, recorded = 0 WHERE name = ? AND fault IS NULL",
      table)
    guard connection.changes > 0 else { return }
    try connection.run("UPDATE ferry_columns SET is_new = 0 WHERE tbl = ?", table)
  }

  // MARK: Faults

  /// Returns tracked tables unable to sync in their present form, with the reason and a remedy.
  func faults() throws -> [TableFault] {
    let tables = try connection.rows("SELECT name, local, fault FROM ferry_tables ORDER BY name") {
      (name: $0.name(0), local: $0.name(1), fault: $0.optionalText(2))
    }
    return try tables.compactMap { name, local, fault in
      var reason = fault
      do {
        let found = try file.tables.schema(of: name).name
        if found != name { reason = "its name is spelled \(found) now" }
      } catch ReplicaError.cannotTrack(_, let found) {
        reason = found
      }
      return reason.map { TableFault(table: name, local: local, reason: $0) }
    }
  }

  /// Stores the reason why rows of a table cannot be recorded, until the next comparison.
  func setFault(_ fault: String?, of table: Name) throws {
    try connection.run("UPDATE ferry_tables SET fault = ? WHERE name = ?", fault, table)
  }

  /// Returns true if rows of a table cannot be recorded.
  func hasFault(_ table: Name) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_tables WHERE name = ? AND fault IS NOT NULL", table)
  }

  // MARK: Columns

  /// Records new columns of the table. They may have unrecorded values: after a rename of a column,
  /// or if a column was dropped before.
  func markNewColumns(of table: TableSchema) throws {
    let known = try knownColumns(of: table.name)
    guard !known.isEmpty, table.columns.contains(where: { !known.contains($0.name) }) else {
      return
    }
    try connection.run(
      """
      UPDATE ferry_tables SET since = ifnull(since, (SELECT applied FROM ferry_replica))
      WHERE name = ?
      """, table.name)
  }

  /// Stores the columns known to the triggers.
  func storeColumns(of table: TableSchema) throws {
    let known = try knownColumns(of: table.name)
    let names = Set(table.columns.map(\.name))
    let remove = try connection.statement("DELETE FROM ferry_columns WHERE tbl = ? AND name = ?")
    for name in known.subtracting(names) { try remove.run(table.name, name) }
    let insert = try connection.statement(
      "INSERT OR IGNORE INTO ferry_columns(tbl, name, is_new) VALUES (?, ?, ?)")
    for name in names.subtracting(known) { try insert.run(table.name, name, known.isEmpty ? 0 : 1) }
  }

  /// Returns the columns of a tracked table at the time of its triggers.
  func knownColumns(of table: Name) throws -> Set<Name> {
    Set(try connection.rows("SELECT name FROM ferry_columns WHERE tbl = ?", table) { $0.name(0) })
  }

  // MARK: Untracked tables

  /// Records that a table's writes are unrecorded from now on.
  func markUntracked(_ table: Name) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO ferry_untracked
      SELECT name, iif(direction = 'two-way', min(ifnull(since, applied), applied), 0), identity
      FROM ferry_tables, ferry_replica WHERE name = ?
      """, table)
    try connection.run("DELETE FROM ferry_columns WHERE tbl = ?", table)
  }

  /// Returns the identity of a table from an earlier tracking.
  func formerIdentity(of table: Name) throws -> KeyIdentity? {
    try connection.first(
      "SELECT identity FROM ferry_untracked WHERE name = ? COLLATE NOCASE", table
    ) { KeyIdentity(rawValue: $0.text(0)) } ?? nil
  }

  /// Returns the place before a table's first unrecorded write, if it was tracked before. Deletes
  /// the mark.
  func removeUntracked(_ table: Name) throws -> SequenceNumber? {
    try connection.rows(
      "DELETE FROM ferry_untracked WHERE name = ? COLLATE NOCASE RETURNING since", table
    ) { $0.int64(0) }.min()
  }
}

/// A tracked table unable to sync in its present form.
public struct TableFault: Sendable, Equatable {
  /// The table's name in the space.
  public var table: Name
  /// The table's name in this file.
  public var local: Name
  /// The reason, such as "there is no such table".
  public var reason: String

  /// - Parameter local: `nil` for the name in the space.
  init(table: Name, local: Name? = nil, reason: String) {
    self.table = table
    self.local = local ?? table
    self.reason = reason
  }
}
