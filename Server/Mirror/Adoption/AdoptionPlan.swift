import FerryPlatform
import FerryProtocol

/// The tables of the space for the tables of a company, made from their description; pure.
///
/// The company's table keeps its definition. Parts that devices cannot have do not travel.
package struct AdoptionPlan: Sendable, Equatable {
  /// An adopted table.
  package struct Table: Sendable, Equatable {
    package var name: Name
    /// The definition from which devices create it.
    package var definition: DeclaredTable
    /// The types in PostgreSQL, unless they follow from the definition.
    package var types: [Name: MirrorType] = [:]
    package var adoption: MirrorAdoption
  }

  /// In the order of the request.
  package private(set) var tables: [Table] = []
  /// Parts left behind, with the reason.
  package private(set) var left: [LeftPart] = []
  package var omitted: [String] { left.map(\.description) }
  /// The reasons against the other tables.
  package private(set) var refused: [MirrorFault] = []

  /// Creates a plan.
  ///
  /// - Parameters:
  ///   - found: the tables, as PostgreSQL describes them.
  ///   - chosen: the travelling parts, by the table's name.
  /// - Throws: ``MirrorFault`` for unsuitable tables.
  init(_ found: [CompanyTable], _ chosen: [String: MirrorAdoption]) throws(MirrorFault) {
    self.init(suitable: found, chosen)
    try MirrorFault.raise(refused)
  }

  /// Creates a plan of the suitable tables.
  init(suitable found: [CompanyTable], _ chosen: [String: MirrorAdoption]) {
    var suitable: [CompanyTable] = []
    for table in found {
      var left: [LeftPart] = []
      do throws(MirrorFault) {
        tables.append(try Self.table(table, chosen[table.name] ?? MirrorAdoption(), &left))
        suitable.append(table)
        self.left += left
      } catch {
        refused.append(error)
      }
    }
    for (index, table) in suitable.enumerated() { addReferences(of: table, at: index) }
  }

  // MARK: One table

  private static func table(
    _ table: CompanyTable, _ adoption: MirrorAdoption, _ left: inout [LeftPart]
  ) throws(MirrorFault) -> Table {
    if let fault = fault(of: table) ?? partitionFault(of: table, adoption) {
      throw MirrorFault(description: "table \(table.name) cannot be adopted: \(fault)")
    }
    if let other = adoption.columns.first(where: { table.column($0) == nil }) {
      throw MirrorFault(description: "table \(table.name) has no column \(other)")
    }
    if table.view != nil, adoption.condition != nil || adoption.key != nil || adoption.space != nil
    {
      throw MirrorFault(
        description:
          "table \(table.name) cannot be adopted: the mirror only reads it, so it takes no "
          + "--where, --key and --space-column; choose the rows in the view")
    }
    if let space = adoption.space { try check(space, of: table) }
    var made = Table(
      name: Name(table.name), definition: DeclaredTable(key: .text(""), columns: []),
      adoption: adoption)
    made.adoption.carried = []
    made.adoption.isChosen = adoption.isChosen || !adoption.columns.isEmpty
    made.adoption.defaults = [:]
    made.adoption.isPartitioned = table.kind == "p"
    made.adoption.view = table.view
    made.definition.key = try key(of: table, adoption.key, &made)
    let keys = Set(table.key.map { Name($0) })
    // SQLite compares names without case.
    var spellings = Dictionary(
      keys.map { ($0.text.lowercasedASCII, $0.text) }, uniquingKeysWith: { first, _ in first })
    for column in table.columns where !keys.contains(Name(column.name)) {
      let spelling = spellings[column.name.lowercasedASCII].map {
        "devices do not distinguish it from column \($0)"
      }
      if let reason = obstacle(to: column, adoption) ?? spelling {
        let isSet = adoption.space.map { Name($0.name) } == Name(column.name)
        guard !column.isRequired || column.hasDefault || isSet else {
          throw MirrorFault(
            description: "table \(table.name) cannot be adopted: column \(column.name) does not "
              + "travel, since \(reason); it is NOT NULL without a default, so that no device could "
              + "add a row")
        }
        left.append(LeftPart(kind: .column, columns: [column.name], of: made.name, reason))
        continue
      }
      guard let type = column.mirrored else { continue }
      spellings[column.name.lowercasedASCII] = column.name
      made.definition.columns.append(declared(column, type))
      made.set(type, of: column.name)
      if column.isRequired { made.adoption.defaults[column.name] = column.qualifiedDefault }
    }
    // A copy has the types of devices.
    if table.view != nil { (made.types, made.adoption.carried) = ([:], []) }
    let travelling = keys.union(made.definition.columns.map(\.name))
    made.adoption.columns = made.definition.columns.map(\.name.text)
    made.adoption.limits = table.limits(of: made.adoption)
    left += table.left(made.adoption.limits)
    for unique in table.unique {
      guard let absent = unique.first(where: { !travelling.contains(Name($0)) }) else {
        made.definition.unique.append(unique.map { Name($0) })
        continue
      }
      left.append(
        LeftPart(kind: .unique, columns: unique, of: made.name, "column \(absent) does not travel"))
    }
    return made
  }

  private static func check(
    _ space: SpaceColumn, of table: CompanyTable
  ) throws(MirrorFault) {
    guard let column = table.column(space.name) else {
      throw MirrorFault(
        description:
          "table \(table.name) has no column \(space.name) that names the space of a row; "
          + "adopt the table with another mirror")
    }
    guard column.canNameSpace, !column.isGenerated, column.identity != "a" else {
      throw MirrorFault(
        description: "column \(space.name) of table \(table.name) cannot name the space of a row: "
          + "it has to be an integer, a text or a UUID that PostgreSQL does not compute")
    }
  }

  /// Returns the reason if no device could have the table.
  private static func fault(of table: CompanyTable) -> String? {
    switch table.kind {
    case "r", "p": break
    case "v": return "it is a view"
    case "m": return "it is a materialized view"
    case "f": return "it is a foreign table"
    default: return "it is no table"
    }
    if table.isDivided { return "its rows are divided among several tables" }
    if NameRule.isReserved(table: Name(table.name)) { return "its name belongs to Ferry or SQLite" }
    if table.key.isEmpty { return "it has no primary key" }
    if table.isKeyDeferrable { return "its primary key is deferrable" }
    if !table.lackingRights.isEmpty {
      return "the user of the database lacks \(table.lackingRights.joined(separator: ", ")) on it"
    }
    return nil
  }

  /// Returns the reason if the partitions of a table cannot be adopted with it.
  private static func partitionFault(
    of table: CompanyTable, _ adoption: MirrorAdoption
  ) -> String? {
    if let parent = table.parent { return "it is a partition; adopt table \(parent)" }
    guard table.kind == "p" else { return nil }
    if adoption.condition != nil { return "it is partitioned; leave out --where" }
    if adoption.space != nil { return "it is partitioned; leave out --space-column" }
    return table.partitionFault.map { "partition \($0)" }
  }

  private static func key(
    of table: CompanyTable, _ chosen: MirrorKey?, _ made: inout Table
  ) throws(MirrorFault) -> DeclaredKey {
    var parts: [DeclaredKeyColumn] = []
    for name in table.key {
      guard let column = table.column(name), let type = column.keyType else {
        let shown = table.column(name)?.shownType ?? "unknown"
        throw MirrorFault(
          description:
            "table \(table.name) cannot be adopted: column \(name) of its key has the type "
            + "\(shown); a key consists of integers, texts, UUIDs and times")
      }
      parts.append(DeclaredKeyColumn(Name(name), type.affinity))
      made.set(type, of: name)
    }
    if parts.count == 1, parts[0].affinity == .text { return .text(parts[0].name) }
    return try isMapped(table, chosen) ? .mapped(parts[0].name) : .value(parts)
  }

  private static func isMapped(
    _ table: CompanyTable, _ chosen: MirrorKey?
  ) throws(MirrorFault) -> Bool {
    if chosen == .value { return false }
    let way = "choose --key \(table.name)=value if equal numbers are the same record on all sides"
    guard let sequence = table.sequence else {
      guard chosen == .mapped else { return false }
      throw MirrorFault(
        description: "table \(table.name) cannot be adopted: no sequence counts its key; "
          + "give the key a sequence, or \(way)")
    }
    guard sequence.isUsable else {
      throw MirrorFault(
        description: "table \(table.name) cannot be adopted: the user of the database lacks USAGE "
          + "on the sequence \(sequence.name), which numbers the devices' rows; run GRANT USAGE ON "
          + "SEQUENCE \(sequence.name) as the owner, or \(way)")
    }
    return true
  }

  /// Returns the reason if a column does not travel.
  private static func obstacle(to column: CompanyColumn, _ adoption: MirrorAdoption) -> String? {
    if adoption.space.map({ Name($0.name) }) == Name(column.name) {
      return "it names the space of a row"
    }
    if !adoption.columns.isEmpty,
      !adoption.columns.contains(where: { Name($0) == Name(column.name) })
    {
      return "it was not chosen"
    }
    if column.isGenerated { return "PostgreSQL computes it" }
    if column.identity == "a" { return "PostgreSQL alone counts it" }
    if column.mirrored != nil { return nil }
    let reason = column.origin?.obstacle ?? "has no counterpart"
    return "its type \(column.shownType) \(reason)"
  }

  private static func declared(
    _ column: CompanyColumn, _ type: MirroredType
  ) -> DeclaredColumn {
    var declared = DeclaredColumn(
      Name(column.name), type.affinity, isRequired: column.isRequiredOnDevices)
    if let text = column.constantDefault {
      let read = MirrorColumn(name: declared.name, affinity: type.affinity, type: type.type)
      declared.defaultValue = (try? read.value(of: text)) ?? .null
    }
    return declared
  }

  // MARK: Foreign keys

  private mutating func addReferences(of table: CompanyTable, at index: Int) {
    for reference in table.references {
      if let reason = obstacle(to: reference, at: index) {
        if let fault = numberFault(reference, of: table, at: index, reason) {
          refused.append(fault)
        }
        left.append(
          LeftPart(kind: .reference, columns: reference.columns, of: Name(table.name), reason))
        continue
      }
      tables[index].definition.references.append(
        DeclaredReference(
          reference.columns.map { Name($0) }, to: Name(reference.table ?? ""),
          onDelete: .init(code: reference.onDelete), onUpdate: .init(code: reference.onUpdate)))
    }
  }

  /// Returns the reason against a table if devices would get numbers of the company without their
  /// meaning.
  private func numberFault(
    _ reference: CompanyReference, of table: CompanyTable, at index: Int, _ reason: String
  ) -> MirrorFault? {
    let parent = tables.first { $0.name == reference.table.map { Name($0) } }
    guard let parent, case .mapped(let key) = parent.definition.key,
      reference.to.contains(where: { Name($0) == key })
    else { return nil }
    let definition = tables[index].definition
    let travelling = definition.key.names + definition.columns.map(\.name)
    let columns = zip(reference.columns, reference.to).filter { Name($1) == key }.map(\.0)
    guard columns.contains(where: { travelling.contains(Name($0)) }) else { return nil }
    return MirrorFault(
      description: "table \(table.name) cannot be adopted: devices count the rows of table "
        + "\(parent.name) themselves, and cannot translate column \(columns[0]), since \(reason); leave "
        + "the column out with --columns, or choose --key \(parent.name)=value if equal numbers are "
        + "the same record on all sides")
  }

  private func obstacle(to reference: CompanyReference, at index: Int) -> String? {
    let table = tables[index]
    guard let parent = tables.first(where: { $0.name == reference.table.map { Name($0) } }) else {
      return "it refers to a table that is not adopted"
    }
    guard parent.adoption.condition == nil, parent.adoption.space == nil || isSibling(parent, table)
    else {
      return "not all rows of table \(parent.name) travel"
    }
    guard reference.isValid else { return "PostgreSQL has not checked it for all rows" }
    guard parent.definition.key.names == reference.to.map({ Name($0) }) else {
      return "it does not refer to the key of table \(parent.name)"
    }
    let types = reference.columns.map { table.type(of: Name($0)) }
    guard !types.contains(nil) else { return "a column of it does not travel" }
    return types == reference.to.map { parent.type(of: Name($0)) }
      ? nil : "its columns have other types than the key that it refers to"
  }

  /// Returns `true` if a child and its parent are in one space: the numbers of the parent need it.
  private func isSibling(_ parent: Table, _ child: Table) -> Bool {
    guard case .mapped = parent.definition.key else { return false }
    return parent.adoption.space != nil && parent.adoption.space == child.adoption.space
  }

  // MARK: The space

  /// The definition of a table in the space, compared with a plan's.
  package enum Definition: Sendable, Equatable {
    case missing, equal
    /// The first difference.
    case other(String)
    /// A present mirror follows these changes.
    case followed(String)
  }

  /// Compares the definition of a table with the space's.
  package func definition(of table: Table, in schema: SpaceSchema) -> Definition {
    guard let known = schema.tables[table.name]?.definition else { return .missing }
    return table.definition.difference(from: known).map(Definition.other) ?? .equal
  }

  /// Returns the reasons against the definitions of the space.
  ///
  /// - Parameter followed: tables whose changes a mirror follows.
  package func disagreements(
    with schema: SpaceSchema, except followed: Set<Name> = []
  ) -> [MirrorFault] {
    tables.filter { !followed.contains($0.name) }.compactMap { table in
      guard case .other(let difference) = definition(of: table, in: schema) else { return nil }
      return MirrorFault(
        description: "the space defines table \(table.name) in another way: \(difference); "
          + "choose the columns with --columns, or adopt the table into another space")
    }
  }

  /// Returns the schema of the space with the definitions; `nil` if it has them already.
  ///
  /// - Parameter renamed: the columns renamed since the tables were adopted before.
  /// - Throws: ``MirrorFault`` if it defines a table in another way.
  package func added(
    to schema: SpaceSchema, _ renamed: RenamedColumns = RenamedColumns()
  ) throws(MirrorFault) -> SpaceSchema? {
    try MirrorFault.raise(disagreements(with: renamed.applied(to: schema)))
    let missing = tables.filter { definition(of: $0, in: schema) == .missing }
    if missing.isEmpty { return nil }
    var result = schema
    for table in missing {
      result.tables[table.name, default: .standard].definition = table.definition
      // The server refuses devices' writes before they travel.
      if table.adoption.view != nil { result.tables[table.name]?.write = .admin }
    }
    result.version += 1
    return result
  }
}

extension AdoptionPlan.Table {
  fileprivate mutating func set(_ type: MirroredType, of column: String) {
    if case .carried(let carried) = type.type {
      adoption.carried.append(CarriedColumn(name: column, type: carried))
    } else if type.type != MirrorType(type.affinity) {
      types[Name(column)] = type.type
    }
  }

  func type(of name: Name) -> MirrorType? {
    if let type = types[name] { return type }
    if let column = definition.columns.first(where: { $0.name == name }) {
      return MirrorType(column.affinity)
    }
    switch definition.key {
    case .text(let key): return key == name ? .text : nil
    case .mapped(let key): return key == name ? .bigint : nil
    case .value(let columns):
      return columns.first { $0.name == name }.map { MirrorType($0.affinity) }
    }
  }
}

extension DeclaredReference.Action {
  fileprivate init(code: String) {
    self =
      switch code {
      case "r": .restrict
      case "c": .cascade
      case "n": .setNull
      case "d": .setDefault
      default: .none
      }
  }
}
