import FerryProtocol
import FerrySQLite

extension SQLiteConnection {
  /// Returns true if there is such a table or view; SQL ignores case.
  func hasTable(_ name: Name) throws -> Bool { try spelling(ofTable: name) != nil }

  /// Returns the name of a table or view as it was spelled when it was created.
  func spelling(ofTable name: Name) throws -> Name? {
    try first(
      "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE",
      name
    ) { $0.name(0) }
  }
}

extension SpaceNames {
  /// Returns the name in this file of a table of the space.
  func local(of table: Name, on connection: SQLiteConnection) throws -> Name {
    let own = tracked.first { $0.space == table }?.local
    if let own, try isEmpty || !ofOtherSpaces.contains(own.folded) && connection.hasTable(own) {
      return own
    }
    let others = ofOtherSpaces.union(tracked.filter { $0.space != table }.map(\.local.folded))
    let found = try locals(of: table).first {
      try !others.contains($0.folded) && connection.hasTable($0)
    }
    return found ?? own ?? table
  }

  /// Reads the names from a replica's file.
  static func read(from connection: SQLiteConnection) throws -> SpaceNames {
    var names = try local(on: connection)
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

  /// Returns the tables recorded only by other ledgers of the file, folded. A name declared by a
  /// schema must not lead to them.
  private static func tablesOfOtherSpaces(on connection: SQLiteConnection) throws -> Set<Name> {
    // In quotation marks, names are those of the first ledger.
    let numbers = try connection.rows(
      "SELECT 1 UNION ALL SELECT number FROM \(quoted("ferry_spaces"))"
    ) { Int($0.int64(0)) }
    guard numbers.count > 1 else { return [] }
    var tables = Set<Name>()
    for number in numbers where number != connection.namespace.number {
      let ledger = quoted(Name(FileSpaces.names(of: number).name("ferry_tables")))
      try connection.forEach("SELECT local FROM \(ledger) WHERE space_column IS NULL") {
        tables.insert($0.name(0).folded)
      }
    }
    return tables
  }

  /// Returns the names without those declared by the space's schema.
  static func local(on connection: SQLiteConnection) throws -> SpaceNames {
    var names = SpaceNames()
    try connection.forEach(
      "SELECT name, local, identity, space_column, space FROM ferry_tables, ferry_replica"
    ) { row in
      let pair = Pair(space: row.name(0), local: row.name(1))
      names.tracked.append(pair)
      names.identities[pair.space] = KeyIdentity(rawValue: row.text(2))
      if !row.isNull(3) {
        names.shares[pair.space] = SpaceShare(column: row.name(3), space: row.optionalText(4))
      }
    }
    names.ofOtherSpaces = try tablesOfOtherSpaces(on: connection)
    try connection.forEach(
      "SELECT t.name, n.key, n.value FROM ferry_tables AS t, json_each(t.numbers) AS n"
    ) { row in
      names.numbers[row.name(0), default: [:]][row.name(1)] = row.name(2)
    }
    try connection.forEach("SELECT tbl, name FROM ferry_columns") { row in
      names.recorded[row.name(0), default: []].append(row.name(1))
    }
    // In quotation marks, this is the table of the first ledger.
    try connection.forEach("SELECT tbl, col, first FROM \(quoted("ferry_names"))") { row in
      let (table, column, first) = (row.name(0), row.name(1), row.name(2))
      if column.text.isEmpty {
        names.tables.append(Pair(space: first, local: table))
      } else {
        names.columns[table.folded, default: []].append(Pair(space: first, local: column))
      }
    }
    return names
  }
}
