import FerryProtocol

/// The rules of a company's tables, unknown to devices: the database refuses some of their rows, and
/// changes others.
package enum CompanyRules {
  /// The name of the condition of notes. PostgreSQL names it in the reason.
  package static let condition = "notes_stars_rule"
  /// The column that developers of simulated companies add and drop.
  private static let addedColumn: Name = "remark"
  /// All columns that developers add and drop, with those of the shop's migrations in
  /// Examples/Backend. The mirror publishes them, and devices do not have them.
  static let addedColumns: Set<Name> = [addedColumn, "priority", "channel", "moderated"]
  /// The SQL of whether a value kept by a device is of another column.
  static let isNotAdded = addedColumns.sorted().map { "instr(state, '\"\($0)\"') = 0" }
    .joined(separator: " AND ")
  /// The beginning of labels refused by the trigger below.
  private static let refusedLabel = "tickets"
  private static let refusedStars: Int64 = 5

  /// Returns a number of stars permitted by the condition.
  package static func stars(_ random: inout SeededRandom) -> Value {
    .integer(Int64(random.below(Int(refusedStars))))
  }

  static let statements = [
    "ALTER TABLE notes ADD CONSTRAINT \(condition) CHECK (stars IS DISTINCT FROM \(refusedStars))",
    """
    CREATE FUNCTION refuse_items() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.label LIKE 'tickets%' THEN RAISE EXCEPTION 'no tickets here'; END IF;
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON items
      FOR EACH ROW EXECUTE FUNCTION refuse_items()
    """,
    // The second time, it changes nothing: two companies may have the same rule.
    """
    CREATE FUNCTION normalise_lists() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      NEW.name := upper(NEW.name);
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER normalise BEFORE INSERT OR UPDATE ON lists
      FOR EACH ROW EXECUTE FUNCTION normalise_lists()
    """,
  ]

  /// Returns the statements of developers before a program's transaction, and within it: now and then,
  /// they add a column unknown to devices with values, or drop it.
  package static func redefinitions(for planned: PlannedAction) -> [String] {
    var random = SeededRandom(planned.seed, "definition")
    guard random.chance(1, in: 8) else { return [] }
    let table = ["notes", "ledger"][random.below(2)]
    guard random.chance(1, in: 2) else {
      return ["ALTER TABLE \(table) DROP COLUMN IF EXISTS \(addedColumn)"]
    }
    let value = ValueMaker.text(&random).sqlLiteral
    return [
      "ALTER TABLE \(table) ADD COLUMN IF NOT EXISTS \(addedColumn) text",
      "UPDATE \(table) SET \(addedColumn) = \(value) WHERE id = (SELECT min(id) FROM \(table))",
    ]
  }

  /// Returns whether a company's tables refuse a record of the space.
  static func refuses(_ key: RecordKey, _ record: RecordState) -> Bool {
    guard record.isAlive else { return false }
    func value(_ name: Name) -> Value? { record.columns.first { $0.name == name }?.value }
    switch key.table {
    case "notes": return value("stars") == .integer(refusedStars)
    case "items":
      guard case .text(let label)? = value("label") else { return false }
      return label.utf8.starts(with: refusedLabel.utf8)
    default: return false
    }
  }
}
