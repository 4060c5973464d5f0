import FerryPlatform
import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Foreign keys of this file's tables (SPEC.md §28).
extension ReplicaFile {
  /// Reads the rules of the foreign keys of all tables.
  func readParentRules() throws -> ParentRules {
    let tables = try tracked.names().compactMap { name in try? schema(of: name) }
    let links = try tables.flatMap { table in try numberedLinks(of: table).map(\.link) }
    let known = Set(tables.map(\.local.folded))
    let others = try connection.rows(
      """
      SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name)
      WHERE t.type = 'table' ORDER BY t.name
      """
    ) { $0.name(0) }.filter { !known.contains($0.folded) }
    return ParentRules(
      links,
      others: try others.flatMap { name in
        try numberedLinks(of: TableSchema(name: name, keys: [], columns: [])).map(\.link)
      })
  }

  /// Returns true if a trigger of the user's may write to other rows when a row of a table is
  /// deleted.
  func hasDeleteTrigger(_ table: TableSchema) throws -> Bool {
    func isIn(_ schema: String) throws -> Bool {
      try connection.exists(
        """
        SELECT 1 FROM \(schema) WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE
          AND lower(substr(name, 1, 6)) <> 'ferry_' AND instr(lower(sql), 'delete') LIMIT 1
        """, table.local)
    }
    // As in `needsGuards`.
    let databases = try connection.rows("PRAGMA database_list") { $0.text(1) }
    return try isIn("sqlite_schema")
      || (databases.contains(where: { $0 == "temp" }) && isIn("sqlite_temp_schema"))
  }

  /// Returns the local records a row refers to.
  ///
  /// - Parameter links: foreign keys of the row's table.
  func parents(of record: Name, by links: [ParentLink]) throws -> [RecordKey] {
    try links.flatMap { link -> [RecordKey] in
      guard let name = try trackedTable(local: link.parent), let parent = try? schema(of: name)
      else { return [] }
      let match = zip(link.from, link.to).map { "p.\(quoted($1)) = c.\(quoted($0))" }
      do {
        return try connection.rows(
          "SELECT \(parent.record(of: "p")) FROM \(quoted(link.child.local)) AS c, "
            + "\(quoted(parent.local)) AS p WHERE \(link.child.has(record: "?1", in: "c")) "
            + "AND \(match.joined(separator: " AND "))", record
        ) { $0.optionalName(0) }.compactMap { $0.map { RecordKey(table: name, record: $0) } }
      } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
        // The foreign key names a missing column: no row refers by it.
        return []
      }
    }
  }

  /// Returns the foreign keys of a table.
  func parentLinks(of table: TableSchema) throws -> [ParentLink] {
    try numberedLinks(of: table).map(\.link)
  }

  /// Returns one foreign key of a table, by the number in the schema.
  func parentLink(of table: TableSchema, id: Int64) throws -> ParentLink? {
    try numberedLinks(of: table).first { $0.id == id }?.link
  }

  /// Returns the foreign keys of a table, each with the rule declared by the schema.
  func numberedLinks(of table: TableSchema) throws -> [(id: Int64, link: ParentLink)] {
    let clashes = try rules(for: table).clashes
    var links: [(id: Int64, link: ParentLink)] = []
    try connection.forEach(
      """
      SELECT id, "table", "from", coalesce("to", (SELECT name FROM pragma_table_info("table")
        WHERE pk = seq + 1)), on_delete FROM pragma_foreign_key_list(?) ORDER BY id, seq
      """, table.local
    ) { row in
      // A reference to no column matches no row.
      guard !row.isNull(3) else { return }
      if let last = links.indices.last, links[last].id == row.int64(0) {
        links[last].link.from.append(row.name(2))
        links[last].link.to.append(row.name(3))
        return
      }
      let link = ParentLink(
        child: table, parent: row.name(1),
        from: [row.name(2)], to: [row.name(3)],
        action: ParentLink.Action(rawValue: row.text(4)) ?? .none)
      links.append((row.int64(0), link))
    }
    return links.map { id, link in
      var link = link
      let columns = link.from.map { local in
        table.columns.first { $0.local.folded == local.folded }?.name ?? local
      }
      link.declared = clashes.first { $0.columns == columns }?.rule
      return (id, link)
    }
  }
}
