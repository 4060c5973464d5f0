import FerryProtocol

/// The columns of adopted tables that the company has renamed. Devices and the space keep the name of
/// the adoption (SPEC.md §26); the mirror's file has the company's name.
package struct RenamedColumns: Codable, Sendable, Equatable {
  /// A column that had another name at the adoption.
  private struct Column: Codable, Sendable, Equatable {
    /// The name in the space.
    var first: String
    /// The company's name.
    var present: String
    /// The number in the company's table, which stays.
    var place: Int
  }

  /// By table. A column that has the first name again stays in the list, with the number.
  private var tables: [String: [Column]] = [:]

  package init() {}

  /// Returns the company's names of a table's columns by their names in the space.
  func present(in table: Name) -> [Name: Name] {
    var names: [Name: Name] = [:]
    for column in tables[table.text] ?? [] where column.first != column.present {
      names[Name(column.first)] = Name(column.present)
    }
    return names
  }

  /// Returns the company's names of a table's columns by their names in the space, also equal ones:
  /// the mirror's file may have another name.
  func all(in table: Name) -> [Name: Name] {
    Dictionary((tables[table.text] ?? []).map { (Name($0.first), Name($0.present)) }) { $1 }
  }

  /// Returns the numbers of a table's columns by the company's names.
  func places(in table: Name) -> [Name: Int] {
    Dictionary((tables[table.text] ?? []).map { (Name($0.present), $0.place) }) { $1 }
  }

  /// Adds new names of columns of a table, and the numbers of columns made again under their names.
  mutating func adapt(to table: FollowedTable) {
    rename(table.renamed, in: table.name)
    for place in (tables[table.name.text] ?? []).indices {
      guard let column = tables[table.name.text]?[place], let now = table.places[column.present],
        !table.places.values.contains(column.place)
      else { continue }
      tables[table.name.text]?[place].place = now
    }
  }

  /// Adds new names of columns of a table.
  mutating func rename(_ columns: [RenamedColumn], in table: Name) {
    for column in columns {
      let known = tables[table.text]?.firstIndex { $0.place == column.place }
      guard let known else {
        tables[table.text, default: []].append(
          Column(
            first: column.former.text, present: column.present.text, place: column.place))
        continue
      }
      tables[table.text]?[known].present = column.present.text
    }
  }

  /// Returns a schema of the space with the company's names.
  func applied(to schema: SpaceSchema) -> SpaceSchema {
    var schema = schema
    for name in tables.keys.map({ Name($0) }) {
      guard var rules = schema.tables[name] else { continue }
      let names = present(in: name).filter { first, present in
        // A definition with the name is the company's already.
        rules.definition?.columns.contains { $0.name == present } != true
      }
      rules.definition = rules.definition?.renaming(names)
      rules.columns = Dictionary(
        rules.columns.map { (names[$0.key] ?? $0.key, $0.value) }
      ) { rule, _ in rule }
      rules.unique = rules.unique.map { $0.map { names[$0] ?? $0 } }
      schema.tables[name] = rules
    }
    return schema
  }

  /// Returns the definition of a table for the space.
  func published(_ definition: DeclaredTable, of table: Name) -> DeclaredTable {
    var names: [Name: Name] = [:]
    for (first, present) in present(in: table) { names[present] = first }
    return definition.renaming(names)
  }
}

/// A column with a new name.
struct RenamedColumn: Sendable, Equatable {
  var former: Name
  var present: Name
  /// The number in the company's table.
  var place: Int
}

extension DeclaredTable {
  /// Returns the definition with other names of columns beside the key.
  func renaming(_ names: [Name: Name]) -> DeclaredTable {
    if names.isEmpty { return self }
    func renamed(_ columns: [Name]) -> [Name] { columns.map { names[$0] ?? $0 } }
    var table = self
    for place in columns.indices { table.columns[place].name = renamed([columns[place].name])[0] }
    table.unique = unique.map(renamed)
    table.indexes = indexes.map(renamed)
    for place in references.indices {
      table.references[place].columns = renamed(references[place].columns)
    }
    return table
  }
}
