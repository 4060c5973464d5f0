import FerryConformance
import FerryPersistence

extension Workload {
  /// The upgrades as an application makes them, and two more for migrators only. The space keeps
  /// the names of a table and of its column, and a table is created again.
  static let steps: Migrator = {
    var migrator = Migrator()
    for (index, upgrade) in upgrades.enumerated() {
      migrator.add("upgrade \(index + 1)") { try $0.execute(upgrade) }
    }
    migrator.add("beats are pulses") {
      try $0.renameColumn("n", of: "beats", to: "strokes")
      try $0.renameTable("beats", to: "pulses")
    }
    migrator.add("places have their seats first") {
      try $0.execute(
        """
        CREATE TABLE places_next(id TEXT PRIMARY KEY NOT NULL, seats, name TEXT);
        INSERT INTO places_next SELECT id, seats, name FROM places;
        DROP TABLE places;
        ALTER TABLE places_next RENAME TO places;
        """)
    }
    return migrator
  }()

  /// The last step of an application with a recorded one: its writes are edits of the user, deletes
  /// too.
  static let recordedStep = "poor notes are tagged"
  private static let recordedWrites = [
    "UPDATE notes SET tag = 'poor' WHERE stars < 3",
    "DELETE FROM notes WHERE stars = 0",
    "UPDATE items SET done = 1 WHERE weight > 8",
  ]

  /// Returns the number of the application's steps.
  static func stepCount(isRecorded: Bool) -> Int { steps.steps.count + (isRecorded ? 1 : 0) }

  /// Returns a migrator of the first steps: a version of the application.
  ///
  /// - Parameter record: makes the writes of the recorded step.
  static func steps(
    upTo count: Int, record: @escaping @Sendable (Database, [String]) throws -> Void
  ) -> Migrator {
    var migrator = Migrator()
    for step in steps.steps.prefix(count) { migrator.add(step) }
    if count > steps.steps.count {
      migrator.add(recordedStep, recorded: true) { try record($0, recordedWrites) }
    }
    return migrator
  }
}
