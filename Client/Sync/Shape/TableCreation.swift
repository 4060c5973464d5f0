import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The creation of absent tables, from the space's schema or from pulled records (SPEC.md §11).
struct TableCreation {
  let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }
  private var tables: LocalTables { file.tables }

  /// Creates an absent table, from the definition or from the pulled records.
  func create(_ name: Name, key: Name) throws {
    let local = try tables.spaceNames().local(of: name, on: connection)
    guard try !connection.hasTable(local), !NameRule.isReserved(table: name) else { return }
    guard let declared = try tables.schemas.current().rules(for: name).definition else {
      return try createFromKept(name, key: key)
    }
    let statements = declared.statements(name: name) { table, columns in
      guard let parent = try? tables.schema(of: table) else { return (table, columns) }
      return (
        parent.local,
        columns.map { name in
          parent.columns.first { $0.name == name }?.local ?? name
        }
      )
    }
    for statement in statements { try connection.execute(single: statement) }
  }

  /// Creates a table that is not here with a text key and untyped columns, which keep every value
  /// unchanged. It has the columns of the changes kept for it and those that it had before. If
  /// SQLite treats column names as equal, the table gets the first in the order of bytes (SPEC.md
  /// §23).
  ///
  /// A space may have more columns than a table can record: an insert is one operation with all of
  /// them. The user chooses the columns of such a table.
  private func createFromKept(_ name: Name, key: Name) throws {
    if let fault = NameRule.fault(in: key, limits: .standard) {
      throw ReplicaError.cannotTrack(table: name, "its key cannot be called \(key): \(fault)")
    }
    var columns = Set<Name>()
    var found = false
    try connection.forEach("SELECT state FROM ferry_kept WHERE tbl = ?", name) { row in
      found = true
      let state = try? RecordState(decoding: row.textBytes(0), limits: file.limits)
      columns.formUnion(state?.columns.map(\.name) ?? [])
      try checkCount(of: columns, of: name, key: key)
    }
    // A tracked, dropped table: the next sync fetches the rows.
    let known = try file.unrecordedWrites.knownColumns(of: name)
    columns.formUnion(known)
    try checkCount(of: columns, of: name, key: key)
    guard found || !known.isEmpty else {
      throw ReplicaError.cannotTrack(
        table: name, "it does not exist here, and nothing for it has been pulled yet")
    }
    if let column = columns.sorted().first(where: { $0.folded == key.folded }) {
      throw ReplicaError.cannotTrack(
        table: name, "it has another column \(column); choose another name for the key column")
    }
    var spellings = Set<Name>()
    let list = columns.sorted().filter { spellings.insert($0.folded).inserted }
      .map { ", " + quoted($0) }.joined()
    try connection.execute(
      single: "CREATE TABLE \(quoted(name))(\(quoted(key)) TEXT PRIMARY KEY NOT NULL\(list))")
  }

  private func checkCount(of columns: Set<Name>, of table: Name, key: Name) throws {
    let most = min(file.limits.columns, file.limits.recordColumns - 1)
    guard columns.count > most else { return }
    throw ReplicaError.cannotTrack(
      table: table,
      "its records have more than \(most.grouped) different columns, and a table that Ferry creates "
        + "has at most so many beside its key. Choose columns yourself: run "
        + "CREATE TABLE \(quoted(table))(\(quoted(key)) TEXT PRIMARY KEY NOT NULL, …) in this file, "
        + "and then `\(table.command("ferry track"))`; the values of other columns stay in the space. "
        + "An admin of the space can choose for all devices, by a definition of the table")
  }
}
