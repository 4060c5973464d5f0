import FerryProtocol
import FerrySQLite

/// The foreign keys of this file's tables, read from their schemas (SPEC.md §28).
struct ForeignKeys {
  let tables: LocalTables
  private var connection: SQLiteConnection { tables.connection }

  /// Returns the foreign keys of a table, each with the rule declared by the schema.
  func keys(of table: TableSchema) throws -> [ForeignKey] {
    try keys(of: table, parent: tracked(local:))
  }

  /// - Parameter parent: returns the tracked table with a name in this file.
  private func keys(
    of table: TableSchema, parent: (Name) throws -> TableSchema?
  ) throws -> [ForeignKey] {
    var keys: [ForeignKey] = []
    try connection.forEach(
      """
      SELECT id, "table", "from", coalesce("to", (SELECT name FROM pragma_table_info("table")
        WHERE pk = seq + 1)), on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id, seq
      """, table.local
    ) { row in
      // A reference to no column matches no row.
      guard !row.isNull(3) else { return }
      if let last = keys.indices.last, keys[last].id == row.int64(0) {
        keys[last].from.append(row.name(2))
        keys[last].to.append(row.name(3))
        return
      }
      keys.append(
        ForeignKey(
          id: row.int64(0), child: table, parent: row.name(1), from: [row.name(2)],
          to: [row.name(3)], onDelete: .init(rawValue: row.text(4)) ?? .none,
          onUpdate: .init(rawValue: row.text(5)) ?? .none))
    }
    let clashes = try tables.rules(for: table).clashes
    return try keys.map { key in
      var key = key
      let columns = key.from.map { local in
        table.columns.first { $0.local.folded == local.folded }?.name ?? local
      }
      key.declared = clashes.first { $0.columns == columns }?.rule
      key.reference = try parent(key.parent).flatMap {
        RecordReference(from: table, key.from, to: $0, key.to)
      }
      return key
    }
  }

  /// Returns the tables of this file that a table's foreign keys refer to.
  func parentNames(of local: Name) throws -> [Name] {
    try connection.rows("SELECT \"table\" FROM pragma_foreign_key_list(?)", local) { $0.name(0) }
  }

  /// Returns the tracked parent of a foreign key.
  func parent(of key: ForeignKey) throws -> TableSchema? { try tracked(local: key.parent) }

  private func tracked(local: Name) throws -> TableSchema? {
    try tables.trackedTable(local: local).flatMap { try? tables.schema(of: $0) }
  }

  /// Reads the rules of the foreign keys of all tables.
  func rules() throws -> ParentRules {
    let tracked = try tables.tracked.names().compactMap { try? tables.schema(of: $0) }
    let known = Dictionary(
      tracked.map { ($0.local.folded, $0) }, uniquingKeysWith: { one, _ in one })
    let others = try connection.rows(
      """
      SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name)
      WHERE t.type = 'table' ORDER BY t.name
      """
    ) { $0.name(0) }.filter { known[$0.folded] == nil }
    return ParentRules(
      try tracked.flatMap { try keys(of: $0) { known[$0.folded] } },
      others: try others.flatMap { try keys(of: TableSchema(untracked: $0)) { _ in nil } })
  }

  // MARK: Rows

  /// Returns the local records a row refers to.
  ///
  /// - Parameter keys: foreign keys of the row's table.
  func parents(of record: Name, by keys: [ForeignKey]) throws -> [RecordKey] {
    try keys.flatMap { key -> [RecordKey] in
      guard let parent = try parent(of: key) else { return [] }
      do {
        return try connection.rows(
          "SELECT \(parent.record(of: "p")) FROM \(quoted(key.child.local)) AS c, "
            + "\(quoted(parent.local)) AS p WHERE \(key.child.has(record: "?1", in: "c")) "
            + "AND \(key.match())", record
        ) { $0.optionalName(0) }.compactMap { $0.map { RecordKey(table: parent.name, record: $0) } }
      } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
        // The foreign key names a missing column: no row refers by it.
        return []
      }
    }
  }

  /// Returns true if a record's row refers to an absent row of an untracked table.
  func hasLostParent(_ record: RecordKey) throws -> Bool {
    let table = try tables.schema(of: record.table)
    if table.references.isEmpty { return false }
    return try keys(of: table, parent: { _ in nil }).contains { key in
      if try tables.trackedTable(local: key.parent) != nil { return false }
      return try connection.exists(
        "SELECT 1 FROM \(quoted(table.local)) AS c WHERE \(table.has(record: "?1", in: "c")) "
          + "AND \(key.isDangling())", record.record)
    }
  }

  // MARK: Drops

  /// Rejects the drop of a table if SQLite would also delete or change rows of a tracked table.
  /// SQLite deletes all rows of a dropped table first
  /// (https://sqlite.org/foreignkeys.html#fk_schemacommands).
  ///
  /// - Throws: ``ReplicaError/cannotDrop(table:_:)`` with the reason.
  func checkDrop(of table: Name) throws {
    let tracked = Set(try tables.tracked.locals().map(\.folded))
    let all = try connection.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).rows { $0.name(0) }
    var (waiting, seen) = ([table], Set([table.folded]))
    while let parent = waiting.popLast() {
      for child in all {
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

  // MARK: Errors

  /// Runs a write to one record. If a foreign key rejects it, the error names the table with the
  /// rows that refer to the record, or the one to which the record refers: SQLite names none.
  func naming<T>(_ key: RecordKey, _ write: () throws -> T) throws -> T {
    do {
      return try write()
    } catch let error as SQLiteError where error.isForeignKey && connection.isInTransaction {
      guard let reason = try reason(of: key) else { throw error }
      throw SQLiteError(code: error.code, message: "\(error.message): \(reason)", sql: error.sql)
    }
  }

  private func reason(of record: RecordKey) throws -> String? {
    let table = try tables.schema(of: record.table)
    let rules = try tables.parentRules()
    for key in rules.restricting(table.local) {
      let isReferred = try connection.exists(
        """
        SELECT 1 FROM \(quoted(table.local)) AS p JOIN \(quoted(key.child.local)) AS c
          ON \(key.match()) WHERE \(table.has(record: "?1", in: "p"))
        """, record.record)
      if isReferred { return "rows of \(key.child.local) refer to a row of \(table.local)" }
    }
    let parents = rules.parents(of: table.local).map { key in
      "\(key.from.map(\.text).joined(separator: ", ")) refers to \(key.parent)"
    }
    return parents.isEmpty ? nil : "in \(table.local), " + parents.prefix(3).joined(separator: "; ")
  }
}

extension TableSchema {
  /// An untracked table, of which only the name counts. It may have no primary key.
  init(untracked local: Name) { self.init(name: local, keys: [], columns: []) }
}
