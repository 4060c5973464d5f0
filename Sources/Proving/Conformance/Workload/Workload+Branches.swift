import FerryProtocol

// Rows that go with their parents: chains of three, trees in one table, and rows that stay behind.
extension Workload {
  /// Creates the tables. A trunk has boughs, and these have twigs; vines grow on vines. Users only
  /// cut whole trunks and vines: any other row goes with its parent. A nest stays without its bough,
  /// and holds its vine. No user sets `size` to NULL.
  package static let branchSchema = [
    "CREATE TABLE trunks(id TEXT PRIMARY KEY NOT NULL, note TEXT NOT NULL, size INTEGER)",
    """
    CREATE TABLE boughs(id TEXT PRIMARY KEY NOT NULL,
      trunk TEXT NOT NULL REFERENCES trunks(id) ON DELETE CASCADE, note TEXT NOT NULL, size INTEGER)
    """,
    """
    CREATE TABLE twigs(id TEXT PRIMARY KEY NOT NULL,
      bough TEXT NOT NULL REFERENCES boughs(id) ON DELETE CASCADE, note TEXT NOT NULL, size INTEGER)
    """,
    """
    CREATE TABLE vines(id TEXT PRIMARY KEY NOT NULL,
      up TEXT REFERENCES vines(id) ON DELETE CASCADE, note TEXT NOT NULL, size INTEGER)
    """,
    """
    CREATE TABLE nests(id TEXT PRIMARY KEY NOT NULL,
      bough TEXT REFERENCES boughs(id) ON DELETE SET NULL,
      vine TEXT REFERENCES vines(id) ON DELETE RESTRICT, note TEXT NOT NULL, size INTEGER)
    """,
  ]

  /// The names of these tables.
  package static let branches: [Name] = ["trunks", "boughs", "twigs", "vines", "nests"]

  /// Returns true for one of these tables.
  package static func isBranch(_ table: Name) -> Bool { branches.contains(table) }

  /// The tables in which users delete only rows without a parent, each with the parent's table.
  package static let grown: [Name: Name] = [
    "boughs": "trunks", "twigs": "boughs", "vines": "vines",
  ]

  /// Returns the records above a record, the parent first. An identifier contains those above it.
  package static func ancestors(of key: RecordKey) -> [RecordKey] {
    var (table, record, found) = (key.table, key.record.text[...], [RecordKey]())
    while let parent = grown[table], let end = record.lastIndex(of: "/") {
      (table, record) = (parent, record[..<end])
      found.append(RecordKey(table: table, record: Name(String(record))))
    }
    return found
  }

  /// Plants, grows or edits a row, or cuts a trunk or a vine.
  static func branch(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let new = fresh("/", &random)
    let values = "\(ValueMaker.text(&random).sqlLiteral), \(random.below(9))"
    switch random.below(16) {
    case 0, 1:
      return ["INSERT INTO trunks(id, note, size) VALUES ('k\(new.dropFirst())', \(values))"]
    case 2: return ["INSERT INTO vines(id, note, size) VALUES ('v\(new.dropFirst())', \(values))"]
    case 3, 4: return try grow("boughs", "trunk", new, values, &random, query)
    case 5, 6, 7: return try grow("twigs", "bough", new, values, &random, query)
    case 8, 9: return try grow("vines", "up", new, values, &random, query)
    case 10: return try nest(new, values, &random, query)
    case 11, 12, 13:
      let table = branches[random.below(branches.count)].text
      guard let id = try pick(table, &random, query) else { return [] }
      let note = "note = \(ValueMaker.text(&random).sqlLiteral)"
      let set = random.chance(1, in: 2) ? note : "size = size + 1"
      return ["UPDATE \(table) SET \(set) WHERE id = '\(id)'"]
    case 14: return try pick("trunks", &random, query).map { [delete("trunks", $0)] } ?? []
    default: return try cutVine(&random, query)
    }
  }

  private static func grow(
    _ table: Name, _ column: String, _ new: String, _ values: String, _ random: inout SeededRandom,
    _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    guard let parent = grown[table]?.text, let id = try pick(parent, &random, query) else {
      return []
    }
    return [
      "INSERT INTO \(table)(id, \(column), note, size) VALUES ('\(id)\(new)', '\(id)', \(values))"
    ]
  }

  private static func nest(
    _ new: String, _ values: String, _ random: inout SeededRandom,
    _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let bough = try pick("boughs", &random, query).map { "'\($0)'" } ?? "NULL"
    let found = try pick("vines", &random, query).map { "'\($0)'" } ?? "NULL"
    let vine = random.chance(1, in: 2) ? found : "NULL"
    return [
      """
      INSERT INTO nests(id, bough, vine, note, size)
      VALUES ('n\(new.dropFirst())', \(bough), \(vine), \(values))
      """
    ]
  }

  /// Deletes a vine without a parent, with all vines on it, unless a nest holds one of them.
  private static func cutVine(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let roots = try records("(SELECT id FROM vines WHERE up IS NULL)", query)
    guard !roots.isEmpty else { return [] }
    let id = pick(from: roots, &random)
    return [
      """
      DELETE FROM vines WHERE id = '\(id)' AND NOT EXISTS (
        SELECT 1 FROM nests WHERE vine = '\(id)' OR vine GLOB '\(id)/*')
      """
    ]
  }
}
