import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Easily confused names and defaults, in the tables created by a device from a schema. SQLite
/// reads the SQL, and the catalog has to name everything byte for byte.
@Suite("Random names in declared tables", .hangLimit)
struct DeclaredNameTests {
  private static func names(_ count: Int, _ samples: inout NameSamples) -> [Name] {
    var (names, seen): ([Name], Set<Name>) = ([], [])
    while names.count < count {
      let name = Name(samples.name())
      if !NameRule.isReserved(table: name), seen.insert(name.folded).inserted { names.append(name) }
    }
    return names
  }

  private static func text(_ samples: inout NameSamples) -> Value {
    while true {
      let text = samples.text()
      if !text.utf8.contains(0) { return .text(text) }
    }
  }

  @Test(
    "each statement is one, names and defaults are those of the space, and nothing else is made")
  func tables() throws {
    for seed in UInt64(1)...300 {
      var samples = NameSamples(seed: seed)
      let (tables, columns) = (Self.names(2, &samples), Self.names(5, &samples))
      let defaults = [Self.text(&samples), Self.text(&samples)]
      var child = DeclaredTable(
        key: .value([.init(columns[0], .text), .init(columns[1], .integer)]),
        columns: [
          DeclaredColumn(columns[2], .text, isRequired: true, defaultValue: defaults[0]),
          DeclaredColumn(columns[3], .numeric, defaultValue: defaults[1]),
          DeclaredColumn(columns[4], .text),
        ])
      child.unique = [[columns[2], columns[3]]]
      child.indexes = [[columns[4], columns[2]], [columns[3]]]
      child.references = [DeclaredReference([columns[4]], to: tables[0], onDelete: .setNull)]
      let parent = DeclaredTable(key: .text(columns[0]), columns: [])
      let connection = try SQLiteConnection(path: ":memory:")
      try connection.execute("CREATE TABLE \"a canary\"(n); INSERT INTO \"a canary\" VALUES (7)")
      for (name, table) in zip(tables, [parent, child]) {
        for statement in table.statements(name: name, local: { ($0, $1) }) {
          try connection.execute(single: statement)
        }
      }
      let made = try connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") {
        $0.name(0)
      }
      #expect(Set(made) == Set(tables + ["a canary"]), "seed \(seed)")
      try connection.execute(
        single: """
          INSERT INTO \(quoted(tables[1]))(\(quoted(list: columns[..<2]))) VALUES ('k', 1)
          """)
      let rows = try connection.rows("SELECT * FROM \(quoted(tables[1]))") { row in
        (
          names: (0..<5).map { Name(row.columnName(Int32($0))) },
          values: (2..<4).map { row.value(Int32($0)) }
        )
      }
      #expect(rows.count == 1 && rows[0].names == columns, "seed \(seed)")
      #expect(rows.first?.values.first == defaults[0], "seed \(seed)")
      let parents = try connection.rows(
        "SELECT \"table\" FROM pragma_foreign_key_list(\(quoted(literal: tables[1].text)))"
      ) { $0.name(0) }
      #expect(parents == [tables[0]], "seed \(seed)")
      #expect(try connection.rows("SELECT n FROM \"a canary\"") { $0.int64(0) } == [7])
      #expect(try connection.rows("SELECT 1 FROM pragma_database_list") { _ in 1 }.count == 1)
    }
  }
}
