import FerryPlatform
import FerryProtocol

// Tables with odd names, types and values. One device defines them; others create them from the
// published definitions, or by themselves with the same names in other letters.
extension Workload {
  /// These tables, parents before their children.
  package static let oddTables: [Name] = [
    "Odd \"one\" 'two'", "Typed", "Pairs", "Counted", "Lefts", "Rights",
  ]

  /// True if a space's schema has the definitions of all these tables.
  package static func definesOddTables(_ schema: SpaceSchema) -> Bool {
    oddTables.allSatisfy { schema.tables[$0]?.definition != nil }
  }

  /// True if a server's schema has them.
  package static func definesOddTables(_ server: ServerEvidence) -> Bool {
    let schema = server.records[RecordKey(table: "ferry_schema", record: "schema")]
    let document = schema?.columns.first { $0.name == "document" }
    guard case .text(let text)? = document?.value, let schema = try? SpaceSchema(json: text)
    else { return false }
    return definesOddTables(schema)
  }

  /// The same names in other letters.
  package static let respelledOddTables = oddTables.map { Name(respelled($0.text)) }

  /// Returns the statements for their creation, in the same order.
  ///
  /// - Parameter isRespelled: true if capital letters are small ones, and the other way round.
  package static func oddSchema(isRespelled: Bool) -> [String] {
    func name(_ name: String) -> String { quoted(Name(isRespelled ? respelled(name) : name)) }
    return [
      """
      CREATE TABLE \(name(oddTables[0].text))(\(name("the Key")) TEXT PRIMARY KEY NOT NULL,
        \(name("Order")), \(name("sel\"ect")) NUMERIC, \(name("größe")) REAL,
        \(name("x\u{600}")) TEXT)
      """,
      """
      CREATE TABLE \(name("Typed"))(id TEXT PRIMARY KEY NOT NULL, \(name("Any")) ANY,
        \(name("Whole")) INTEGER, \(name("Bytes")) BLOB) STRICT
      """,
      """
      CREATE TABLE \(name("Pairs"))(\(name("Place")) TEXT NOT NULL, \(name("No")) INTEGER NOT NULL,
        \(name("Note")) BLOB, PRIMARY KEY(\(name("Place")), \(name("No")))) WITHOUT ROWID
      """,
      """
      CREATE TABLE \(name("Counted"))(id INTEGER PRIMARY KEY AUTOINCREMENT,
        \(name("Group")) TEXT DEFAULT 'it''s')
      """,
      """
      CREATE TABLE \(name("Lefts"))(id TEXT PRIMARY KEY NOT NULL, \(name("Right")) TEXT
        REFERENCES \(name("Rights"))(id) DEFERRABLE INITIALLY DEFERRED)
      """,
      """
      CREATE TABLE \(name("Rights"))(id TEXT PRIMARY KEY NOT NULL, \(name("Left")) TEXT NOT NULL
        REFERENCES \(name("Lefts"))(id) DEFERRABLE INITIALLY DEFERRED)
      """,
    ]
  }

  /// Returns a name with small letters instead of capital ones, and the other way round.
  private static func respelled(_ name: String) -> String {
    String(
      String.UnicodeScalarView(
        name.unicodeScalars.map { letter in
          guard letter.isASCII, letter.properties.isAlphabetic else { return letter }
          return Unicode.Scalar(UInt8(letter.value) ^ 0x20)
        }))
  }

  /// Values with another form in a column of another type, and values that messages and SQL may
  /// damage.
  private static let oddValues =
    ValueMaker.awkward + [
      .text("007"), .text("9007199254740993.5"), .text("1e3"), .text("2026-11-29T01:02:03Z"),
      .text(String(repeating: "x", count: 600)), .text("\u{600}'"), .real(-.infinity), .real(0.5),
      .integer(-9_007_199_254_740_993), .blob(Array("007".utf8)),
    ]

  /// Keys of all lengths and letters, used by many devices.
  private static let oddKeys = [
    "a", "A", "it's", "\"q\"", " ", "\u{600}", "é", "e\u{301}", "-1", "0", "[1]",
    String(repeating: "k", count: 512),
  ]

  /// Writes or deletes a row with odd values, or renames a column in case alone.
  static func odd(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    guard try !query("SELECT 1 FROM sqlite_schema WHERE name = 'Rights' COLLATE NOCASE").isEmpty
    else { return [] }
    let key = Value.text(oddKeys[random.below(oddKeys.count)]).sqlLiteral
    switch random.below(16) {
    case 0...4: return [oddRow(key, &random)]
    case 5...7: return [typedRow(key, &random)]
    case 8, 9:
      return [
        """
        INSERT INTO Pairs(Place, "No", Note)
        VALUES (\(key), \(random.below(3)), \(oddValue(&random)))
        ON CONFLICT(Place, "No") DO UPDATE SET Note = excluded.Note
        """
      ]
    case 10: return ["INSERT INTO Counted(\"Group\") VALUES (\(oddValue(&random)))"]
    case 11: return ["DELETE FROM Counted WHERE id = (SELECT max(id) FROM Counted)"]
    case 12:
      let id = fresh("", &random)
      return [
        "INSERT INTO Rights(id, \"Left\") VALUES ('r\(id)', 'l\(id)')",
        "INSERT INTO Lefts(id, \"Right\") VALUES ('l\(id)', 'r\(id)')",
      ]
    case 13: return ["DELETE FROM \(quoted(oddTables[0])) WHERE \"the Key\" = \(key)"]
    case 14: return ["DELETE FROM Typed WHERE id = \(key)"]
    default: return try respell(query)
    }
  }

  private static func oddRow(_ key: String, _ random: inout SeededRandom) -> String {
    let columns = ["Order", "sel\"ect", "größe", "x\u{600}"]
    let first = random.below(columns.count)
    let chosen = [columns[first], columns[(first + 1) % columns.count]].map { quoted(Name($0)) }
    let values = chosen.map { _ in oddValue(&random) }.joined(separator: ", ")
    let sets = chosen.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    return """
      INSERT INTO \(quoted(oddTables[0]))("the Key", \(chosen.joined(separator: ", ")))
      VALUES (\(key), \(values)) ON CONFLICT("the Key") DO UPDATE SET \(sets)
      """
  }

  private static func typedRow(_ key: String, _ random: inout SeededRandom) -> String {
    let whole: [Int64] = [.min, .max, 0, -1, 9_007_199_254_740_993]
    let bytes: [[UInt8]] = [[], [0], [0xC3, 0x28], Array(repeating: 0, count: 700)]
    let values = [
      oddValue(&random), Value.integer(whole[random.below(whole.count)]).sqlLiteral,
      Value.blob(bytes[random.below(bytes.count)]).sqlLiteral,
    ]
    return """
      INSERT INTO Typed(id, "Any", Whole, Bytes) VALUES (\(key), \(values.joined(separator: ", ")))
      ON CONFLICT(id) DO UPDATE SET "Any" = excluded."Any", Bytes = excluded.Bytes
      """
  }

  private static func oddValue(_ random: inout SeededRandom) -> String {
    oddValues[random.below(oddValues.count)].sqlLiteral
  }

  /// Renames a column in case alone, as a user types the name.
  private static func respell(_ query: (String) throws -> [[Value]]) rethrows -> [String] {
    let table = quoted(oddTables[0])
    let found = try query(
      "SELECT name FROM pragma_table_info(\(quoted(literal: oddTables[0].text))) "
        + "WHERE name = 'Order' COLLATE NOCASE")
    guard case .text(let name)? = found.first?.first else { return [] }
    let new = name == "Order" ? "oRDER" : "Order"
    return ["ALTER TABLE \(table) RENAME COLUMN \(quoted(Name(name))) TO \(quoted(Name(new)))"]
  }
}
