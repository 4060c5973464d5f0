import FerryProtocol

// Rows with columns whose policies need no user.
extension Workload {
  /// The table whose columns have the policies server-wins, client-wins, max, min, set-union and
  /// text-merge.
  package static let sheets: Name = "sheets"

  /// Inserts, edits or deletes one of a few sheets; any device may do so.
  static func sheet(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let id = "h\(random.below(6))"
    if random.chance(1, in: 12) { return ["DELETE FROM sheets WHERE id = '\(id)'"] }
    let bodies = try query("SELECT body FROM sheets WHERE id = '\(id)'").map(\.first)
    guard let body = bodies.first else {
      return [
        """
        INSERT INTO sheets(id, kept, sent, high, low, tags, body) VALUES ('\(id)', \
        \(ValueMaker.text(&random).sqlLiteral), \(ValueMaker.text(&random).sqlLiteral), \
        \(random.below(1_000)), \(random.below(1_000)), \(tags(&random)), 'one\u{A}two\u{A}three') \
        ON CONFLICT(id) DO UPDATE SET tags = excluded.tags
        """
      ]
    }
    let edit =
      switch random.below(6) {
      case 0: "kept = \(ValueMaker.text(&random).sqlLiteral)"
      case 1: "sent = \(ValueMaker.text(&random).sqlLiteral)"
      case 2: "high = \(random.below(1_000))"
      case 3: "low = \(random.below(1_000))"
      case 4: "tags = \(tags(&random))"
      default: "body = \(edited(body, &random).sqlLiteral)"
      }
    return ["UPDATE sheets SET \(edit) WHERE id = '\(id)'"]
  }

  /// Returns the elements of an array in `tags`: texts without commas and quotes.
  static func elements(_ array: String) -> Set<String> {
    Set(array.dropFirst().dropLast().split(separator: ",").map(String.init))
  }

  private static func tags(_ random: inout SeededRandom) -> String {
    let tags = (0...random.below(3)).map { _ in "\"t\(random.below(12))\"" }
    return "'[\(tags.joined(separator: ","))]'"
  }

  /// Adds, changes or removes a line of a text.
  private static func edited(_ body: Value?, _ random: inout SeededRandom) -> Value {
    guard case .text(let text)? = body else { return .text("one") }
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let line = random.below(lines.count)
    switch random.below(lines.count > 12 ? 1 : 3) {
    case 0 where lines.count > 1: lines.remove(at: line)
    case 1: lines.insert("line \(random.below(1_000))", at: line)
    default: lines[line] += "."
    }
    return .text(lines.joined(separator: "\n"))
  }
}
