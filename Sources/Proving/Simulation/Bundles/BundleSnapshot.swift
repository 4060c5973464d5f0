import FerryConformance
import FerryLaboratory
import FerryProtocol
import FerrySQLite

/// Reads the state of a device's bundles from the disk as it is at this moment. It reads a copy, so
/// it never writes to the device's disk.
enum BundleSnapshot {
  private static let copy = "/look-bundles"

  /// - Parameter root: The folder of the device's missions.
  static func read(
    _ disk: SimulatedDisk, device: String, root: String
  ) throws -> [BundleEvidence] {
    guard !disk.fileNames(under: root + "/content.db").isEmpty else { return [] }
    disk.copyFiles(under: root, to: copy)
    defer { disk.removeFiles(under: copy) }
    let states = try open("content.db", on: disk)
    // The process died before the tables were made.
    guard try has("bundles", states), try has("outcomes", states) else { return [] }
    var bundles = try states.rows("SELECT name, active, confirmed FROM bundles ORDER BY name") {
      row -> BundleEvidence in
      guard let name = BundleName(row.text(0)) else {
        throw UnreadableEvidence("a bundle has no name")
      }
      return BundleEvidence(
        name, active: row.optionalText(1).flatMap { BundleVersion($0) },
        isConfirmed: row.int64(2) != 0)
    }
    for index in bundles.indices {
      bundles[index].outcomes = try states.rows(
        """
        SELECT version, failure, blocked, reported FROM outcomes WHERE name = ? ORDER BY place
        """, bundles[index].name.value
      ) { row -> BundleEvidence.Outcome in
        guard let version = BundleVersion(row.text(0)) else {
          throw UnreadableEvidence("an outcome has no version")
        }
        return BundleEvidence.Outcome(
          version, failure: row.optionalText(1), isBlocked: row.int64(2) != 0,
          isReported: row.int64(3) != 0)
      }
      guard let id = bundles[index].activeID else { continue }
      bundles[index].files = try files(of: id, disk, device: device, root: root)
    }
    return bundles
  }

  /// Returns the files of the complete version in use of a mission, by path; `nil` if there is
  /// none.
  private static func files(
    of id: BundleID, _ disk: SimulatedDisk, device: String, root: String
  ) throws -> [String: ContentHash]? {
    let missions = try open("content.db", on: disk)
    guard try has("missions", missions) else { return nil }
    let active = try missions.first(
      "SELECT version FROM missions WHERE mission = ? AND active = 1 AND complete = 1",
      id.mission.value
    ) { $0.int64(0) }
    guard let version = active,
      let stored = disk.existingFolders(of: "/" + device)
    else { return nil }
    let base = root.split(separator: "/").dropFirst().joined(separator: "/")
    let prefix = "\(base)/bundles/\(id.mission)/\(version)/"
    var found: [String: ContentHash] = [:]
    for path in stored.paths() where path.hasPrefix(prefix) {
      found[String(path.dropFirst(prefix.count))] = MissionLibrary.hash(
        stored.bytes(of: path) ?? [])
    }
    return found.isEmpty ? nil : found
  }

  private static func open(_ name: String, on disk: SimulatedDisk) throws -> SQLiteConnection {
    try SQLiteConnection(
      path: "\(copy)/\(name)", mode: .readWrite, fileSystem: disk.fileSystem)
  }

  private static func has(_ table: String, _ connection: SQLiteConnection) throws -> Bool {
    try connection.exists("SELECT 1 FROM sqlite_schema WHERE name = ?", table)
  }
}

extension BundleCatalogue {
  /// Reads the catalogue of a replica's ledger.
  static func read(
    _ connection: SQLiteConnection, shell: BundleVersion
  ) throws -> BundleCatalogue? {
    let found = try connection.first("SELECT device FROM ferry_replica") { row in
      UniqueID(bytes: row.blobBytes(0))
    }
    guard let device = found ?? nil else { return nil }
    var entries: [BundleID: Entry] = [:]
    try connection.forEach(
      """
      SELECT id, rollout, withdrawnAt IS NOT NULL, minShell FROM ferry_missions
      WHERE kind = 'bundle'
      """
    ) { row in
      guard let mission = MissionID(row.text(0)), let id = BundleID(mission: mission) else {
        return
      }
      entries[id] = Entry(
        share: BundleShare(hundredths: row.int64(1)) ?? .none, isWithdrawn: row.int64(2) != 0,
        minShell: row.optionalText(3).flatMap { BundleVersion($0) })
    }
    return BundleCatalogue(device: DeviceID(device), shell: shell, entries: entries)
  }
}
