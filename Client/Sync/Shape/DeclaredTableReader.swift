import FerryPersistence
import FerryPlatform
import FerryProtocol
import FerrySQLite

/// Reads a table's definition for other devices, and names the parts they cannot create.
struct DeclaredTableReader {
  let table: TableSchema
  let names: SpaceNames
  let connection: SQLiteConnection
  /// Parts of the table without a place in a definition.
  private(set) var omitted: [String] = []
  private var isStrict = false

  init(_ table: TableSchema, _ names: SpaceNames, on connection: SQLiteConnection) {
    (self.table, self.names, self.connection) = (table, names, connection)
  }

  /// Returns the definitions of tracked tables, and the parts missing from them.
  ///
  /// - Parameter chosen: names in this file; `nil` for all tracked tables.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` for a table that is not tracked.
  static func read(
    _ chosen: [Name]?, of tables: LocalTables
  ) throws -> [Name: (DeclaredTable, omitted: [String])] {
    try tables.connection.transaction(.deferred) {
      let names = try tables.spaceNames()
      var declared: [Name: (DeclaredTable, omitted: [String])] = [:]
      for local in try chosen ?? tables.tracked.locals() {
        guard let name = try tables.trackedTable(local: local) else {
          throw ReplicaError.cannotTrack(
            table: local, "it is not tracked; `\(local.command("ferry track"))` first")
        }
        var reader = DeclaredTableReader(try tables.schema(of: name), names, on: tables.connection)
        let table = try reader.read()
        declared[name] = (table, reader.omitted)
      }
      return declared
    }
  }

  /// Returns the definition.
  mutating func read() throws -> DeclaredTable {
    let sql = TableSQL(
      try connection.first(
        "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", table.local
      ) { $0.text(0) } ?? "")
    let options = try connection.first(
      "SELECT strict, wr FROM pragma_table_list(?) WHERE schema = 'main'", table.local
    ) { (isStrict: $0.int64(0) != 0, isWithoutRowID: $0.int64(1) != 0) }
    isStrict = options?.isStrict ?? false
    var declared = DeclaredTable(key: try key(), columns: try columns())
    declared.isStrict = isStrict
    declared.keyPlaces = try keyPlaces()
    declared.isWithoutRowID = options?.isWithoutRowID ?? false
    declared.isAutoincrement = table.identity == .mapped && sql.has("AUTOINCREMENT")
    for index in try indexes() {
      guard let list = index.columns else {
        omitted.append("\(index.label): it has a condition or an expression")
        continue
      }
      if index.isOrdered { omitted.append("\(index.label): its order or collation") }
      // Other values would clash on other devices.
      if index.isUnique && index.isCollated { continue }
      if index.isUnique { declared.unique.append(list) } else { declared.indexes.append(list) }
    }
    declared.references = try references(sql)
    try omitRest(sql)
    return declared
  }

  /// Names the parts without a place in any definition.
  private mutating func omitRest(_ sql: TableSQL) throws {
    for column in table.keys.map(\.local) + table.columns.map(\.local) {
      guard let collation = connection.collation(of: column.text, in: table.local.text),
        collation.uppercasedASCII != "BINARY"
      else { continue }
      omitted.append("column \(column): its collation \(collation)")
    }
    if sql.has("CHECK") { omitted.append("CHECK clauses") }
    if sql.has("ON", "CONFLICT") { omitted.append("ON CONFLICT clauses") }
    omitted += try connection.rows(
      """
      SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE
        AND name NOT LIKE 'ferry\\_%' ESCAPE '\\' ORDER BY name
      """, table.local
    ) { "trigger \($0.name(0))" }
  }

  private func key() throws -> DeclaredKey {
    switch table.identity {
    case .text: return .text(table.key)
    case .mapped: return .mapped(table.key)
    case .value:
      var types: [Name: String] = [:]
      try connection.forEach("SELECT name, type FROM pragma_table_xinfo(?)", table.local) {
        types[$0.name(0)] = $0.text(1)
      }
      return .value(
        table.keys.map { DeclaredKeyColumn($0.local, affinity(types[$0.local] ?? "")) })
    }
  }

  /// Returns the places of the key's columns among those of the definition; none if they come first.
  private func keyPlaces() throws -> [Int] {
    let known = Set((table.keys.map(\.local) + table.columns.map(\.local)).map(\.folded))
    let order = try connection.rows(
      "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid", table.local
    ) { $0.name(0).folded }.filter(known.contains)
    let places = table.keys.compactMap { order.firstIndex(of: $0.local.folded) }
    return places == Array(table.keys.indices) || places.count != table.keys.count ? [] : places
  }

  private func affinity(_ type: String) -> DeclaredColumn.Affinity {
    isStrict && type.uppercasedASCII == "ANY" ? .any : .init(declared: type)
  }

  private mutating func columns() throws -> [DeclaredColumn] {
    var columns: [DeclaredColumn] = []
    let rows = try connection.rows(
      "SELECT name, type, hidden FROM pragma_table_xinfo(?) WHERE pk = 0", table.local
    ) { (local: $0.name(0), type: $0.text(1), isHidden: $0.int64(2) != 0) }
    for row in rows {
      guard !row.isHidden, let info = table.columns.first(where: { $0.local == row.local }) else {
        omitted.append("column \(row.local): it is computed")
        continue
      }
      var column = DeclaredColumn(
        info.name, affinity(row.type), isRequired: info.isRequired)
      switch try ColumnDefault(sql: info.defaultSQL, on: connection) {
      case .null: break
      case .constant(let value): column.defaultValue = value
      case .varying:
        column.now = DeclaredColumn.Moment(sql: info.defaultSQL ?? "")
        if column.now == nil { omitted.append("column \(row.local): its default is computed") }
      }
      columns.append(column)
    }
    return columns
  }

  /// Returns a column's name in the space; the key's name is separate.
  private func spaceName(_ local: Name) -> Name? {
    if let key = table.keys.first(where: { $0.local.folded == local.folded }) { return key.local }
    return table.columns.first { $0.local.folded == local.folded }?.name
  }

  // MARK: Indexes

  private func indexes() throws -> [(
    label: String, isUnique: Bool, isOrdered: Bool, isCollated: Bool, columns: [Name]?
  )] {
    let list = try connection.rows(
      """
      SELECT name, "unique", partial, origin = 'u' FROM pragma_index_list(?) WHERE origin <> 'pk'
      ORDER BY seq DESC
      """, table.local
    ) { row in
      (
        name: row.name(0), isUnique: row.int64(1) != 0, isPartial: row.int64(2) != 0,
        isClause: row.int64(3) != 0
      )
    }
    return try list.map { index in
      let locals = try connection.rows(
        "SELECT name FROM pragma_index_info(?) ORDER BY seqno", index.name
      ) { row -> Name? in row.isNull(0) ? nil : row.name(0) }
      let columns = locals.map { $0.flatMap(spaceName) }
      // The user has given no name to the index of a clause.
      let clause = "UNIQUE (\(locals.compactMap { $0?.text }.joined(separator: ", ")))"
      let isPlain = !index.isPartial && !columns.contains(nil)
      let isCollated = try connection.exists(
        """
        SELECT 1 FROM pragma_index_xinfo(?) WHERE key = 1 AND upper(coll) <> 'BINARY' LIMIT 1
        """, index.name)
      let isDescending = try connection.exists(
        "SELECT 1 FROM pragma_index_xinfo(?) WHERE key = 1 AND \"desc\" <> 0 LIMIT 1", index.name)
      return (
        index.isClause ? clause : "index \(index.name)", index.isUnique, isCollated || isDescending,
        isCollated,
        isPlain ? columns.compactMap { $0 } : nil
      )
    }
  }

  // MARK: References

  private mutating func references(_ sql: TableSQL) throws -> [DeclaredReference] {
    var found: [Int64: DeclaredReference] = [:]
    let rows = try connection.rows(
      """
      SELECT id, "table", "from", "to", on_delete, on_update FROM pragma_foreign_key_list(?)
      ORDER BY id, seq
      """, table.local
    ) { row in
      (
        id: row.int64(0), table: row.name(1), from: row.name(2),
        to: row.isNull(3) ? nil : row.name(3), onDelete: row.text(4), onUpdate: row.text(5)
      )
    }
    for row in rows {
      var known: TableSchema.Known = [:]
      let parent = try? TableSchema.read(local: row.table, from: connection, names, &known)
      guard let from = spaceName(row.from), let parent else {
        omitted.append("the reference to \(row.table): no device can track that table")
        continue
      }
      let to = row.to.map { local in
        parent.columns.first { $0.local.folded == local.folded }?.name ?? local
      }
      var reference =
        found[row.id]
        ?? DeclaredReference(
          [], to: parent.name, onDelete: .init(sql: row.onDelete),
          onUpdate: .init(sql: row.onUpdate))
      // SQLite counts foreign keys from the last one.
      let place = sql.deferred.count - 1 - Int(row.id)
      reference.isDeferred = sql.deferred.indices.contains(place) && sql.deferred[place]
      reference.columns.append(from)
      if let to { reference.to.append(to) }
      found[row.id] = reference
    }
    return found.sorted { $0.key > $1.key }.map(\.value).map { reference in
      var reference = reference
      // A reference to the key alone names no column: devices may call their keys otherwise.
      let parent = try? TableSchema.read(reference.table, from: connection, names)
      if let parent, reference.to.map(\.folded) == parent.keys.map(\.local.folded) {
        reference.to = []
      }
      return reference
    }
  }
}

extension DeclaredColumn.Affinity {
  /// The affinity of a declared type.
  init(declared type: String) {
    switch ColumnAffinity(declared: type) {
    case .none: self = .blob
    case .text: self = .text
    case .real: self = .real
    case .numeric: self = type.uppercasedASCII.has("INT") ? .integer : .numeric
    }
  }
}

extension DeclaredReference.Action {
  fileprivate init(sql: String) {
    self = Self.allCases.first { $0.sql == sql.uppercasedASCII } ?? .none
  }

  fileprivate var sql: String {
    rawValue.replacing("-", with: " ").uppercasedASCII
  }
}

extension DeclaredTable {
  /// Returns the statements to create the table on a device with the space's names for all columns.
  ///
  /// - Parameter local: returns the name, and the names of columns, of a table here.
  package func statements(
    name: Name, local: (_ table: Name, _ columns: [Name]) -> (table: Name, columns: [Name])
  ) -> [String] {
    var parts = inOrder(keyColumns, columns.map { $0.sql(isStrict) }) + key.constraints
    parts += unique.map { "UNIQUE (\(Self.list($0)))" }
    parts += references.map { reference in
      let parent = local(reference.table, reference.to)
      let to = parent.columns.isEmpty ? "" : "(\(Self.list(parent.columns)))"
      return
        "FOREIGN KEY (\(Self.list(reference.columns))) REFERENCES \(quoted(parent.table))\(to) "
        + "ON DELETE \(reference.onDelete.sql) ON UPDATE \(reference.onUpdate.sql)"
        + (reference.isDeferred ? " DEFERRABLE INITIALLY DEFERRED" : "")
    }
    let indexes = indexes.map { columns in
      let place = "\(name)(\(columns.map(\.text).joined(separator: ",")))"
      return "CREATE INDEX IF NOT EXISTS \(quoted(Name("index of \(place)"))) "
        + "ON \(quoted(name))(\(Self.list(columns)))"
    }
    let options = (isWithoutRowID ? ["WITHOUT ROWID"] : []) + (isStrict ? ["STRICT"] : [])
    return [
      "CREATE TABLE \(quoted(name))(\(parts.joined(separator: ", "))) "
        + options.joined(separator: ", ")
    ] + indexes
  }

  private var keyColumns: [String] {
    switch key {
    case .text(let name): ["\(quoted(name)) TEXT PRIMARY KEY NOT NULL"]
    case .mapped(let name):
      ["\(quoted(name)) INTEGER PRIMARY KEY" + (isAutoincrement ? " AUTOINCREMENT" : "")]
    case .value(let columns):
      columns.map { "\(quoted($0.name)) \($0.affinity.sql(isStrict: isStrict)) NOT NULL" }
    }
  }

  private static func list(_ columns: [Name]) -> String {
    columns.map(quoted).joined(separator: ", ")
  }
}

extension DeclaredKey {
  /// The constraints of the table, after all columns in SQL.
  fileprivate var constraints: [String] {
    guard case .value(let columns) = self else { return [] }
    return ["PRIMARY KEY (\(columns.map { quoted($0.name) }.joined(separator: ", ")))"]
  }

  /// The identity of a table with the key.
  var identity: KeyIdentity {
    switch self {
    case .text: .text
    case .mapped: .mapped
    case .value: .value
    }
  }
}

extension DeclaredColumn {
  fileprivate func sql(_ isStrict: Bool) -> String {
    "\(quoted(name)) \(affinity.sql(isStrict: isStrict))\(isRequired ? " NOT NULL" : "")"
      + (defaultValue == .null ? "" : " DEFAULT \(defaultValue.literal)")
      + (now.map { " DEFAULT \($0.sql)" } ?? "")
  }
}

extension DeclaredColumn.Moment {
  /// Creates it from a default in SQLite, such as `current_date` or `datetime('now')`; `nil` for
  /// other expressions.
  init?(sql: String) {
    switch String(decoding: sql.uppercasedASCII.utf8.filter { $0 != 0x20 }, as: UTF8.self) {
    case "CURRENT_TIMESTAMP", "DATETIME('NOW')", "DATETIME()": self = .timestamp
    case "CURRENT_DATE", "DATE('NOW')", "DATE()": self = .date
    case "CURRENT_TIME", "TIME('NOW')", "TIME()": self = .time
    default: return nil
    }
  }
}
