import FerryProtocol

/// A company's table with another definition than before, as the mirror goes on with it.
struct FollowedTable: Sendable, Equatable {
  var name: Name
  /// The definition for the space.
  var definition: DeclaredTable
  /// The types in PostgreSQL, unless they follow from the definition.
  var types: [Name: MirrorType]
  var adoption: MirrorAdoption
  /// The present shape as it is stored.
  var shape = ""
  /// Columns that have not travelled before.
  var added: [Name] = []
  var dropped: [Name] = []
  /// Columns with another type, or added again under a former name: no trigger captured their
  /// values.
  var retyped: [Name] = []
  /// New names of columns of the mirror's settings. The space keeps the first ones.
  var renamed: [RenamedColumn] = []
  /// New names of columns of the functions in PostgreSQL, and of recorded writes. The settings may
  /// have had them, after a kill.
  var recaptured: [RenamedColumn] = []
  /// The numbers of all columns of the company's table, by name.
  var places: [String: Int] = [:]
  /// True if the rows are compared, whatever was recorded.
  var compares = false

  /// The changes, for the log; empty if devices are not concerned.
  var shown: String {
    let names = (renamed.isEmpty ? recaptured : renamed).map {
      "\($0.former) is named \($0.present)"
    }
    let others = [("new", added), ("gone", dropped), ("of another type", retyped)]
      .filter { !$1.isEmpty }
      .map { word, names in "\(names.map(\.text).joined(separator: ", ")) \(word)" }
    return (names + others).joined(separator: "; ")
  }

  /// Returns the table as before, because the space has not taken the definition.
  func withoutAdditions(_ former: DeclaredTable) -> FollowedTable {
    var table = self
    (table.definition, table.added) = (former, [])
    table.adoption.columns.removeAll { added.contains(Name($0)) }
    table.adoption.carried.removeAll { added.contains(Name($0.name)) }
    for name in added { table.types[name] = nil }
    return table
  }
}

/// A decision about a changed definition of a company's table; pure.
enum TableChange: Sendable, Equatable {
  case followed(FollowedTable)
  /// The mirror cannot go on by itself.
  case stopped(String)
  /// A name that the mirror needs is gone, or the table is another one.
  case lost

  /// The table before and after the change.
  struct Sides {
    /// The table in the mirror's settings. They may be the new ones, after a kill.
    var former: MirrorTable
    /// The columns that travel by the functions in PostgreSQL.
    var columns: [Name]
    var formerShape: TableShape
    var shape: TableShape
    /// The adoption of the table as it is now.
    var plan: AdoptionPlan.Table
    /// The definition in the space.
    var known: DeclaredTable
    /// The columns of the settings that were renamed before.
    var renamed = RenamedColumns()
    /// The columns of the table in the mirror's file, without renamed ones.
    var held: Set<Name> = []
  }

  init(_ sides: Sides) {
    var sides = sides
    if sides.shape.relation != sides.formerShape.relation {
      self = .lost
      return
    }
    let (renamed, recaptured) = (sides.newNames, sides.newNames(of: sides.columns))
    for column in renamed {
      if let reason = sides.obstacle(to: column) {
        self = reason
        return
      }
    }
    sides.rename(renamed, recaptured)
    let taken = Set(sides.renamed.present(in: sides.former.name).keys)
    let (former, plan) = (sides.former, sides.plan)
    if let reason = Self.obstacle(sides) {
      self = .stopped(reason)
      return
    }
    var table = FollowedTable(
      name: former.name, definition: sides.known, types: plan.types, adoption: plan.adoption)
    let planned = plan.definition.columns
    // The space may have dropped a column since, or another mirror of the space.
    let formerNames = Set(sides.columns).intersection(sides.known.names)
    table.added = planned.filter { column in
      !formerNames.contains(column.name) && !taken.contains(column.name)
        && sides.known.columns.first { $0.name == column.name }?.affinity ?? column.affinity
          == column.affinity
    }.map(\.name)
    // A column that the space declares in another way does not travel.
    let travelling = formerNames.union(table.added)
    for column in planned where !travelling.contains(column.name) {
      table.adoption.columns.removeAll { Name($0) == column.name }
      table.adoption.carried.removeAll { Name($0.name) == column.name }
      table.types[column.name] = nil
    }
    table.dropped = sides.columns.filter { sides.shape.column($0) == nil }
    table.retyped = former.all.map(\.name).filter { name in
      let now = sides.shape.column(name)
      return now != nil && now != sides.formerShape.column(name)
    }
    (table.renamed, table.recaptured) = (renamed, recaptured)
    table.places = Dictionary(sides.shape.columns.map { ($0.name, $0.place) }) { $1 }
    table.compares = !table.retyped.isEmpty || !renamed.isEmpty || !recaptured.isEmpty
    table.definition = Self.definition(table, sides)
    let names = table.definition.names
    if let column = table.adoption.columns.first(where: { !names.contains(Name($0)) }) {
      self = .stopped("column \(column) is not the one that the space has")
      return
    }
    self = .followed(table)
  }

  /// Returns the reason if devices cannot go on with the table.
  private static func obstacle(_ sides: Sides) -> String? {
    let (former, plan) = (sides.former, sides.plan)
    guard plan.definition.key.agrees(with: sides.known.key) else { return "its key is another one" }
    for column in former.key {
      let carried = plan.adoption.carried.first { Name($0.name) == column.name }
      let type = carried.map { MirrorType.carried($0.type) } ?? plan.type(of: column.name)
      if type == column.type { continue }
      return "column \(column.name) of its key has another type"
    }
    for column in former.columns {
      guard let now = plan.definition.columns.first(where: { $0.name == column.name }) else {
        guard sides.shape.column(column.name) != nil else { continue }
        return "column \(column.name) cannot travel any more"
      }
      guard now.affinity == column.affinity else {
        return "column \(column.name) is \(column.affinity.rawValue) on devices, and its new type "
          + "would be \(now.affinity.rawValue)"
      }
    }
    return nil
  }

  /// Returns the space's definition with the changes. Columns that have not travelled stay.
  private static func definition(_ table: FollowedTable, _ sides: Sides) -> DeclaredTable {
    let planned = sides.plan.definition
    var definition = sides.known
    let dropped = Set(table.dropped)
    definition.columns.removeAll { dropped.contains($0.name) }
    for index in definition.columns.indices {
      let column = definition.columns[index]
      guard let now = planned.columns.first(where: { $0.name == column.name }),
        now.affinity == column.affinity
      else { continue }
      definition.columns[index] = now
    }
    definition.columns += planned.columns.filter { column in
      table.added.contains(column.name)
        && !definition.columns.contains { $0.name == column.name }
    }
    // Keys of columns unknown to the company stay as they are.
    definition.unique.removeAll { !dropped.isDisjoint(with: $0) }
    definition.indexes.removeAll { !dropped.isDisjoint(with: $0) }
    definition.references.removeAll { !dropped.isDisjoint(with: $0.columns) }
    let columns = definition.names
    definition.unique += planned.unique.filter { unique in
      columns.isSuperset(of: unique)
        && !definition.unique.contains { Set($0) == Set(unique) }
    }
    if !definition.keyPlaces.isEmpty {
      let last = definition.columns.count + definition.key.names.count
      if definition.keyPlaces.contains(where: { $0 >= last }) { definition.keyPlaces = [] }
    }
    return definition
  }
}

extension DeclaredTable {
  /// The names of all columns, with those of the key.
  fileprivate var names: Set<Name> { Set(columns.map(\.name)).union(key.names) }
}

extension TableChange.Sides {
  /// The new names of columns of the settings.
  fileprivate var newNames: [RenamedColumn] {
    let places = renamed.places(in: former.name)
    return newNames(of: former.all.map(\.name)) { places[$0] ?? formerShape.column($0)?.place }
  }

  /// Returns the new names of columns that the functions in PostgreSQL capture.
  fileprivate func newNames(of columns: [Name]) -> [RenamedColumn] {
    newNames(of: columns) { formerShape.column($0)?.place }
  }

  private func newNames(of columns: [Name], place: (Name) -> Int?) -> [RenamedColumn] {
    columns.compactMap { column in
      guard let place = place(column),
        let now = shape.columns.first(where: { $0.place == place }), Name(now.name) != column
      else { return nil }
      return RenamedColumn(former: column, present: Name(now.name), place: place)
    }
  }

  /// Returns the decision if a new name of a column is not followed.
  fileprivate func obstacle(to column: RenamedColumn) -> TableChange? {
    let name = column.former
    if shape.column(name) != nil { return .stopped("column \(name) is another one now") }
    if former.key.contains(where: { $0.name == name }) { return .lost }
    let isHere = held.union(known.columns.map(\.name)).contains(column.present)
    // The mirror's file has the first name until the process before this one would have changed it.
    let isFirst = renamed.present(in: former.name)[column.present] == name
    let place = renamed.places(in: former.name)[column.present]
    guard isHere && !isFirst || place != nil && place != column.place else { return nil }
    return .stopped(
      "column \(name) has the name of another column of the space, \(column.present)")
  }

  /// Gives all but the present shape the new names.
  fileprivate mutating func rename(_ settings: [RenamedColumn], _ functions: [RenamedColumn]) {
    renamed.rename(settings, in: former.name)
    let (names, captured) = (settings.names, functions.names)
    columns = columns.map { captured[$0] ?? $0 }
    for place in former.columns.indices {
      let name = former.columns[place].name
      former.columns[place].name = names[name] ?? name
    }
    for place in formerShape.columns.indices {
      let name = Name(formerShape.columns[place].name)
      formerShape.columns[place].name = (captured[name] ?? name).text
    }
    known = known.renaming(names)
  }
}

extension [RenamedColumn] {
  fileprivate var names: [Name: Name] {
    Dictionary(map { ($0.former, $0.present) }) { first, _ in first }
  }
}

extension TableChange {
  /// Decides about a table with another shape; `nil` if the mirror does not carry it.
  ///
  /// - Parameters:
  ///   - former: the mirror's plan.
  ///   - renamed: the columns renamed before.
  ///   - held: the columns of each table in the mirror's file, without renamed ones.
  init?(
    _ shape: MirrorLedger.OtherShape, _ former: MirrorPlan, _ survey: AdoptionPlan,
    _ schema: SpaceSchema, _ renamed: RenamedColumns, held: [Name: Set<Name>] = [:]
  ) {
    guard let table = former.tables.first(where: { $0.name == shape.table }),
      let adoption = table.adoption,
      let known = renamed.applied(to: schema).tables[shape.table]?.definition
    else { return nil }
    guard let planned = survey.tables.first(where: { $0.name == shape.table }) else {
      // It could not be adopted so. As long as the names are there, the mirror goes on.
      var kept = FollowedTable(
        name: table.name, definition: known, types: [:], adoption: adoption, shape: shape.text)
      for column in table.all where column.type.isAnnotation(of: column.affinity) {
        kept.types[column.name] = column.type
      }
      let hasAll = table.all.allSatisfy { shape.present.column($0.name) != nil }
      self = hasAll ? .followed(kept) : .lost
      return
    }
    self.init(
      Sides(
        former: table, columns: shape.columns, formerShape: shape.former, shape: shape.present,
        plan: planned, known: known, renamed: renamed, held: held[shape.table] ?? [])
    )
    if case .followed(var followed) = self {
      followed.shape = shape.text
      self = .followed(followed)
    }
  }
}

extension MirrorType {
  /// True if the settings name the type: it does not follow from the definition.
  fileprivate func isAnnotation(of affinity: DeclaredColumn.Affinity) -> Bool {
    if case .carried = self { return false }
    return self != MirrorType(affinity)
  }
}
