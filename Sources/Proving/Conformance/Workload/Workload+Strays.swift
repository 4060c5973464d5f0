import FerryProtocol

// Tables with different definitions on devices, and values permitted by only some of these
// definitions.

extension Workload {
  /// Returns `true` if devices may show other rows of a table than the server has, because their
  /// definitions of it differ. Oracles leave such tables out.
  package static func isStray(_ table: Name) -> Bool {
    table.utf8.starts(with: strayPrefix.utf8)
  }

  private static let strayPrefix = "stray"

  /// The condition in SQL of a column `tbl` for all other tables.
  static let isNotStray = "tbl NOT GLOB '\(strayPrefix)*'"

  /// The tracked ones of these tables.
  package static let strays: [Name] = ["stray_hubs", "stray_nodes", "stray_legs"]

  /// Returns an identifier for a device of a hostile member.
  package static func strangeDevice(_ random: inout SeededRandom) -> DeviceID {
    DeviceID(UniqueID(timestamp: strangeTime, random: random.next()))
  }

  /// Returns `true` if a device is of a hostile member: it claims times and bases as it likes.
  package static func isStrange(_ device: DeviceID) -> Bool {
    device.value.timestamp == strangeTime
  }

  /// No honest device is as old.
  private static let strangeTime = HybridTimestamp(milliseconds: 4_242)

  /// Returns a note written by honest devices as well.
  package static func sharedNote(_ random: inout SeededRandom) -> RecordKey {
    RecordKey(table: "notes", record: Name(sharedNotes[random.below(sharedNotes.count)]))
  }

  /// Creates them.
  ///
  /// - Parameter isBound: whether foreign keys and conditions are declared.
  package static func straySchema(isBound: Bool) -> [String] {
    func bound(_ rule: String) -> String { isBound ? " " + rule : "" }
    return [
      "CREATE TABLE stray_hubs(id TEXT PRIMARY KEY NOT NULL, name TEXT\(bound("UNIQUE")))",
      """
      CREATE TABLE stray_nodes(id TEXT PRIMARY KEY NOT NULL,
        hub TEXT\(bound("REFERENCES stray_hubs(id)")),
        up TEXT\(bound("REFERENCES stray_nodes(id) ON DELETE CASCADE")),
        size INTEGER\(bound("CHECK (size < 5)")))
      """,
      """
      CREATE TABLE stray_legs(id TEXT PRIMARY KEY NOT NULL,
        node TEXT\(bound("REFERENCES stray_nodes(id) ON DELETE SET NULL")))
      """,
    ]
  }

  /// Texts that can be no record's identifier, or only just.
  package static let oddTexts: [Value] = [
    .text(""), .text(String(repeating: "x", count: 513)), .text("a\u{0}b"), .text("\u{0}"),
    .text(String(repeating: "\u{301}", count: 256)), .text(String(repeating: "y", count: 512)),
    .text("'\u{600}"), .text("\"\u{600}"), .text("-h\u{600}'; touch X; '"),
  ]

  /// Writes rows with references to each other. A device without foreign keys refers to anything.
  static func stray(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let isBound = try !query("SELECT 1 FROM pragma_foreign_key_list('stray_nodes')").isEmpty
    let nodes = try records("stray_nodes", query)
    switch random.below(isBound ? 2 : 8) {
    case 0:
      let id = fresh("h", &random)
      let name = Value.text("hub \(random.below(6))").sqlLiteral
      return ["INSERT OR IGNORE INTO stray_hubs(id, name) VALUES ('\(id)', \(name))"]
    case 1:
      return [
        "INSERT INTO stray_nodes(id, size) VALUES ('\(fresh("s", &random))', \(random.below(5)))"
      ]
    case 2: return [strayChain(1 + random.below(30), &random)]
    case 3 where !nodes.isEmpty: return [delete("stray_nodes", pick(from: nodes, &random))]
    case 4 where !nodes.isEmpty:
      let (node, up) = (pick(from: nodes, &random), pick(from: nodes, &random))
      return ["UPDATE stray_nodes SET up = '\(up)', size = \(random.below(9)) WHERE id = '\(node)'"]
    case 5:
      let node = nodes.isEmpty ? "none" : pick(from: nodes, &random)
      return ["INSERT INTO stray_legs VALUES ('\(fresh("g", &random))', '\(node)')"]
    default:
      let hub = oddTexts[random.below(oddTexts.count)].sqlLiteral
      return ["INSERT INTO stray_nodes(id, hub) VALUES ('\(fresh("s", &random))', \(hub))"]
    }
  }

  /// Inserts nodes of which each refers to the one before; nobody has the first one.
  private static func strayChain(_ count: Int, _ random: inout SeededRandom) -> String {
    let id = fresh("c", &random)
    return """
      WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(count)) \
      INSERT INTO stray_nodes(id, up) SELECT '\(id)-' || i, '\(id)-' || (i - 1) FROM k
      """
  }
}
