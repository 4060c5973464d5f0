import FerryProtocol

// Rows that follow a value of their parents.
extension Workload {
  /// Makes a label, gives one another code, lets two change their codes, or writes a tag.
  static func label(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let labels = try records("labels", query)
    let id = fresh("t-", &random)
    let code = fresh("", &random)
    if labels.isEmpty || labels.count < 6 && random.chance(1, in: 4) {
      return ["INSERT INTO labels(id, code) VALUES ('\(id)', '\(code)')"]
    }
    let label = pick(from: labels, &random)
    switch random.below(8) {
    case 0, 1: return [rename(label, to: "'\(code)'")]
    case 2: return swap(label, pick(from: labels, &random), by: code)
    case 3, 4, 5:
      return [
        "INSERT INTO tags(id, code, note) SELECT '\(id)', code, 'new' FROM labels "
          + "WHERE id = '\(label)'"
      ]
    default:
      guard let tag = try pick("tags", &random, query) else { return [] }
      switch random.below(3) {
      case 0: return ["DELETE FROM tags WHERE id = '\(tag)'"]
      case 1: return ["UPDATE tags SET note = '\(code)' WHERE id = '\(tag)'"]
      default:
        return [
          "UPDATE tags SET code = (SELECT code FROM labels WHERE id = '\(label)') "
            + "WHERE id = '\(tag)'"
        ]
      }
    }
  }

  private static func rename(_ label: String, to code: String) -> String {
    "UPDATE labels SET code = \(code) WHERE id = '\(label)'"
  }

  /// Swaps two codes by way of codes in no other row: SQLite checks each row as it is changed. A
  /// code of the application has eight characters, and these contain the old ones.
  private static func swap(_ one: String, _ other: String, by code: String) -> [String] {
    guard one != other else { return [rename(one, to: "'\(code)'")] }
    func part(_ start: Int) -> String {
      "(SELECT substr(code, \(start), 8) FROM labels WHERE id = '\(other)')"
    }
    return [
      rename(one, to: "'\(code)|' || code"),
      rename(other, to: "(SELECT code FROM labels WHERE id = '\(one)') || '|' || code"),
      rename(one, to: part(19)), rename(other, to: part(10)),
    ]
  }
}
