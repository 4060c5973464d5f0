import FerryProtocol

// Tables with triggers of the user that write to other tracked tables. Only the device that made a
// box deletes it, or puts chips into it.
extension Workload {
  /// The tracked tables: boxes of chips, the number of each device's chips, and a log of deleted
  /// chips. Triggers alone write to the last two, after a device's first row of `stacks`.
  package static let stacked: [Name] = ["boxes", "chips", "stacks", "trail"]

  /// Makes the tables and the triggers.
  package static let stackSchema = [
    "CREATE TABLE boxes(id TEXT PRIMARY KEY NOT NULL, maker TEXT)",
    """
    CREATE TABLE chips(id TEXT PRIMARY KEY NOT NULL,
      box TEXT REFERENCES boxes(id) ON DELETE CASCADE, maker TEXT)
    """,
    "CREATE TABLE stacks(id TEXT PRIMARY KEY NOT NULL, chips INTEGER)",
    "CREATE TABLE trail(id TEXT PRIMARY KEY NOT NULL, deletes INTEGER)",
    """
    CREATE TRIGGER chip_made AFTER INSERT ON chips BEGIN
      UPDATE stacks SET chips = chips + 1 WHERE id = NEW.maker;
    END
    """,
    """
    CREATE TRIGGER chip_gone AFTER DELETE ON chips BEGIN
      UPDATE stacks SET chips = chips - 1 WHERE id = OLD.maker;
      INSERT INTO trail VALUES (OLD.id, 1) ON CONFLICT(id) DO UPDATE SET deletes = deletes + 1;
    END
    """,
  ]

  /// Makes a box with chips, puts a chip into a box, or deletes chips or a box.
  static func stack(
    _ deviceName: String, _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let maker = Value.text(deviceName).sqlLiteral
    let stack = "INSERT INTO stacks(id, chips) VALUES (\(maker), 0) ON CONFLICT(id) DO NOTHING"
    let boxes = try records("boxes WHERE maker = \(maker)", query)
    let chips = try records("chips WHERE maker = \(maker)", query)
    guard !boxes.isEmpty, !random.chance(1, in: 6) else {
      let box = fresh("x-", &random)
      return [stack, "INSERT INTO boxes(id, maker) VALUES ('\(box)', \(maker))"]
        + (0..<3).map { _ in chip(in: box, maker, &random) }
    }
    let box = pick(from: boxes, &random)
    switch random.below(6) {
    case 0: return [delete("boxes", box)]
    case 1, 2: return [stack, chip(in: box, maker, &random)]
    default:
      guard !chips.isEmpty else { return [stack, chip(in: box, maker, &random)] }
      return [delete("chips", pick(from: chips, &random))]
    }
  }

  private static func chip(
    in box: String, _ maker: String, _ random: inout SeededRandom
  ) -> String {
    // The box may have gone since it was chosen.
    "INSERT INTO chips(id, box, maker) SELECT '\(fresh("c-", &random))', id, \(maker) FROM boxes "
      + "WHERE id = '\(box)'"
  }
}
