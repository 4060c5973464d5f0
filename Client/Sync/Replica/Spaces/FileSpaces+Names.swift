import FerryPersistence
import FerryProtocol
import FerrySQLite

/// A change of a name under way.
struct Renaming {
  /// The table before the change, named as in this file.
  let table: Name
  /// The column before the change; `nil` if the table is renamed.
  let column: Name?
  /// The new name in this file.
  let to: Name
  /// The table's names in the spaces that track it, by the numbers of the spaces.
  let tracked: [Int: Name]

  /// The name to change.
  var from: Name { column ?? table }
}

/// New names of tables and columns. They belong to the table, and hold for each space that tracks
/// it, now or later (SPEC.md §26).
extension FileSpaces {
  /// Creates the list of new names; a file keeps it in the first ledger.
  static let names = """
    CREATE TABLE ferry_names(                 -- the tables and columns that were renamed here
      tbl TEXT NOT NULL COLLATE NOCASE,       -- the table's present name
      col TEXT NOT NULL COLLATE NOCASE,       -- a column's; empty: the row is about the table
      first TEXT NOT NULL,                    -- the first name, by which the spaces know it
      PRIMARY KEY(tbl, col)
    ) WITHOUT ROWID;
    """

  /// Renames a table or a column here, and stores the first name.
  ///
  /// If the new name is that of a table dropped by the transaction, the table counts as that one,
  /// created again.
  func rename(
    _ column: Name?, of table: Name, to new: Name, by alter: () throws -> Void
  ) throws {
    defer { renaming = nil }
    renaming = try change(of: column, in: table, to: new)
    try alter()
  }

  private func change(of column: Name?, in table: Name, to new: Name) throws -> Renaming? {
    guard let first, let local = try first.connection.spelling(ofTable: table) else { return nil }
    var from: Name?
    if let column {
      from = try columns(of: local).first { $0.name.folded == column.folded }?.name
      if from == nil { return nil }
    } else if first.schemaChanges.dropped.contains(new.folded) {
      return nil
    }
    var tracked: [Int: Name] = [:]
    for file in all { tracked[file.number] = try file.tables.trackedTable(local: local) }
    return Renaming(table: local, column: from, to: new, tracked: tracked)
  }

  private func columns(of table: Name) throws -> [(name: Name, isKey: Bool)] {
    try first?.connection.rows(
      "SELECT name, pk FROM pragma_table_xinfo(?) WHERE hidden = 0", table
    ) { ($0.name(0), $0.int64(1) > 0) } ?? []
  }

  /// Stores the names of a statement that has renamed something, and removes those of dropped
  /// tables.
  func storeNames() throws {
    for file in all { file.tables.forgetNames() }
    if let renaming, try hasHappened(renaming) {
      try store(renaming)
      for file in all { try file.schemaChanges.apply(renaming) }
    }
    try removeNamesOfAbsent()
  }

  /// Returns true if the statement has succeeded.
  private func hasHappened(_ renaming: Renaming) throws -> Bool {
    let present =
      try renaming.column == nil
      ? first?.connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.name(0) }
      : columns(of: renaming.table).map(\.name)
    guard let present else { return false }
    return present.contains(renaming.to) && !present.contains(renaming.from)
  }

  private func store(_ renaming: Renaming) throws {
    guard let connection = first?.connection else { return }
    let column = renaming.column?.text ?? ""
    let known = try connection.first(
      "SELECT first FROM ferry_names WHERE tbl = ? AND col = ?", renaming.table, column
    ) { $0.name(0) }
    try connection.run(
      "DELETE FROM ferry_names WHERE tbl = ? AND col = ?", renaming.table, column)
    var place = (table: renaming.table, column: renaming.to.text)
    if renaming.column == nil {
      place = (renaming.to, "")
      if renaming.to.folded != renaming.table.folded {
        try connection.run("DELETE FROM ferry_names WHERE tbl = ?", renaming.to)
      }
      try connection.run(
        "UPDATE ferry_names SET tbl = ? WHERE tbl = ?", renaming.to, renaming.table)
    } else if try columns(of: renaming.table).contains(where: { $0.name == renaming.to && $0.isKey }
    ) {
      // A key has no name in the spaces.
      return
    }
    let former = known ?? renaming.from
    guard former != renaming.to else { return }
    try connection.run(
      "INSERT OR REPLACE INTO ferry_names(tbl, col, first) VALUES (?, ?, ?)", place.table,
      place.column, former)
  }

  /// Removes the names of dropped tables. A table dropped by the transaction may be created again.
  func removeNamesOfAbsent() throws {
    guard let first else { return }
    let absent = try first.connection.rows(
      """
      SELECT DISTINCT tbl FROM ferry_names
      WHERE tbl NOT IN (SELECT name FROM sqlite_schema WHERE type = 'table')
      """
    ) { $0.name(0) }
    for table in absent where !first.schemaChanges.dropped.contains(table.folded) {
      try first.connection.run("DELETE FROM ferry_names WHERE tbl = ?", table)
      for file in all { file.tables.forgetNames() }
    }
  }
}
