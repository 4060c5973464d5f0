import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Foreign keys of this file's tables, outside of a pull.
extension ReplicaFile {
  /// Returns the identifier of a record with this key, also if it has no row; `nil` if there is none.
  func record(of table: TableSchema, key: [Value]) throws -> String? {
    let row = table.keys.enumerated().map { "?\($0 + 1) AS \(quoted($1.local))" }
    return try connection.first(
      "SELECT \(table.record()) FROM (SELECT \(row.joined(separator: ", ")))", SQLiteList(key)
    ) { row in row.type(0) == .text ? row.text(0) : nil } ?? nil
  }

  /// Rejects the drop of a table if SQLite would also delete or change rows of a tracked table.
  /// SQLite deletes all rows of a dropped table first
  /// (https://sqlite.org/foreignkeys.html#fk_schemacommands).
  ///
  /// - Throws: ``ReplicaError/cannotDrop(table:_:)`` with the reason.
  func tableWillDrop(_ table: Name) throws {
    dropped.insert(table.folded)
    // Foreign keys are off during a step: no other row goes with the table.
    if suspension != nil { return }
    let tracked = Set(try tracked.locals().map(\.folded))
    let tables = try connection.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).rows { $0.name(0) }
    var (waiting, seen) = ([table], Set([table.folded]))
    while let parent = waiting.popLast() {
      for child in tables {
        guard let isCascading = try follows(child, parent), seen.insert(child.folded).inserted
        else {
          continue
        }
        guard !tracked.contains(child.folded) else {
          throw ReplicaError.cannotDrop(
            table: table,
            "SQLite would delete or change rows of \(child) with it (ON DELETE), on all devices; "
              + "`\(child.command("ferry untrack"))` first, and track it again after the migration")
        }
        if isCascading { waiting.append(child) }
      }
    }
  }

  /// Returns true if rows of a table are deleted with their parents' rows; `nil` if no rows of the
  /// table are deleted or changed with them.
  private func follows(_ child: Name, _ parent: Name) throws -> Bool? {
    let links = try connection.prepare(
      """
      SELECT "from", on_delete FROM pragma_foreign_key_list(?)
      WHERE lower("table") = lower(?) AND on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
      """
    ).rows(child, parent) { ($0.name(0), $0.text(1)) }
    var found: Bool?
    for (column, action) in links {
      let refers = try connection.prepare(
        "SELECT 1 FROM \(quoted(child)) WHERE \(quoted(column)) IS NOT NULL LIMIT 1"
      ).exists()
      if refers { found = found ?? false || action == "CASCADE" }
    }
    return found
  }

  /// Returns true if a foreign key deletes or changes rows of a table when their parents are
  /// deleted.
  func goesWithParents(_ table: Name) throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM pragma_foreign_key_list(?)
      WHERE on_delete NOT IN ('NO ACTION', 'RESTRICT') LIMIT 1
      """, table)
  }
}
