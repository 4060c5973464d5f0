import FerryProtocol

/// The tables behind one ``Table``.
struct TableLayout: Sendable {
  /// How rows are divided among the parts.
  enum Division: Sendable {
    /// There is one part.
    case none
    /// Each part has some columns of every row, and the key. The first part decides which rows
    /// there are.
    case columns
    /// Each part has some rows; the rule returns the part of a row.
    case rows(@Sendable (RecordColumns) throws -> Name)
  }

  let parts: [TableDefinition]
  let division: Division

  /// The name of the first part.
  var name: Name { parts[0].name }

  var isDivided: Bool { if case .none = division { false } else { true } }

  /// Creates the missing parts.
  func create(in database: Database) throws {
    for part in parts where try database.table(part.name) == nil {
      guard !part.columns.isEmpty else { throw Self.missing(part.name) }
      for statement in part.statements { try database.execute(single: statement) }
    }
  }

  /// Returns the present columns of the parts; those of the definition for a part that does not
  /// exist yet.
  func infos(in database: Database) throws -> [TableInfo] {
    try parts.map { part in
      if let info = try database.table(part.name) { return info }
      guard !part.columns.isEmpty else { throw Self.missing(part.name) }
      return part.info
    }
  }

  /// Returns the source of queries.
  func source(in database: Database) throws -> TableSource {
    let infos = try infos(in: database)
    let alias = QuerySQL.alias
    switch division {
    case .none:
      return TableSource(
        info: infos[0], parts: infos, sql: "\(quoted(infos[0].name)) AS \(alias)")
    case .columns: return try Self.joined(infos)
    case .rows:
      let names = infos[0].columns.map(\.name)
      let selects = try infos.filter(\.exists).map { part in
        let columns = try names.map { quoted(try part.column($0).name) }.joined(separator: ", ")
        return "SELECT \(columns) FROM \(quoted(part.name))"
      }
      let info = TableInfo(infos[0].name, infos[0].columns, exists: !selects.isEmpty)
      return TableSource(
        info: info, parts: infos,
        sql: "(\(selects.joined(separator: " UNION ALL "))) AS \(alias)")
    }
  }

  /// Joins parts by their key.
  private static func joined(_ infos: [TableInfo]) throws -> TableSource {
    let key = try infos[0].checkedKey()
    var columns: [ColumnInfo] = []
    var selected: [String] = []
    var joins = ""
    for (place, part) in infos.enumerated() {
      let partAlias = quoted("p\(place)")
      guard try part.checkedKey().map(\.folded) == key.map(\.folded) else {
        throw RecordError(
          .invalid, table: part.name,
          "table \(part.name) has another key than table \(infos[0].name); parts of one record "
            + "share their key")
      }
      for column in part.columns where place == 0 || column.keyPlace == 0 {
        if columns.contains(where: { $0.name.folded == column.name.folded }) {
          throw RecordError(
            .invalid, table: part.name, column: column.name,
            "the column \(column.name) of table \(part.name) is in another part, too")
        }
        columns.append(column)
        let value = part.exists ? "\(partAlias).\(quoted(column.name))" : "NULL"
        selected.append("\(value) AS \(quoted(column.name))")
      }
      if !part.exists || place == 0 { continue }
      let on = key.map { "\(partAlias).\(quoted($0)) = \(quoted("p0")).\(quoted($0))" }
      joins += " LEFT JOIN \(quoted(part.name)) AS \(partAlias) ON \(on.joined(separator: " AND "))"
    }
    let sql =
      "(SELECT \(selected.joined(separator: ", ")) FROM \(quoted(infos[0].name)) AS "
      + "\(quoted("p0"))\(joins)) AS \(QuerySQL.alias)"
    let info = TableInfo(infos[0].name, columns, exists: infos[0].exists)
    return TableSource(info: info, parts: infos, sql: sql)
  }

  private static func missing(_ name: Name) -> DatabaseError {
    DatabaseError(
      "there is no table \(name), and its Table has no columns to create it from")
  }
}

/// The rows of a layout in one transaction.
struct TableSource {
  /// The name of the first part, and the columns of all.
  let info: TableInfo
  let parts: [TableInfo]
  /// The text after FROM; it names the rows `QuerySQL.alias`.
  let sql: String
}
