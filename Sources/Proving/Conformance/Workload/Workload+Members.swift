import FerryProtocol

// Tables whose keys are integers of each device, and pairs of values.
extension Workload {
  /// The references of the tables: members and roles go with their club. A member with a badge
  /// stays, and comes back if another device has deleted it meanwhile.
  static let clubs = [
    "CREATE TABLE clubs(id INTEGER PRIMARY KEY, name TEXT)",
    """
    CREATE TABLE members(id INTEGER PRIMARY KEY,
      club INTEGER REFERENCES clubs(id) ON DELETE CASCADE, name TEXT)
    """,
    """
    CREATE TABLE roles(club INTEGER NOT NULL REFERENCES clubs(id) ON DELETE CASCADE,
      title TEXT NOT NULL, holder TEXT, PRIMARY KEY(club, title)) WITHOUT ROWID
    """,
    """
    CREATE TABLE badges(id INTEGER PRIMARY KEY, kind TEXT,
      member INTEGER REFERENCES members(id) ON UPDATE CASCADE)
    """,
  ]

  /// Founds a club with a first member, writes a member or a role, or deletes one of them.
  static func enrol(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let name = ValueMaker.text(&random).sqlLiteral
    let clubs = try numbers("clubs", query)
    guard !clubs.isEmpty, random.chance(5, in: 6) else {
      return [
        "INSERT INTO clubs(name) VALUES (\(name))",
        "INSERT INTO members(club, name) VALUES (last_insert_rowid(), \(name))",
      ]
    }
    let club = pick(from: clubs, &random)
    let members = try numbers("members", query)
    // Rows may have gone, or come, since they were chosen.
    let found = "SELECT id FROM clubs WHERE id = \(club)"
    guard !members.isEmpty, random.chance(4, in: 5) else {
      return ["INSERT INTO members(club, name) SELECT id, \(name) FROM clubs WHERE id = \(club)"]
    }
    let member = pick(from: members, &random)
    switch random.below(16) {
    case 0:
      return [
        """
        DELETE FROM clubs WHERE id = \(club) AND id NOT IN
          (SELECT m.club FROM members AS m JOIN badges AS b ON b.member = m.id WHERE m.club NOTNULL)
        """
      ]
    case 1:
      return [
        """
        DELETE FROM members WHERE id = \(member)
          AND id NOT IN (SELECT member FROM badges WHERE member NOTNULL)
        """
      ]
    case 2:
      return ["UPDATE members SET id = (SELECT max(id) + 1 FROM members) WHERE id = \(member)"]
    case 3: return ["INSERT OR REPLACE INTO members(id, name) VALUES (\(member), \(name))"]
    case 4, 5: return ["UPDATE members SET club = (\(found)) WHERE id = \(member)"]
    case 6: return ["UPDATE clubs SET name = \(name) WHERE id = \(club)"]
    case 7: return ["DELETE FROM roles WHERE club = \(club) AND title = 'title 1'"]
    case 8...10:
      return [
        """
        INSERT INTO roles(club, title, holder) \
        SELECT id, 'title \(random.below(3))', \(name) FROM clubs WHERE id = \(club) \
        ON CONFLICT(club, title) DO UPDATE SET holder = excluded.holder
        """
      ]
    case 11, 12:
      return [
        "INSERT INTO badges(kind, member) SELECT \(name), id FROM members WHERE id = \(member)"
      ]
    case 13:
      let found = "SELECT id FROM members WHERE id = \(member)"
      return ["UPDATE badges SET member = (\(found)) WHERE id = (SELECT max(id) FROM badges)"]
    case 14: return ["DELETE FROM badges WHERE id = (SELECT min(id) FROM badges)"]
    default: return ["UPDATE members SET name = \(name) WHERE id = \(member)"]
    }
  }

  static func numbers(
    _ table: String, _ query: (String) throws -> [[Value]]
  ) rethrows -> [Int64] {
    try query("SELECT id FROM \(table) ORDER BY id").compactMap { row in
      if case .integer(let id)? = row.first { id } else { nil }
    }
  }
}
