import FerryProtocol

/// The space's names of tables and columns with other names on this device (SPEC.md §26).
///
/// A name of the space never changes, so devices of every version understand each other. The first
/// name of a renamed table or column counts, and then the names declared by the space's schema.
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
  /// The tables of this file that belong to another space, folded.
  var ofOtherSpaces: Set<Name> = []
  /// The mapped tables of the numbers in columns at the time of the triggers, by the table's name
  /// in the space and the column's here.
  var numbers: [Name: [Name: Name]] = [:]
  /// The tables renamed by this device, by their first names.
  var tables: [Pair] = []
  /// The columns renamed by this device, by the folded name of their table in this file.
  var columns: [Name: [Pair]] = [:]
  /// The columns of tracked tables known to the triggers, by the tables' names in the space.
  var recorded: [Name: [Name]] = [:]
  /// The space's schema, if it declares other names.
  var schema: SpaceSchema?

  /// True if no table or column of the space may have another name here.
  var isEmpty: Bool { tables.isEmpty && columns.isEmpty && schema == nil }

  // MARK: Tables

  /// Returns the possible local names of a table of the space, the best first.
  func locals(of table: Name) -> [Name] {
    ([table] + (schema?.rules(for: table).aliases ?? [])).flatMap(locals(ofFirst:))
  }

  /// Returns the present names of the tables with the first name `first`. A table renamed to
  /// `first` is none of them.
  private func locals(ofFirst first: Name) -> [Name] {
    let isTaken = tables.contains { $0.local.folded == first.folded && $0.space != first }
    return tables.filter { $0.space == first }.map(\.local) + (isTaken ? [] : [first])
  }

  /// Returns the name in the space of an untracked table.
  ///
  /// - Parameter isHere: true if this device has a table of the space, under any other name.
  func spaceName(
    ofUntracked local: Name, isHere: (Name) throws -> Bool
  ) rethrows -> Name {
    let first = tables.first { $0.local.folded == local.folded }?.space ?? local
    let declared = schema?.tables.first { $0.value.aliases.contains { $0.folded == first.folded } }
    guard let declared, try !isHere(declared.key) else { return first }
    return declared.key
  }

  /// Returns the name in the space of a tracked table; SQL ignores case.
  func trackedTable(local: Name) -> Name? {
    tracked.first { $0.local.folded == local.folded }?.space
  }

  // MARK: Columns

  /// Returns the names in the space of a table's columns, in their order.
  ///
  /// - Parameters:
  ///   - table: the table's name in the space.
  ///   - local: the table's name in this file.
  /// - Throws: ``NameTaken`` if two columns have one name there.
  func spaceNames(
    of locals: [Name], in table: Name, called local: Name
  ) throws(NameTaken) -> [Name] {
    let renamed = columns[local.folded] ?? []
    let declared = schema?.rules(for: table).columns.filter { !$0.value.aliases.isEmpty } ?? [:]
    let firsts = locals.map { local in
      renamed.first { $0.local.folded == local.folded }?.space ?? local
    }
    let respelled = (recorded[table] ?? []).filter { !firsts.contains($0) }
    if renamed.isEmpty && declared.isEmpty && respelled.isEmpty { return locals }
    let folded = Set(firsts.map(\.folded))
    let names = firsts.map { first in
      // SQLite treats both spellings as one name: it is the column recorded by the triggers.
      if let same = respelled.first(where: { $0.folded == first.folded }) { return same }
      let column = declared.first { $0.value.aliases.contains { $0.folded == first.folded } }
      // A column with the space's own name is that column.
      guard let column, !folded.contains(column.key.folded) else { return first }
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
