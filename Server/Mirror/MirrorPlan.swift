import FerryPlatform
import FerryProtocol

/// A mirror's table in PostgreSQL.
package struct MirrorTable: Sendable, Equatable {
  package var name: Name
  package var key: [MirrorColumn]
  /// The columns beside the key.
  package var columns: [MirrorColumn]
  package var unique: [[Name]]
  /// Unique columns by a rule of the space; the definition does not have all of them.
  package var claimed: [[Name]] = []
  package var indexes: [[Name]]
  package var references: [DeclaredReference]
  /// Columns beside the key: rows on devices follow them, rows in PostgreSQL do not.
  package var followed: Set<Name> = []
  /// True if the key is a number of a company's sequence: the space has identifiers instead.
  package var isMapped = false
  /// For a company's table with its own definition: the travelling part.
  package var adoption: MirrorAdoption?

  /// The columns beside the key that the mirror may change.
  var updatable: [MirrorColumn] {
    let fixed = limits.readOnly
    return fixed.isEmpty ? columns : columns.filter { !fixed.contains($0.name.text) }
  }

  /// The writes that the mirror's role may not do.
  var limits: WriteLimits { adoption?.limits ?? WriteLimits() }

  /// The columns that the mirror may set in a new row, with their places among all.
  var insertable: [(place: Int, column: MirrorColumn)] {
    let unset = limits.unset
    return all.enumerated().filter { !unset.contains($0.element.name.text) }.map { ($0, $1) }
  }

  /// The key's columns and the others.
  package var all: [MirrorColumn] { key + columns }

  func column(_ name: Name) -> MirrorColumn? { all.first { $0.name == name } }

  /// Gives columns the types of a company.
  fileprivate mutating func carry(_ types: [CarriedColumn]) {
    for carried in types {
      let name = Name(carried.name)
      for index in key.indices where key[index].name == name {
        key[index].type = .carried(carried.type)
      }
      for index in columns.indices where columns[index].name == name {
        columns[index].type = .carried(carried.type)
      }
    }
  }
}

/// The tables of a mirror, made from the schema of the space; pure.
package struct MirrorPlan: Sendable, Equatable {
  /// Parents before their children.
  package private(set) var tables: [MirrorTable] = []
  /// Unmirrored tables of the schema, and omitted foreign keys, with the reason.
  package private(set) var omitted: [String] = []

  /// PostgreSQL cuts longer names (NAMEDATALEN).
  private static let nameBytesMax = 63
  /// Existing columns of each table of PostgreSQL.
  private static let systemColumns: Set<String> = [
    "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid",
  ]
  /// PostgreSQL has at most 1,600, if they are short: a row's values, or their places elsewhere, fit
  /// into a page of 8 KiB.
  private static let columnsMax = 1_000

  /// Creates a plan.
  ///
  /// - Parameters:
  ///   - chosen: the tables to mirror; empty for all defined by the schema.
  ///   - types: annotations by `table.column`.
  ///   - adopted: tables of a company.
  /// - Throws: ``MirrorFault`` for an undefined chosen table, or an annotation that does not fit.
  package init(
    _ schema: SpaceSchema, chosen: [Name] = [], types: [String: MirrorType] = [:],
    adopted: Set<Name> = []
  ) throws(MirrorFault) {
    for name in chosen where schema.tables[name]?.definition == nil {
      throw MirrorFault(
        description: "the schema of the space does not define table \(name); "
          + "`\(name.command("ferry schema publish"))` defines it")
    }
    var types = types
    for (name, rules) in schema.tables.sorted(by: { $0.key < $1.key }) {
      guard let definition = rules.definition, chosen.isEmpty || chosen.contains(name) else {
        continue
      }
      var table: MirrorTable
      do throws(MirrorFault) {
        table = try Self.table(name, rules, definition, isAdopted: adopted.contains(name))
      } catch {
        if chosen.contains(name) { throw error }
        omitted.append("\(error)")
        continue
      }
      try Self.annotate(&table, &types)
      tables.append(table)
    }
    if let left = types.keys.min() {
      throw MirrorFault(description: "there is no column \(left) to give a type to")
    }
    dropReferences()
    sortParentsFirst()
  }

  private static func table(
    _ name: Name, _ rules: TableRules, _ definition: DeclaredTable, isAdopted: Bool
  ) throws(MirrorFault) -> MirrorTable {
    let key: [MirrorColumn]
    var isMapped = false
    switch definition.key {
    case .text(let column): key = [MirrorColumn(name: column, affinity: .text, type: .text)]
    case .value(let columns):
      key = columns.map {
        MirrorColumn(name: $0.name, affinity: $0.affinity, type: MirrorType($0.affinity))
      }
    case .mapped(let column):
      guard isAdopted else {
        throw MirrorFault(
          description: "table \(name): each device counts its key \(column) itself; define a text, "
            + "a UUID or several columns as its key, or adopt a table of yours: see "
            + "`ferryd mirror adopt`")
      }
      isMapped = true
      key = [MirrorColumn(name: column, affinity: .integer, type: .bigint)]
    }
    if let column = key.first(where: { $0.type != .text && $0.type != .bigint }) {
      throw MirrorFault(
        description:
          "table \(name): its key \(column.name) is neither a text nor an integer; define "
          + "it as one of them")
    }
    let columns = definition.columns.map { column in
      MirrorColumn(
        name: column.name, affinity: column.affinity, type: MirrorType(column.affinity),
        isRequired: column.isRequired, defaultValue: column.defaultValue,
        now: column.now, policy: rules.policy(of: column.name))
    }
    for long in [name] + (key + columns).map(\.name) where long.utf8.count > nameBytesMax {
      throw MirrorFault(
        description: "table \(name): PostgreSQL takes names of at most \(nameBytesMax) bytes, and "
          + "\(long) is longer; define a table with shorter names")
    }
    for column in key + columns where systemColumns.contains(column.name.text) {
      throw MirrorFault(
        description: "table \(name): each table of PostgreSQL has a column \(column.name) already; "
          + "define one with another name")
    }
    guard key.count + columns.count <= columnsMax else {
      throw MirrorFault(
        description: "table \(name) has more than \(columnsMax.grouped) columns, and a row of "
          + "PostgreSQL has no room for their values; define it with fewer columns "
          + "(`\(name.command("ferry schema publish"))` on a device with such a table), and the "
          + "mirror adds it: the space keeps the values of the others")
    }
    return MirrorTable(
      name: name, key: key, columns: columns, unique: definition.unique, claimed: rules.unique,
      indexes: definition.indexes, references: definition.references, isMapped: isMapped)
  }

  private static func annotate(
    _ table: inout MirrorTable, _ types: inout [String: MirrorType]
  ) throws(MirrorFault) {
    for index in table.columns.indices {
      try annotate(&table.columns[index], of: table.name, &types)
    }
    for index in table.key.indices {
      // A value of another type has several texts.
      guard let type = types["\(table.name).\(table.key[index].name)"], type == .uuid || type.isTime
      else { continue }
      try annotate(&table.key[index], of: table.name, &types)
    }
  }

  private static func annotate(
    _ column: inout MirrorColumn, of table: Name, _ types: inout [String: MirrorType]
  ) throws(MirrorFault) {
    guard let type = types.removeValue(forKey: "\(table).\(column.name)") else { return }
    guard type.suits(column.affinity) else {
      throw MirrorFault(
        description: "column \(table).\(column.name) is declared "
          + "\(column.affinity.rawValue), which cannot become \(type.rawValue)")
    }
    column.type = type
  }

  /// Limits adopted tables to the travelling parts.
  func adopting(_ adoptions: [String: MirrorAdoption]) -> MirrorPlan {
    var plan = self
    for index in plan.tables.indices {
      let name = plan.tables[index].name
      guard let adoption = adoptions.first(where: { Name($0.key) == name })?.value else { continue }
      plan.tables[index].adoption = adoption
      // A name in the space that only resembles a company's name is another column.
      let columns = Set(adoption.columns.map { Name($0) })
      plan.tables[index].columns.removeAll { !columns.contains($0.name) }
      plan.tables[index].carry(adoption.carried)
    }
    return plan
  }

  /// Removes foreign keys that PostgreSQL cannot have here.
  private mutating func dropReferences() {
    let known = Dictionary(tables.map { ($0.name, $0) }) { first, _ in first }
    for (index, table) in tables.enumerated() {
      for reference in table.references {
        guard [.cascade, .setNull, .setDefault].contains(reference.onUpdate),
          let parent = tables.firstIndex(where: { $0.name == reference.table })
        else { continue }
        tables[parent].followed.formUnion(reference.to)
        tables[parent].followed.subtract(tables[parent].key.map(\.name))
      }
      tables[index].references = table.references.filter { reference in
        guard let reason = Self.obstacle(to: reference, of: table, known) else { return true }
        let names = reference.columns.map(\.text).joined(separator: ", ")
        omitted.append("foreign key (\(names)) of table \(table.name): \(reason)")
        return false
      }
    }
  }

  private static func obstacle(
    to reference: DeclaredReference, of table: MirrorTable, _ known: [Name: MirrorTable]
  ) -> String? {
    guard let parent = known[reference.table] else {
      return "table \(reference.table) is not mirrored"
    }
    let to = reference.to.isEmpty ? parent.key.map(\.name) : reference.to
    guard to == parent.key.map(\.name), to.count == reference.columns.count else {
      return "it does not refer to the key of table \(reference.table)"
    }
    let types = reference.columns.compactMap { table.column($0)?.type }
    return types == parent.key.map(\.type)
      ? nil : "its columns have other types than the key that it refers to"
  }

  private mutating func sortParentsFirst() {
    var left = tables
    var sorted: [MirrorTable] = []
    while !left.isEmpty {
      let waiting = Set(left.map(\.name))
      var free = left.filter { table in
        table.references.allSatisfy { $0.table == table.name || !waiting.contains($0.table) }
      }
      // A cycle has no order; deferred constraints do not need one.
      if free.isEmpty { free = left }
      sorted += free
      let taken = Set(free.map(\.name))
      left.removeAll { taken.contains($0.name) }
    }
    tables = sorted
  }

  func table(_ name: String) -> MirrorTable? { tables.first { $0.name == Name(name) } }
}
