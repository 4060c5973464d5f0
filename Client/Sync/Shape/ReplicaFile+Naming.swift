import FerryProtocol
import FerrySQLite

/// Tables and columns with other names on this device than in the space (SPEC.md §26).
extension ReplicaFile {
  /// The names in the space, and the state of the file when they were read.
  struct KnownNames {
    let names: SpaceNames
    let schema: SchemaMark
    /// The version of the space's schema.
    let spaceSchema: Int64
  }

  /// Returns the names in the space. They change with the schema of the file or of the space; whatever
  /// else changes them calls ``forgetNames()``.
  func spaceNames() throws -> SpaceNames {
    let mark = try schemaMark()
    let schema = try schemas.current()
    if let known = knownNames, known.schema == mark, known.spaceSchema == schema.version {
      return known.names
    }
    var names = try SpaceNames.local(on: connection)
    if schema.hasAliases { names.schema = schema }
    knownNames = KnownNames(names: names, schema: mark, spaceSchema: schema.version)
    return names
  }

  /// Reads the names again when they are needed next.
  func forgetNames() { knownNames = nil }

  /// Returns a table by the name in this file, or in the space.
  func schema(local table: Name) throws -> TableSchema {
    guard try connection.hasTable(table) else { return try schema(of: table) }
    return try TableSchema.read(local: table, from: connection, spaceNames(), &knownSchemas)
  }

  /// Fails a statement if two columns of a tracked table would be one of the space after it.
  func checkNames() throws {
    if try spaceNames().isEmpty { return }
    for name in try tracked.names() {
      let local = try spaceNames().local(of: name, on: connection)
      var known: TableSchema.Known = [:]
      guard (try? TableSchema.read(unnamed: local, from: connection, &known)) != nil else {
        continue
      }
      _ = try schema(of: name)
    }
  }

  /// Enters the new name of a table, or of a column, among the tracked tables.
  func applyName(_ renaming: Renaming) throws {
    defer { forgetNames() }
    guard let name = renaming.tracked[number] else { return }
    if let column = renaming.column {
      try connection.run(
        "UPDATE ferry_tables SET space_column = ? WHERE name = ? AND space_column = ?",
        renaming.to, name, column)
    } else {
      try connection.run("UPDATE ferry_tables SET local = ? WHERE name = ?", renaming.to, name)
      suspension?.places[name]?.locals.insert(renaming.to.folded)
    }
  }
}

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
  fileprivate static func local(on connection: SQLiteConnection) throws -> SpaceNames {
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
