import FerryProtocol

// The space's declarations for the application's tables, and the actions that need them.

extension Workload {
  /// The space's schema, in force from the start.
  package static let declared = """
    {"tables":{"places":{"columns":{"seats":{"type":"integer"}},"unique":[["name"]]},\
    "slots":{"unique":[["shelf","place"]]},"labels":{"unique":[["code"]]},\
    "tallies":{"columns":{"votes":"counter"}},\
    "drafts":{"columns":{"body":"ask"},"deletes":"ask"},\
    "vows":{"columns":{"body":"ask"},"deletes":"ask"},\
    "sheets":{"columns":{"kept":"server-wins","sent":"client-wins","high":"max","low":"min",\
    "tags":"set-union","body":"text-merge"},"deletes":"edit-wins"}}}
    """

  /// Returns whether other rules than "the latest write stays" decide a table's values.
  package static func hasPolicies(_ table: Name) -> Bool {
    table == counter.table || dependsOnKnowledge(table)
  }

  /// Returns `true` if a table's values depend on the authors' knowledge of operations.
  package static func dependsOnKnowledge(_ table: Name) -> Bool {
    table == "drafts" || table == "vows" || table == sheets
  }

  /// The table with a counter, and the counter. The records are never deleted.
  package static let counter: (table: Name, column: Name) = ("tallies", "votes")

  /// Tallies with additions from all devices; any of them may insert them.
  private static let sharedTallies = (0..<4).map { "c\($0)" }

  /// Adds to one to three tallies, the same one perhaps. Amounts are small, and never 0.
  static func tally(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    guard try knowsSchema(query) else { return [] }
    return (0...random.below(3)).map { _ in
      let isShared = random.chance(7, in: 8)
      let id = isShared ? sharedTallies[random.below(sharedTallies.count)] : fresh("c-", &random)
      let amount = 1 + random.below(9)
      return """
        INSERT INTO tallies(id, votes) VALUES ('\(id)', \(random.chance(2, in: 3) ? amount : -amount)) \
        ON CONFLICT(id) DO UPDATE SET votes = tallies.votes + excluded.votes
        """
    }
  }

  /// Inserts, edits or deletes a place. Offline devices pick the same names, and now and then seats
  /// are no number.
  static func claim(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let places = try records("places", query)
    let name = "'hall \(random.below(24))'"
    let seats = random.chance(1, in: 6) ? "'many'" : "\(random.below(9))"
    if places.isEmpty || random.chance(1, in: 2) {
      let id = fresh("p-", &random)
      let insert = "INSERT INTO places(id, name, seats) VALUES ('\(id)', \(name), \(seats))"
      let lists = try records("lists", query)
      guard !lists.isEmpty, random.chance(1, in: 2) else { return [insert] }
      let list = pick(from: lists, &random)
      return [
        insert,
        """
        INSERT INTO items(id, list, label, done) \
        SELECT '\(fresh("i-", &random))', id, 'booked', 0 FROM lists WHERE id = '\(list)'
        """,
      ]
    }
    let id = pick(from: places, &random)
    switch random.below(4) {
    case 0: return ["DELETE FROM places WHERE id = '\(id)'"]
    case 1: return ["UPDATE places SET seats = \(seats) WHERE id = '\(id)'"]
    default: return ["UPDATE places SET name = \(name) WHERE id = '\(id)'"]
    }
  }

  /// The tables with conflicts for users to answer, each with a column to set.
  package static let answered: [Name: Name] = [
    "notes": "title", "drafts": "body", "vows": "body", "pledges": "body",
    "boughs": "note", "twigs": "note", "vines": "note",
  ]

  /// The tables of drafts.
  private static let drafts = ["drafts", "vows", "pledges"]

  /// Drafts with edits from all devices; any of them may insert them.
  private static let sharedDrafts = (0..<4).map { "d\($0)" }

  /// Writes a draft, or a part of one.
  static func draft(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let table = drafts[random.below(drafts.count)]
    let here = try records(table, query)
    let body = ValueMaker.text(&random).sqlLiteral
    guard !here.isEmpty, random.chance(3, in: 4) else {
      let id =
        random.chance(1, in: 2)
        ? sharedDrafts[random.below(sharedDrafts.count)] : fresh("d-", &random)
      return [
        """
        INSERT INTO \(table)(id, body, pages) VALUES ('\(id)', \(body), 1) \
        ON CONFLICT(id) DO UPDATE SET body = excluded.body
        """
      ]
    }
    let id = pick(from: here, &random)
    switch random.below(8) {
    case 0: return ["DELETE FROM \(table) WHERE id = '\(id)'"]
    case 1: return ["UPDATE \(table) SET pages = \(random.below(90)) WHERE id = '\(id)'"]
    default: return ["UPDATE \(table) SET body = \(body) WHERE id = '\(id)'"]
    }
  }

  /// Returns `true` if the device knows the schema. Before that, all writes are plain values.
  private static func knowsSchema(_ query: (String) throws -> [[Value]]) rethrows -> Bool {
    try !query("SELECT 1 FROM ferry_replica WHERE schema > 0").isEmpty
  }
}
