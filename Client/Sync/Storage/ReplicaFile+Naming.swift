import FerryProtocol
import FerrySQLite

/// Tables and columns that this device calls by other names than the space (SPEC.md §26).
extension ReplicaFile {
  /// Returns the names in the space.
  func spaceNames() throws -> SpaceNames {
    var names = try SpaceNames.renamed(on: connection)
    let schema = try spaceSchema()
    if schema.hasAliases { names.schema = schema }
    return names
  }

  /// Renames a table or a column here, and keeps its name in the space.
  package func rename(
    _ column: Name?, of table: Name, to new: Name, by alter: () throws -> Void
  ) throws {
    let names = try spaceNames()
    let space = names.spaceName(ofTable: table)
    renaming = Renaming(
      table: space, column: try column.map { try spaceName(of: $0, in: table, space, names) },
      from: column ?? table, to: new, place: table)
    defer { renaming = nil }
    try alter()
  }

  private func spaceName(
    of column: Name, in table: Name, _ space: Name, _ names: SpaceNames
  ) throws -> Name {
    let locals = try columns(of: table)
    guard let place = locals.firstIndex(where: { $0.folded == column.folded }) else {
      return column
    }
    return (try? names.spaceNames(of: locals, in: space))?[place] ?? locals[place]
  }

  /// Fails a statement after which two columns of a tracked table would be one of the space.
  func checkNames() throws {
    let names = try spaceNames()
    if names.isEmpty { return }
    for local in try trackedLocals()
    where (try? TableSchema.read(local, from: connection, SpaceNames())) != nil {
      _ = try schema(of: local)
    }
  }

  private func columns(of table: Name) throws -> [Name] {
    try connection.rows("SELECT name FROM pragma_table_xinfo(?)", table) { $0.name(0) }
  }

  /// Keeps the name in the space after a statement that has renamed something here.
  func keepRenamed() throws {
    guard let renaming else { return }
    let present =
      try renaming.column == nil
      ? connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.name(0) }
      : columns(of: renaming.place)
    // The statement may have failed.
    guard present.contains(renaming.to), !present.contains(renaming.from) else { return }
    let column = renaming.column?.text ?? ""
    if renaming.to == renaming.column ?? renaming.table {
      try connection.run(
        "DELETE FROM ferry_names WHERE tbl = ? AND col = ?", renaming.table, column)
    } else {
      try connection.run(
        "INSERT OR REPLACE INTO ferry_names(tbl, col, local) VALUES (?, ?, ?)", renaming.table,
        column, renaming.to)
    }
  }
}

/// A change of a name that is under way.
struct Renaming {
  /// The table's name in the space, and the column's; no column: the table is renamed.
  let table: Name
  let column: Name?
  /// The names in this file.
  let from: Name
  let to: Name
  /// The table that has the column.
  let place: Name
}

extension SpaceNames {
  /// Reads the names from a replica's file.
  static func read(from connection: SQLiteConnection) throws -> SpaceNames {
    var names = try renamed(on: connection)
    let document = try connection.first(
      """
      SELECT document FROM ferry_schemas WHERE version = (SELECT schema FROM ferry_replica)
      """
    ) { $0.text(0) }
    if let schema = try document.map({ try SpaceSchema(json: $0) }), schema.hasAliases {
      names.schema = schema
    }
    return names
  }

  /// Returns what was renamed on this device.
  static func renamed(on connection: SQLiteConnection) throws -> SpaceNames {
    var names = SpaceNames()
    try connection.forEach("SELECT tbl, col, local FROM ferry_names") { row in
      let column = row.name(1)
      if column.text.isEmpty {
        names.tables.append(Pair(space: row.name(0), local: row.name(2)))
      } else {
        names.columns[row.name(0), default: []].append(Pair(space: column, local: row.name(2)))
      }
    }
    return names
  }
}
