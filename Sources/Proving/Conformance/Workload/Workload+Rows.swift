import FerryProtocol

// Rows with moving unique values, and growing rows.
extension Workload {
  /// Bytes of a text to make an essay grow: five fit into a row of a world, and six do not.
  private static let essayText = 4_000

  /// Puts a slot on a shelf, removes one, or moves the places of several. Most shelves are a
  /// device's own; all devices contend for one.
  static func arrange(
    _ deviceName: String, _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let shelf = Value.text(random.chance(3, in: 4) ? deviceName : "shared").sqlLiteral
    let slots = try query("SELECT id, place FROM slots WHERE shelf = \(shelf) ORDER BY place")
      .compactMap { row -> (id: String, place: Int64)? in
        guard case .text(let id)? = row.first, case .integer(let place)? = row.last else {
          return nil
        }
        return (id, place)
      }
    guard let first = slots.first, let last = slots.last, slots.count > 1 else {
      return [addSlot(to: shelf, at: (slots.last?.place ?? -1) + 1, &random)]
    }
    let (one, other) = (slots[random.below(slots.count)], slots[random.below(slots.count)])
    switch random.below(6) {
    case 0 where last.place < 900: return [addSlot(to: shelf, at: last.place + 1, &random)]
    case 1 where last.place < 900:
      return shift(shelf, from: one.place, by: 1) + [addSlot(to: shelf, at: one.place, &random)]
    case 2: return ["DELETE FROM slots WHERE id = '\(one.id)'"]
    case 3:
      return [move(first.id, to: 1_999)] + shift(shelf, from: first.place + 1, by: -1)
        + [move(first.id, to: last.place)]
    default:
      return [
        move(one.id, to: 1_999), move(other.id, to: one.place), move(one.id, to: other.place),
      ]
    }
  }

  static func addSlot(
    to shelf: String, at place: Int64, _ random: inout SeededRandom
  ) -> String {
    let id = fresh("s-", &random)
    return "INSERT INTO slots(id, shelf, place) VALUES ('\(id)', \(shelf), \(place))"
  }

  private static func move(_ id: String, to place: Int64) -> String {
    "UPDATE slots SET place = \(place) WHERE id = '\(id)'"
  }

  /// Moves slots by way of free places: SQLite checks each row as it is changed.
  private static func shift(_ shelf: String, from place: Int64, by step: Int64) -> [String] {
    let update = "UPDATE slots SET place = place"
    let here = "WHERE shelf = \(shelf) AND place BETWEEN"
    return [
      "\(update) + 950 \(here) \(place) AND 949",
      "\(update) - \(950 - step) \(here) 950 AND 1998",
    ]
  }

  /// Creates an essay, or makes one grow. Separated devices fill the same essays.
  static func grow(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let columns = ["a", "b", "c", "d", "e", "f"]
    func text(_ column: String) -> String {
      let letter = String(UnicodeScalar(UInt8(97 + random.below(26))))
      return "\(column) = '\(String(repeating: letter, count: essayText))'"
    }
    let essays = try records("essays", query)
    if essays.isEmpty || random.chance(1, in: 6) {
      guard let list = try pick("lists", &random, query) else { return [] }
      let id = fresh("d-", &random)
      return [
        "INSERT INTO essays(id, list) SELECT '\(id)', id FROM lists WHERE id = '\(list)'",
        "UPDATE essays SET \(text("a")), \(text("b")) WHERE id = '\(id)'",
        "UPDATE essays SET \(text("c")), \(text("d")) WHERE id = '\(id)'",
      ]
    }
    let id = pick(from: essays, &random)
    if random.chance(1, in: 8) { return ["DELETE FROM essays WHERE id = '\(id)'"] }
    return ["UPDATE essays SET \(text(columns[random.below(columns.count)])) WHERE id = '\(id)'"]
  }
}
