import FerryProtocol

/// The names in a space of tables and columns that have other names on this device (SPEC.md §26).
///
/// A name of the space never changes, so that devices of every version understand each other. A
/// name that this device has changed counts first, and then those that the space's schema declares.
package struct SpaceNames: Sendable, Equatable {
  /// A name in the space, and the one here.
  package struct Pair: Sendable, Equatable {
    /// The name in the space.
    var space: Name
    /// The name on this device.
    var local: Name
  }

  /// The tracked tables.
  var tracked: [Pair] = []
  /// How the keys of tracked tables become identifiers, by the tables' names in the space.
  var identities: [Name: KeyIdentity] = [:]
  /// The tables with rows of several spaces, by their names in the space.
  var shares: [Name: SpaceShare] = [:]
  /// The tables of this file that belong to another space of it, folded.
  var ofOtherSpaces: Set<Name> = []
  /// The mapped tables whose numbers columns held when their triggers were made, by the table's name in
  /// the space and the column's here.
  var numbers: [Name: [Name: Name]] = [:]
  /// The tables that this device has renamed.
  var tables: [Pair] = []
  /// The columns that this device has renamed, by their table's name in the space.
  var columns: [Name: [Pair]] = [:]
  /// The space's schema, if it declares other names.
  var schema: SpaceSchema?

  /// Whether no table or column of the space may have another name here.
  var isEmpty: Bool { tables.isEmpty && columns.isEmpty && schema == nil }

  // MARK: Tables

  /// Returns the names that a table of the space may have here, the best first.
  func locals(of table: Name) -> [Name] {
    let renamed = tables.filter { $0.space == table }.map(\.local)
    return renamed + [table] + (schema?.rules(for: table).aliases ?? [])
  }

  /// Returns the name in the space of a table that is not tracked.
  ///
  /// - Parameter isHere: whether this device has a table of the space, under any other name.
  func spaceName(
    ofUntracked local: Name, isHere: (Name) throws -> Bool
  ) rethrows -> Name {
    if let renamed = tables.first(where: { $0.local.folded == local.folded }) {
      return renamed.space
    }
    let declared = schema?.tables.first { $0.value.aliases.contains { $0.folded == local.folded } }
    guard let declared, try !isHere(declared.key) else { return local }
    return declared.key
  }

  /// Returns the name in the space of a tracked table; SQL ignores case.
  func trackedTable(local: Name) -> Name? {
    tracked.first { $0.local.folded == local.folded }?.space
  }

  // MARK: Columns

  /// Returns the names in the space of a table's columns, in their order.
  ///
  /// - Throws: ``NameTaken`` if two columns have one name there.
  func spaceNames(of locals: [Name], in table: Name) throws(NameTaken) -> [Name] {
    let renamed = columns[table] ?? []
    let declared = schema?.rules(for: table).columns.filter { !$0.value.aliases.isEmpty } ?? [:]
    if renamed.isEmpty && declared.isEmpty { return locals }
    let folded = Set(locals.map(\.folded))
    let names = locals.map { local in
      if let pair = renamed.first(where: { $0.local.folded == local.folded }) { return pair.space }
      let column = declared.first { $0.value.aliases.contains { $0.folded == local.folded } }
      // A column that has the space's own name is that column.
      guard let column, !folded.contains(column.key.folded),
        !renamed.contains(where: { $0.space == column.key })
      else { return local }
      return column.key
    }
    var owners: [Name: Name] = [:]
    for (name, local) in zip(names, locals) {
      guard let other = owners.updateValue(local, forKey: name.folded) else { continue }
      throw NameTaken(name: name, locals: [other, local])
    }
    return names
  }

  /// Two columns of this device would be one of the space.
  struct NameTaken: Error, Equatable {
    /// The name in the space.
    let name: Name
    let locals: [Name]
  }
}
