import FerryLaboratory
import FerrySQLite

// Mistakes of a device's missions and bundles, in the files of their rows.
extension PlantedFault {
  /// Plants the mistake in a mission store's file.
  func plant(inMissionsOn connection: SQLiteConnection) throws {
    guard self == .missionInUseEarly else { return }
    try connection.execute(
      """
      CREATE TRIGGER IF NOT EXISTS planted AFTER INSERT ON files WHEN NEW.place = 0 BEGIN
        UPDATE missions SET active = 0 WHERE mission = NEW.mission;
        UPDATE missions SET state = 'done', complete = 1, active = 1,
          activation = (SELECT coalesce(max(activation), 0) + 1 FROM missions)
        WHERE mission = NEW.mission AND version = NEW.version;
      END
      """)
  }

  /// Plants the mistake in the file of bundles' states, when a process has opened it.
  func plant(inBundlesAt path: String, on disk: SimulatedDisk) throws {
    guard self == .failureForgotten else { return }
    let connection = try SQLiteConnection(path: path, fileSystem: disk.fileSystem)
    try connection.execute("UPDATE outcomes SET blocked = 0")
  }
}
