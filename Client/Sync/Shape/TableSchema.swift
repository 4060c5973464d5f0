import FerryPlatform
import FerryProtocol
import FerrySQLite

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
    /// The mapped table with the numbers in this column, named as in the space.
    var numbers: Name?
  }

  /// A referring column of a foreign key.
  struct Reference: Sendable, Equatable {
    let from: Name
    let table: Name
    /// The column there; `nil` for the key's column at this place.
    let to: Name?
    let place: Int
  }

  /// The name in the space.
  package let name: Name
  /// The name in this file.
  package let local: Name
  /// The columns of the primary key, in the key's order. They have no names in the space.
  var keys: [KeyColumn]
  /// How the key becomes the identifier sent to the server.
  var identity: KeyIdentity
  /// The first column of the key.
  package var key: Name { keys[0].local }
  /// All stored columns but the key, in the table's order.
  package let columns: [ColumnInfo]
  /// The referring columns of foreign keys.
  var references: [Reference] = []
  /// The rows of the space, if the table has rows of several spaces.
  var share: SpaceShare?

  /// Schemas by the CREATE statements of their tables; these determine the whole schema.
  typealias Known = [Name: TableSchema]

  init(
    name: Name, local: Name? = nil, keys: [KeyColumn], identity: KeyIdentity = .text,
    columns: [ColumnInfo]
  ) {
    (self.name, self.local, self.keys) = (name, local ?? name, keys)
    (self.identity, self.columns) = (identity, columns)
  }

  /// Reads the schema of a table by the name in the space.
  ///
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` with the reason.
  package static func read(
    _ table: Name, from connection: SQLiteConnection, _ names: SpaceNames
  ) throws -> TableSchema {
    var known: Known = [:]
    return try read(table, from: connection, names, &known)
  }

  /// Reads the schema of a table by the name in the space, unless it is known.
  static func read(
    _ table: Name, from connection: SQLiteConnection, _ names: SpaceNames, _ known: inout Known
  ) throws -> TableSchema {
    let local = try names.local(of: table, on: connection)
    let found = try read(unnamed: local, from: connection, &known)
    // SQLite treats another spelling as the same name; the space does not (SPEC.md §23).
    let isTracked = names.tracked.contains {
      $0.space == table && $0.local.folded == found.local.folded
    }
    let space = found.local == local || isTracked ? table : found.local
    return try found.named(in: space, by: names, KeyResolver(names, connection), &known)
  }

  /// Reads the schema of a table by the name in this file.
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
    return try found.named(in: space, by: names, KeyResolver(names, connection), &known)
  }

  /// Returns the same table with the names in the space.
  private func named(
    in space: Name, by names: SpaceNames, _ resolver: KeyResolver, _ known: inout Known
  ) throws -> TableSchema {
    let identity = try identity(names.identities[space])
    // A column keeps the same meaning if another program renames the parent, or drops the foreign
    // key.
    func numbers(of column: Name) -> Name? {
      if let found = resolver.numbers(of: column, in: self, &known) { return found }
      let before = names.numbers[space]?[column.folded]
      return before.flatMap { names.identities[$0] == .mapped ? $0 : nil }
    }
    let keys = keys.map { key in
      var key = key
      if identity == .value { key.numbers = numbers(of: key.local) }
      return key
    }
    do {
      let spaceNames = try names.spaceNames(of: columns.map(\.local), in: space, called: local)
      let columns = zip(columns, spaceNames).map {
        ColumnInfo(
          name: $1, local: $0.local, defaultSQL: $0.defaultSQL, isRequired: $0.isRequired,
          numbers: numbers(of: $0.local))
      }
      var table = TableSchema(
        name: space, local: local, keys: keys, identity: identity, columns: columns)
      table.references = references
      table.share = names.shares[space]
      return table
    } catch {
      throw ReplicaError.cannotTrack(
        table: local,
        "its columns \(error.locals[0]) and \(error.locals[1]) would both be the column "
          + "\(error.name) of the space; give one of them another name")
    }
  }

  /// Returns the identity, if it fits the key.
  private func identity(_ declared: KeyIdentity?) throws -> KeyIdentity {
    guard let declared else { return proposal.identity }
    if let fault = fault(of: declared) { throw ReplicaError.cannotTrack(table: local, fault) }
    return declared
  }

  /// The identity with the best fit for the key.
  var proposal: KeyProposal {
    KeyProposal.of(local, keys, refers: refers)
  }

  private func refers(_ key: KeyColumn) -> Bool {
    references.contains { $0.from.folded == key.local.folded && $0.table.folded != local.folded }
  }

  /// Returns the reason why the table's key cannot have an identity, or `nil`.
  func fault(of identity: KeyIdentity) -> String? {
    switch identity {
    case .text where keys.count != 1 || !keys[0].isText:
      "its primary key is not one TEXT column any more"
    case .mapped where keys.count != 1 || !keys[0].isInteger:
      "only a primary key of one integer column can be mapped; track it by its value"
    case .mapped where refers(keys[0]):
      "its key \(keys[0].local) refers to another table; track it by its value"
    case .value where keys.count == 1 && keys[0].isText:
      "its primary key is a text, which is the identifier as it is"
    default: nil
    }
  }

  /// The reason why no row with a number in the key could be recorded, or `nil`.
  var realKeyFault: String? {
    guard let key = keys.first(where: { $0.affinity == .real }) else { return nil }
    return
      "its key column \(key.local) is declared \(key.type), and real numbers cannot be keys: equal "
      + "ones may differ on another device. Create the table with a key of type TEXT or INTEGER, and "
      + "copy the rows"
  }

  /// Returns a column of the space.
  func column(_ name: Name) -> ColumnInfo {
    // SQLite reports an absent column by this name. Another column may have the space's own name.
    columns.first { $0.name == name }
      ?? ColumnInfo(
        name: name, local: "column \(name) of the space", defaultSQL: nil, isRequired: false)
  }

  /// Returns the reason why a name of a column cannot be used.
  func lacks(_ name: Name) -> String {
    if keys.contains(where: { $0.local.folded == name.folded }) {
      return "column \(name) of table \(local) belongs to the key, which stays; the others are "
        + columns.map(\.local.text).joined(separator: ", ")
    }
    let known = (keys.map(\.local) + columns.map(\.local)).map(\.text).joined(separator: ", ")
    return "table \(local) has no column \(name); it has \(known)"
  }

  /// Returns a column of the space as this file's SQL names it.
  func quotedColumn(_ name: Name) -> String { quoted(column(name).local) }

  /// Reads the schema of a table of this file, with the columns' own names.
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
    guard type == "table", !sql.uppercasedASCII.begins(with: "CREATE VIRTUAL") else {
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
    var keys: [(place: Int64, column: KeyColumn)] = []
    var columns: [ColumnInfo] = []
    try connection.forEach(
      "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?)", table
    ) { row in
      let name = row.name(0)
      if row.int64(4) > 0 {
        let type = try connection.type(row.text(1), in: table.text)
        keys.append((row.int64(4), KeyColumn(local: name, type: type.uppercasedASCII)))
      } else if row.int64(5) == 0 {
        columns.append(
          ColumnInfo(
            name: name, local: name, defaultSQL: row.optionalText(3), isRequired: row.int64(2) != 0)
        )
      }
    }
    guard !keys.isEmpty else {
      throw ReplicaError.cannotTrack(table: table, "it has no primary key; give it one")
    }
    let key = keys.sorted { $0.place < $1.place }.map(\.column)
    if sql.uppercasedASCII.has("COLLATE") { try checkCollation(of: table, connection) }
    for name in key.map(\.local) + columns.map(\.name) {
      if let fault = NameRule.fault(in: name, limits: .standard) {
        throw ReplicaError.cannotTrack(table: table, fault)
      }
    }
    guard columns.count <= Limits.standard.columns else {
      throw ReplicaError.cannotTrack(
        table: table,
        "it has more than \(Limits.standard.columns.grouped) columns beside its key, and an insert "
          + "records all of them as one operation; move some to another table")
    }
    var schema = TableSchema(name: table, keys: key, columns: columns)
    if sql.uppercasedASCII.has("REFERENCES") {
      schema.references = try references(of: table, connection)
    }
    return schema
  }

  private static func references(
    of table: Name, _ connection: SQLiteConnection
  ) throws -> [Reference] {
    try connection.rows(
      "SELECT \"from\", \"table\", \"to\", seq FROM pragma_foreign_key_list(?)", table
    ) { row in
      Reference(
        from: row.name(0), table: row.name(1), to: row.isNull(2) ? nil : row.name(2),
        place: Int(row.int64(3)))
    }
  }

  /// Checks that keys compare by their bytes, as they do elsewhere. A collation that treats two
  /// keys as one would mix records.
  private static func checkCollation(of table: Name, _ connection: SQLiteConnection) throws {
    let declared = try connection.rows(
      """
      SELECT column.name, upper(column.coll)
      FROM pragma_index_list(?) AS list, pragma_index_xinfo(list.name) AS column
      WHERE list.origin = 'pk' AND column.key = 1
      """, table
    ) { (key: $0.name(0), collation: $0.text(1)) }
    if let (key, collation) = declared.first(where: { $0.collation != "BINARY" }) {
      throw ReplicaError.cannotTrack(
        table: table,
        "its primary key \(key) has the collation \(collation), so different ids of other devices "
          + "are equal here; declare it without COLLATE")
    }
  }
}

/// Finds the columns with numbers of mapped tables: foreign keys to their keys, also by way of
/// other foreign keys.
struct KeyResolver {
  private let names: SpaceNames
  private let connection: SQLiteConnection

  init(_ names: SpaceNames, _ connection: SQLiteConnection) {
    (self.names, self.connection) = (names, connection)
  }

  /// Returns the mapped table with the numbers in a column, by the table's name in the space; `nil`
  /// if there is none. An untracked table has no numbers for other devices.
  func numbers(
    of column: Name, in table: TableSchema, _ known: inout TableSchema.Known
  ) -> Name? {
    guard names.identities.values.contains(.mapped) else { return nil }
    var seen = Set<[Name]>()
    return numbers(of: column, in: table, &known, &seen)
  }

  private func numbers(
    of column: Name, in table: TableSchema, _ known: inout TableSchema.Known,
    _ seen: inout Set<[Name]>
  ) -> Name? {
    guard seen.insert([table.local.folded, column.folded]).inserted else { return nil }
    for reference in table.references where reference.from.folded == column.folded {
      guard let space = names.trackedTable(local: reference.table),
        let parent = try? TableSchema.read(unnamed: reference.table, from: connection, &known)
      else { continue }
      let target =
        reference.to
        ?? (reference.place < parent.keys.count ? parent.keys[reference.place].local : nil)
      guard let target else { continue }
      if names.identities[space] == .mapped, target.folded == parent.key.folded { return space }
      if let found = numbers(of: target, in: parent, &known, &seen) { return found }
    }
    return nil
  }
}
