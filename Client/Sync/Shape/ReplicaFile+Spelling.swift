import FerryProtocol
import FerrySQLite

/// A name of the space that SQLite treats as equal to another known name of the space in this file.
/// The name's values wait.
package struct NameClash: Sendable, Equatable {
  /// The table's name in the space.
  package var table: Name
  /// The column's name in the space; `nil` if the table's name is meant.
  package var column: Name?
  /// The table or column of this file.
  package var local: Name
}

/// Names of the space with a different case of ASCII letters in this file (SPEC.md §23).
extension ReplicaFile {
  var spellings: Spellings { Spellings(connection: connection) }

  /// Uses the space's spellings of tables and columns, if the space does not know the local ones,
  /// and applies the changes waiting for them. Records clashing names.
  func adopt(_ found: SpellingsFound) throws {
    if found.isEmpty { return }
    for (table, columns) in found.shared {
      try spellings.share(table, columns)
      plans.removeAll()
    }
    var renamed = Set<Name>()
    for table in found.unknown.keys.sorted() {
      for column in found.unknown[table, default: []].sorted() {
        let isRenamed =
          column == SpellingsFound.table
          ? try rename(toTable: table) : try rename(to: column, of: table)
        if isRenamed == true { renamed.insert(table) }
        if isRenamed == false { try spellings.addClash(column, of: table) }
      }
    }
    if renamed.isEmpty { return }
    let isGuarded = try needsGuards()
    for table in renamed.sorted() {
      let schema = try schema(of: table)
      try storeSignature(of: schema)
      try installTriggers(for: schema, isGuarded: isGuarded)
    }
    try refreshTriggers()
    try KeptRetry(self).apply(renamed.sorted().map { .ofTable($0) })
  }

  /// Changes a tracked table's name to the other spelling in the space. Returns `nil` if there is
  /// no such table, and `false` if the space knows both.
  private func rename(toTable new: Name) throws -> Bool? {
    let names = try tracked.names()
    guard !names.contains(new), let own = names.first(where: { $0.folded == new.folded }) else {
      return nil
    }
    if try spellings.isShared(own) { return false }
    try dropTriggers(of: own)
    try spellings.rename(table: own, to: new)
    forgetNames()
    return true
  }

  /// Changes a column's name to the other spelling in the space. Returns `nil` if there is no such
  /// column. Returns `false` if the space knows both, or if SQLite treats the name as the key's.
  private func rename(to new: Name, of table: Name) throws -> Bool? {
    guard let schema = try? schema(of: table), schema.name == table,
      !schema.columns.contains(where: { $0.name == new })
    else { return nil }
    guard let own = schema.columns.first(where: { $0.name.folded == new.folded }) else {
      return clashingLocal(of: new, in: schema) == nil ? nil : false
    }
    if try spellings.isShared(own.name, of: table) || spellings.hasBatch(in: table) { return false }
    try spellings.rename(own.name, of: table, to: new)
    forgetNames()
    return true
  }

  private func clashingLocal(of column: Name, in schema: TableSchema) -> Name? {
    (schema.columns.map(\.local) + schema.keys.map(\.local)).first { $0.folded == column.folded }
  }

  /// Uses the spelling of changes waiting for a table, now tracked.
  func adoptSpelling(of tables: [TableSchema]) throws {
    let waiting = try kept.tablesWaitedFor()
    var found = SpellingsFound()
    for table in tables {
      for other in waiting where other.folded == table.name.folded && other != table.name {
        found.addUnknown(table: other)
      }
    }
    try adopt(found)
  }

  /// Returns the names of the space with waiting values, because SQLite treats them as other names
  /// here.
  package func nameClashes() throws -> [NameClash] {
    let (names, locals) = (try tracked.names(), try tracked.locals())
    return try spellings.clashes().compactMap { table, column in
      guard try kept.next(.unknown(in: table), after: .start) != nil else { return nil }
      if column == SpellingsFound.table {
        guard !names.contains(table), let local = locals.first(where: { $0.folded == table.folded })
        else { return nil }
        return NameClash(table: table, column: nil, local: local)
      }
      guard let schema = try? schema(of: table), schema.name == table,
        !schema.columns.contains(where: { $0.name == column }),
        let local = clashingLocal(of: column, in: schema)
      else { return nil }
      return NameClash(table: table, column: column, local: local)
    }
  }
}

extension Replica {
  /// Returns the names of the space with waiting values, because SQLite treats them as other names
  /// here.
  package func nameClashes() async throws -> [NameClash] {
    try await typed { try await thread.run { try $0.nameClashes() } }
  }
}
