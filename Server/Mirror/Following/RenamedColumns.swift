import FerryProtocol

/// The columns of adopted tables that the company has renamed. Devices and the space keep the name of
/// the adoption (SPEC.md §26); the mirror's file has the company's name.
package struct RenamedColumns: Codable, Sendable, Equatable {
  /// The names in the space by the company's names, by table.
  private var tables: [String: [String: String]] = [:]

  package init() {}

  /// Returns the company's names of a table's columns by their names in the space.
  func present(in table: Name) -> [Name: Name] {
    var names: [Name: Name] = [:]
    for (present, first) in tables[table.text] ?? [:] { names[Name(first)] = Name(present) }
    return names
  }

  /// Adds new names of columns; a former name has none of its own any more.
  mutating func rename(_ names: [Name: Name], in table: Name) {
    var known = tables[table.text] ?? [:]
    for (former, new) in names where known[new.text] == nil {
      let first = known.removeValue(forKey: former.text) ?? former.text
      if first != new.text { known[new.text] = first }
    }
    tables[table.text] = known.isEmpty ? nil : known
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
