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

/// The choice between two names that SQLite treats as equal (SPEC.md §23); pure.
enum SpellingChoice: Equatable {
  /// The file has nothing with such a name, or has this one.
  case none
  /// The space knows both names, or the name is the key's here: the values wait.
  case clash(local: Name)
  /// The space does not know the name here: the table or column gets the space's.
  case rename(Name)

  /// Returns the choice for a table of the space.
  ///
  /// - Parameters:
  ///   - tracked: the tracked tables, by the names in the space and here.
  ///   - isShared: returns true if the space knows a tracked table by its name.
  static func table(
    _ new: Name, among tracked: [SpaceNames.Pair], isShared: (Name) throws -> Bool
  ) rethrows -> SpellingChoice {
    guard !tracked.contains(where: { $0.space == new }),
      let own = tracked.first(where: { $0.space.folded == new.folded })
    else { return .none }
    return try isShared(own.space) ? .clash(local: own.local) : .rename(own.space)
  }

  /// Returns the choice for a column of the space.
  ///
  /// - Parameter isShared: returns true if the space knows a column by its name, or may.
  static func column(
    _ new: Name, of table: TableSchema, isShared: (Name) throws -> Bool
  ) rethrows -> SpellingChoice {
    if table.columns.contains(where: { $0.name == new }) { return .none }
    let locals = table.columns.map(\.local) + table.keys.map(\.local)
    let local = locals.first { $0.folded == new.folded }
    guard let own = table.columns.first(where: { $0.name.folded == new.folded }) else {
      return local.map { .clash(local: $0) } ?? .none
    }
    return try isShared(own.name) ? .clash(local: local ?? own.local) : .rename(own.name)
  }
}

/// Names of the space with a different case of ASCII letters in this file: the driver of
/// ``SpellingChoice``.
struct SpellingAdoption {
  let file: ReplicaFile
  private var tables: LocalTables { file.tables }
  private var spellings: Spellings { file.tables.spellings }

  /// Uses the space's spellings of tables and columns, if the space does not know the local ones,
  /// and applies the changes waiting for them. Records clashing names.
  func adopt(_ found: SpellingsFound) throws {
    if found.isEmpty { return }
    for (table, columns) in found.shared {
      try spellings.share(table, columns)
      tables.forgetPlans()
    }
    var renamed = Set<Name>()
    for table in found.unknown.keys.sorted() {
      for column in found.unknown[table, default: []].sorted() {
        switch try choice(for: column, of: table) {
        case .none: break
        case .clash: try spellings.addClash(column, of: table)
        case .rename(let own):
          try rename(own, to: column, of: table)
          renamed.insert(table)
        }
      }
    }
    if renamed.isEmpty { return }
    let schemas = try renamed.sorted().map(tables.schema(of:))
    for table in schemas { try file.triggers.storeSignature(of: table) }
    try file.triggers.install(for: schemas)
    try file.schemaChanges.refresh()
    try file.keptRetry.apply(schemas.map { .ofTable($0.name) })
  }

  /// Uses the spelling of changes waiting for tables, now tracked.
  func adopt(forTracked added: [TableSchema]) throws {
    let waiting = try file.kept.tables(refused: false)
    var found = SpellingsFound()
    for table in added {
      for other in waiting where other.folded == table.name.folded && other != table.name {
        found.addUnknown(table: other)
      }
    }
    try adopt(found)
  }

  private func choice(for column: Name, of table: Name) throws -> SpellingChoice {
    if column == SpellingsFound.table {
      return try SpellingChoice.table(
        table, among: tables.spaceNames().tracked, isShared: spellings.isShared)
    }
    guard let schema = tables.present(table) else { return .none }
    return try SpellingChoice.column(column, of: schema) { own in
      try spellings.isShared(own, of: table) || spellings.hasBatch(in: table)
    }
  }

  private func rename(_ own: Name, to column: Name, of table: Name) throws {
    if column == SpellingsFound.table {
      try file.triggers.drop(of: own)
      try spellings.rename(table: own, to: table)
    } else {
      try spellings.rename(own, of: table, to: column)
    }
    tables.forgetNames()
  }

  /// Returns the names of the space with waiting values, because SQLite treats them as other names
  /// here.
  func clashes() throws -> [NameClash] {
    try spellings.clashes().compactMap { table, column in
      guard try file.kept.next(.unknown(in: table), after: .start) != nil,
        case .clash(let local) = try choice(ofListed: column, of: table)
      else { return nil }
      return NameClash(
        table: table, column: column == SpellingsFound.table ? nil : column, local: local)
    }
  }

  /// Returns the choice for a listed clash: both names count as known to the space.
  private func choice(ofListed column: Name, of table: Name) throws -> SpellingChoice {
    if column == SpellingsFound.table {
      return SpellingChoice.table(
        table, among: try tables.spaceNames().tracked, isShared: { _ in true })
    }
    guard let schema = tables.present(table) else { return .none }
    return SpellingChoice.column(column, of: schema, isShared: { _ in true })
  }
}

extension Replica {
  /// Returns the names of the space with waiting values, because SQLite treats them as other names
  /// here.
  package func nameClashes() async throws -> [NameClash] {
    try await thread.call { try SpellingAdoption(file: $0).clashes() }
  }
}
