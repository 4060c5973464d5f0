// Mistakes of the server's store, as triggers in the store's file.
extension PlantedFault {
  /// The statements to plant the mistake in the embedded store's file.
  var serverStatements: [String] {
    switch self {
    case .clampedBelowSeen:
      [
        """
        CREATE TRIGGER IF NOT EXISTS planted AFTER UPDATE OF clock ON spaces WHEN NEW.clock <> 0
        BEGIN UPDATE spaces SET clock = 0 WHERE id = NEW.id; END
        """
      ]
    case .conflictNotRecorded:
      [
        """
        CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON operations
        WHEN json_type(NEW.outcome) = 'object' BEGIN
          UPDATE operations SET outcome = json_set(outcome, '$.conflicts', json('[]'))
          WHERE space = NEW.space AND id = NEW.id;
        END
        """
      ]
    case .effectsNamedAlike:
      // An effect's identifier is a UUID of version 8, with the batch's time at the beginning.
      [
        """
        CREATE TABLE IF NOT EXISTS planted_effects(
          batch TEXT NOT NULL, record TEXT NOT NULL, id BLOB NOT NULL, PRIMARY KEY(batch, record))
        """,
        """
        CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON operations
        WHEN substr(hex(NEW.id), 13, 1) = '8' BEGIN
          UPDATE OR IGNORE operations SET id = (SELECT id FROM planted_effects
            WHERE batch = substr(hex(NEW.id), 1, 12) AND record = NEW.record)
          WHERE space = NEW.space AND id = NEW.id AND EXISTS (SELECT 1 FROM planted_effects
            WHERE batch = substr(hex(NEW.id), 1, 12) AND record = NEW.record);
          INSERT OR IGNORE INTO planted_effects
          VALUES (substr(hex(NEW.id), 1, 12), NEW.record, NEW.id);
        END
        """,
      ]
    case .reportsUnordered:
      ["INSERT", "UPDATE OF number"].map { change in
        """
        CREATE TRIGGER IF NOT EXISTS "planted \(change)" AFTER \(change) ON bundle_reports
        WHEN NEW.number <> 0 BEGIN
          UPDATE bundle_reports SET number = 0
          WHERE space = NEW.space AND mission = NEW.mission AND device = NEW.device;
        END
        """
      }
    default: []
    }
  }
}
