import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// A row with a foreign key that refers to no record.
struct DanglingRow {
  let child: RecordKey
  let link: ParentLink
  /// True if the row is of a tracked table; others have no identifiers.
  let isTracked: Bool
  /// The values of the foreign key's columns.
  let values: [Value]
  /// The tracked record with the key that the row refers to; `nil` if there is none.
  var parent: RecordKey?
}

/// Foreign keys left dangling by a pull.
extension ReplicaFile {
  /// Returns all dangling rows, inside the transaction that created them. Lists that are filled in have other
  /// checks.
  func danglingRows() throws -> [DanglingRow] {
    let broken = try connection.prepare(
      "SELECT DISTINCT \"table\", fkid FROM pragma_foreign_key_check()"
    ).rows { (table: $0.name(0), foreignKey: $0.int64(1)) }
    return try broken.filter { !ShadowTables.isCopy($0.table) }.flatMap {
      try danglingRows(of: $0.table, foreignKey: $0.foreignKey)
    }
  }

  /// Returns the record referred to by `row`, in a state of the replica with that record.
  func target(of row: DanglingRow) throws -> RecordKey? {
    guard let parent = try? schema(local: row.link.parent) else { return nil }
    let conditions = row.link.to.enumerated().map { "\(quoted($1)) = ?\($0 + 1)" }
    return try connection.first(
      "SELECT \(parent.record()) FROM \(quoted(parent.local)) "
        + "WHERE \(conditions.joined(separator: " AND "))", SQLiteList(row.values)
    ) { row in
      row.isNull(0) ? nil : RecordKey(table: parent.name, record: row.name(0))
    } ?? nil
  }

  /// Adds the tracked records referred to by rows through one foreign key. Numbers of mapped keys
  /// are known only within the transaction that has chosen them.
  private func addParents(to rows: [DanglingRow], by link: ParentLink) throws -> [DanglingRow] {
    guard let tracked = try trackedTable(local: link.parent),
      let parent = try? schema(of: tracked)
    else { return rows }
    let places = parent.keys.compactMap { key in
      link.to.firstIndex { $0.folded == key.local.folded }
    }
    guard places.count == link.to.count, places.count == parent.keys.count else { return rows }
    return try rows.map { row in
      var row = row
      row.parent = try record(of: parent, key: places.map { row.values[$0] }).map {
        RecordKey(table: tracked, record: Name($0))
      }
      return row
    }
  }

  /// Returns the identifier of a record with this key, also if it has no row; `nil` if there is none.
  func record(of table: TableSchema, key: [Value]) throws -> String? {
    let row = table.keys.enumerated().map { "?\($0 + 1) AS \(quoted($1.local))" }
    return try connection.first(
      "SELECT \(table.record()) FROM (SELECT \(row.joined(separator: ", ")))", SQLiteList(key)
    ) { row in row.type(0) == .text ? row.text(0) : nil } ?? nil
  }

  /// Finds dangling rows by their columns, since a row of a WITHOUT ROWID table has no other name.
  private func danglingRows(of name: Name, foreignKey: Int64) throws -> [DanglingRow] {
    let isTracked = try trackedTable(local: name) != nil
    // An untracked table may have no primary key.
    let table =
      isTracked ? try schema(local: name) : TableSchema(name: name, keys: [], columns: [])
    guard let link = try parentLink(of: table, id: foreignKey) else { return [] }
    let from = link.from.map { "c.\(quoted($0))" }
    let record =
      isTracked
      ? table.record(of: "c") : from.map { "quote(\($0))" }.joined(separator: " || ',' || ")
    let match = zip(link.to, from).map { "p.\(quoted($0)) = \($1)" }.joined(separator: " AND ")
    let rows = try connection.prepare(
      """
      SELECT \(record), \(from.joined(separator: ", "))
      FROM \(quoted(table.local)) AS c
      WHERE \(from.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
        AND NOT EXISTS (SELECT 1 FROM \(quoted(link.parent)) AS p WHERE \(match))
      """
    ).rows { row in
      DanglingRow(
        child: RecordKey(table: table.name, record: row.name(0)), link: link,
        isTracked: isTracked,
        values: link.from.indices.map { row.value(Int32($0) + 1) })
    }
    return isTracked ? try addParents(to: rows, by: link) : rows
  }
}

extension ReplicaFile {
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
