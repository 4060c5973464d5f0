import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The schema of a user's table, as far as Ferry needs it.
package struct TableSchema: Sendable, Equatable {
  package struct ColumnInfo: Sendable, Equatable {
    /// The name in the space.
    package let name: Name
    /// The name in this file.
    package let local: Name
    /// The default as SQL, if the schema declares one.
    package let defaultSQL: String?
    package let isRequired: Bool
  }

  /// The name in the space.
  package let name: Name
  /// The name in this file.
  package let local: Name
  /// The text primary key, which has no name in the space.
  package let key: Name
  /// All stored columns but the key, in the table's order.
  package let columns: [ColumnInfo]

  /// Schemas by the statements that created their tables; these determine the whole schema.
  typealias Known = [Name: TableSchema]

  init(name: Name, local: Name? = nil, key: Name, columns: [ColumnInfo]) {
    (self.name, self.local, self.key, self.columns) = (name, local ?? name, key, columns)
  }

  /// Reads the schema of a table by its name in the space.
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` with the reason.
  package static func read(
    _ table: Name, from connection: SQLiteConnection, _ names: SpaceNames
  ) throws -> TableSchema {
    var known: Known = [:]
    return try read(table, from: connection, names, &known)
  }

  /// Reads the schema of a table by its name in the space, unless it is known.
  static func read(
    _ table: Name, from connection: SQLiteConnection, _ names: SpaceNames, _ known: inout Known
  ) throws -> TableSchema {
    let local = try names.local(of: table, on: connection)
    let found = try read(unnamed: local, from: connection, &known)
    // SQLite takes another spelling for the same name; the space does not (SPEC.md §23).
    return try found.named(in: found.local == local ? table : found.local, by: names)
  }

  /// Reads the schema of a table by its name in this file.
  static func read(
    local: Name, from connection: SQLiteConnection, _ names: SpaceNames, _ known: inout Known
  ) throws -> TableSchema {
    if let own = names.trackedTable(local: local) {
      return try read(own, from: connection, names, &known)
    }
    let found = try read(unnamed: local, from: connection, &known)
    let space = try names.spaceName(ofUntracked: found.local) { name in
      try names.tracked.contains { $0.space == name } || connection.hasTable(name)
    }
    if let other = names.tracked.first(where: { $0.space.folded == space.folded }) {
      throw ReplicaError.cannotTrack(
        table: local,
        "the space's table \(space) is called \(other.local) here; give this one another name")
    }
    return try found.named(in: space, by: names)
  }

  /// Returns the same table with its names in the space.
  private func named(in space: Name, by names: SpaceNames) throws -> TableSchema {
    do {
      let columns = try zip(columns, names.spaceNames(of: columns.map(\.local), in: space)).map {
        ColumnInfo(
          name: $1, local: $0.local, defaultSQL: $0.defaultSQL, isRequired: $0.isRequired)
      }
      return TableSchema(name: space, local: local, key: key, columns: columns)
    } catch {
      throw ReplicaError.cannotTrack(
        table: local,
        "its columns \(error.locals[0]) and \(error.locals[1]) would both be the column "
          + "\(error.name) of the space; give one of them another name")
    }
  }

  /// Returns a column of the space as this file's SQL names it.
  func quotedColumn(_ name: Name) -> String {
    // SQLite reports an absent column by this name. Another column may have the space's own name.
    quoted(columns.first { $0.name == name }?.local ?? "column \(name) of the space")
  }

  /// Reads the schema of a table of this file, whose columns have their own names.
  static func read(
    unnamed table: Name, from connection: SQLiteConnection, _ known: inout Known
  ) throws -> TableSchema {
    if let fault = NameRule.fault(in: table, limits: .standard) {
      throw ReplicaError.cannotTrack(table: table, fault)
    }
    if NameRule.isReserved(table: table) {
      throw ReplicaError.cannotTrack(
        table: table, "names beginning with ferry_ or sqlite_ are reserved")
    }
    let found = try connection.first(
      "SELECT name, type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE AND type IN ('table','view')",
      table
    ) { ($0.name(0), $0.text(1), $0.text(2)) }
    guard let (name, type, sql) = found else {
      throw ReplicaError.cannotTrack(table: table, "there is no such table")
    }
    let text = Name(sql)
    if let schema = known[text] { return schema }
    guard type == "table", !sql.uppercased().hasPrefix("CREATE VIRTUAL") else {
      throw ReplicaError.cannotTrack(table: table, "it is a view or a virtual table")
    }
    let schema = try readColumns(of: name, from: connection, sql: sql)
    if known.count >= 256 { known = [:] }
    known[text] = schema
    return schema
  }

  private static func readColumns(
    of table: Name, from connection: SQLiteConnection, sql: String
  ) throws -> TableSchema {
    var keys: [(name: Name, type: String)] = []
    var columns: [ColumnInfo] = []
    try connection.forEach(
      "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?)", table
    ) { row in
      let name = row.name(0)
      if row.int64(4) > 0 {
        keys.append((name, row.text(1).uppercased()))
      } else if row.int64(5) == 0 {
        columns.append(
          ColumnInfo(
            name: name, local: name, defaultSQL: row.optionalText(3), isRequired: row.int64(2) != 0)
        )
      }
    }
    guard let key = keys.first, keys.count == 1 else {
      throw ReplicaError.cannotTrack(
        table: table,
        keys.isEmpty
          ? "it has no primary key; give it one TEXT PRIMARY KEY column"
          : "its primary key has \(keys.count) columns; give it one TEXT PRIMARY KEY column")
    }
    guard ["TEXT", "CHAR", "CLOB"].contains(where: key.type.contains) else {
      throw ReplicaError.cannotTrack(
        table: table,
        "its primary key \(key.name) is \(key.type.isEmpty ? "untyped" : key.type), not TEXT: "
          + "two devices would choose the same integer. Use TEXT ids such as UUIDv7")
    }
    if sql.uppercased().contains("COLLATE") {
      try checkCollation(of: key.name, in: table, connection)
    }
    for name in [key.name] + columns.map(\.name) {
      if let fault = NameRule.fault(in: name, limits: .standard) {
        throw ReplicaError.cannotTrack(table: table, fault)
      }
    }
    guard columns.count <= Limits.standard.columns else {
      throw ReplicaError.cannotTrack(
        table: table, "it has more than \(Limits.standard.columns) columns")
    }
    return TableSchema(name: table, key: key.name, columns: columns)
  }

  /// Checks that keys compare by their bytes, as they do elsewhere. A collation that takes two keys
  /// for one would mix records.
  private static func checkCollation(
    of key: Name, in table: Name, _ connection: SQLiteConnection
  ) throws {
    let declared = try connection.first(
      """
      SELECT column.coll FROM pragma_index_list(?) AS list, pragma_index_xinfo(list.name) AS column
      WHERE list.origin = 'pk' AND column.key = 1
      """, table
    ) { $0.text(0).uppercased() }
    if let collation = declared, collation != "BINARY" {
      throw ReplicaError.cannotTrack(
        table: table,
        "its primary key \(key) has the collation \(collation), so different ids of other devices "
          + "are equal here; declare it without COLLATE")
    }
  }
}
