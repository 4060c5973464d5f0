import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// A row whose foreign key refers to no record.
struct DanglingRow {
  let child: RecordKey
  /// The parent table and the columns of the foreign key, as this file names them, and their values.
  let parent: Name
  let columns: [Name]
  let values: [Value]
  /// Whether the row goes with the record that it refers to (ON DELETE CASCADE).
  let isCascading: Bool
}

/// Foreign keys that a pull would leave dangling.
extension ReplicaFile {
  /// Returns all dangling rows, inside the transaction that created them.
  func danglingRows() throws -> [DanglingRow] {
    let broken = try connection.prepare(
      "SELECT DISTINCT \"table\", fkid FROM pragma_foreign_key_check()"
    ).rows { (table: $0.name(0), foreignKey: $0.int64(1)) }
    return try broken.flatMap { try danglingRows(of: $0.table, foreignKey: $0.foreignKey) }
  }

  /// Returns the record that `row` refers to, in a state of the replica with that record.
  func target(of row: DanglingRow) throws -> RecordKey? {
    guard let parent = try? schema(local: row.parent) else { return nil }
    let conditions = row.columns.enumerated().map { "\(quoted($1)) = ?\($0 + 1)" }
    return try connection.prepare(
      "SELECT \(quoted(parent.key)) FROM \(quoted(parent.local)) "
        + "WHERE \(conditions.joined(separator: " AND "))"
    ).first(SQLiteList(row.values)) { RecordKey(table: parent.name, record: $0.name(0)) }
  }

  /// Returns the tracked record with which a dangling row goes; `nil` if there is none.
  func cascadeParent(of row: DanglingRow) throws -> RecordKey? {
    guard row.isCascading, row.columns.count == 1, case .text(let record) = row.values[0],
      let tracked = try trackedTable(local: row.parent),
      let parent = try? schema(of: tracked), parent.key.folded == row.columns[0].folded
    else { return nil }
    return RecordKey(table: tracked, record: Name(record))
  }

  /// Finds dangling rows by their columns, since a row of a WITHOUT ROWID table has no other name.
  private func danglingRows(of name: Name, foreignKey: Int64) throws -> [DanglingRow] {
    guard let table = try? schema(local: name) else { return [] }
    let pairs = try connection.prepare(
      """
      SELECT "table", "from", coalesce("to", (SELECT name FROM pragma_table_info("table")
        WHERE pk = seq + 1)), on_delete FROM pragma_foreign_key_list(?) WHERE id = ? ORDER BY seq
      """
    ).rows(table.local, foreignKey) {
      (parent: $0.name(0), from: quoted($0.name(1)), to: $0.name(2), action: $0.text(3))
    }
    guard let (parent, action) = pairs.first.map({ ($0.parent, $0.action) }) else { return [] }
    let match = pairs.map { "p.\(quoted($0.to)) = c.\($0.from)" }.joined(separator: " AND ")
    return try connection.prepare(
      """
      SELECT \(quoted(table.key)), \(pairs.map(\.from).joined(separator: ", "))
      FROM \(quoted(table.local)) AS c
      WHERE \(pairs.map { "c.\($0.from) IS NOT NULL" }.joined(separator: " AND "))
        AND NOT EXISTS (SELECT 1 FROM \(quoted(parent)) AS p WHERE \(match))
      """
    ).rows { row in
      DanglingRow(
        child: RecordKey(table: table.name, record: row.name(0)), parent: parent,
        columns: pairs.map(\.to), values: pairs.indices.map { row.value(Int32($0) + 1) },
        isCascading: action == "CASCADE")
    }
  }
}

extension ReplicaFile {
  /// Rejects the drop of a table if SQLite would also delete or change rows of a tracked table.
  /// SQLite deletes all rows of a dropped table first
  /// (https://sqlite.org/foreignkeys.html#fk_schemacommands).
  ///
  /// - Throws: ``ReplicaError/cannotDrop(table:_:)`` with the reason.
  package func tableWillDrop(_ table: Name) throws {
    dropped.insert(table.folded)
    // Foreign keys are off during a step: no other row goes with the table.
    if suspension != nil { return }
    let tracked = Set(try trackedLocals().map(\.folded))
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
              + "`ferry untrack \(child)` first, and track it again after the migration")
        }
        if isCascading { waiting.append(child) }
      }
    }
  }

  /// Returns whether rows of a table are deleted with their parents' rows; `nil` if the table has no rows
  /// that are deleted or changed with them.
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

  /// Whether a foreign key deletes or changes rows of a table when their parents are deleted.
  func goesWithParents(_ table: Name) throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM pragma_foreign_key_list(?)
      WHERE on_delete NOT IN ('NO ACTION', 'RESTRICT') LIMIT 1
      """, table)
  }
}

/// A column of a tracked table that refers to another tracked table's key.
struct ForeignKeyLink {
  let child: Name
  let column: Name
  let parent: Name

  /// Returns the record to which a row with these columns refers.
  func parent(in columns: [Column]) -> RecordKey? {
    guard let value = columns.first(where: { $0.name == column })?.value,
      case .text(let record) = value
    else { return nil }
    return RecordKey(table: parent, record: Name(record))
  }
}

extension ReplicaFile {
  /// Returns the references between records of tracked tables.
  func foreignKeyLinks() throws -> [ForeignKeyLink] {
    let tracked = try spaceNames().tracked.sorted { $0.space < $1.space }
    return try tracked.flatMap { child -> [ForeignKeyLink] in
      try connection.prepare(
        "SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?)"
      ).rows(child.local) { row -> ForeignKeyLink? in
        guard
          let table = try? schema(of: child.space),
          let parent = try trackedTable(local: row.name(0)),
          let key = try? schema(of: parent).key,
          row.isNull(2) || row.name(2).folded == key.folded,
          let column = table.columns.first(where: { $0.local.folded == row.name(1).folded })
        else { return nil }
        return ForeignKeyLink(child: child.space, column: column.name, parent: parent)
      }.compactMap { $0 }
    }
  }
}
