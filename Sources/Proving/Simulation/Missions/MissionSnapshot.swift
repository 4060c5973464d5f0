import FerryConformance
import FerryLaboratory
import FerryProtocol
import FerrySQLite

/// Reads a device's mission data from the disk as it is at this moment. It reads a copy, so it
/// never writes to the device's disk.
enum MissionSnapshot {
  private static let folders: Set<Substring> = ["objects", "partial", "bundles", "locks"]

  /// - Parameter withObjects: Whether all content is hashed as well.
  static func read(
    _ disk: SimulatedDisk, device: String, root: String, withObjects: Bool = false
  ) throws -> MissionEvidence {
    var evidence = MissionEvidence()
    guard let stored = disk.existingFolders(of: "/" + device) else { return evidence }
    let names = try readRows(disk, root, &evidence)
    let base = root.split(separator: "/").dropFirst().joined(separator: "/") + "/"
    let files = stored.paths()
    evidence.strays = stored.strays
    for path in files {
      let folder = path.dropFirst(base.count).split(separator: "/").first
      if !path.hasPrefix(base) || !(folder.map(folders.contains) ?? false) {
        evidence.strays.append(path)
      }
      if folder == "objects" || folder == "partial", let hash = contentHash(path) {
        evidence.stored.insert(hash)
      }
    }
    for index in evidence.versions.indices where evidence.versions[index].isComplete {
      let prefix = "\(base)bundles/\(evidence.versions[index].mission)/\(names[index])/"
      var found: [String: ContentHash] = [:]
      for path in files where path.hasPrefix(prefix) {
        found[String(path.dropFirst(prefix.count))] = hash(stored, path)
      }
      evidence.versions[index].files = found.isEmpty ? nil : found
    }
    guard withObjects else { return evidence }
    for path in files where path.hasPrefix(base + "objects/") {
      let name = path.split(separator: "/").last.map(String.init) ?? ""
      evidence.objects.append((name, hash(stored, path)))
    }
    return evidence
  }

  /// Returns the hash that names a file of content.
  private static func contentHash(_ path: String) -> ContentHash? {
    path.split(separator: "/").last.flatMap { ContentHash($0) }
  }

  private static func hash(_ stored: SimulatedFolders, _ path: String) -> ContentHash {
    MissionLibrary.hash(stored.bytes(of: path) ?? [])
  }

  /// Returns the device's name of each version, which is mostly the version's number.
  private static func readRows(
    _ disk: SimulatedDisk, _ root: String, _ evidence: inout MissionEvidence
  ) throws -> [Int64] {
    let copy = "/look"
    guard !disk.fileNames(under: root).isEmpty else { return [] }
    disk.copyFiles(under: root, to: copy)
    defer { disk.removeFiles(under: copy) }
    let connection = try SQLiteConnection(
      path: copy + "/content.db", mode: .readWrite, fileSystem: disk.fileSystem)
    let tables = try connection.first(
      "SELECT count(*) FROM sqlite_schema WHERE name IN ('missions', 'files')"
    ) { $0.int64(0) }
    // The process died before the tables were made.
    guard tables == 2 else { return [] }
    var names: [Int64] = []
    evidence.versions = try connection.rows(
      """
      SELECT mission, coalesce(published, version), complete, active, version FROM missions
      ORDER BY mission, version
      """
    ) { row in
      guard let mission = MissionID(row.text(0)) else {
        throw UnreadableEvidence("a mission has no name")
      }
      names.append(row.int64(4))
      return MissionEvidence.Version(
        mission: mission, version: row.int64(1), isComplete: row.int64(2) != 0,
        isActive: row.int64(3) != 0, files: nil)
    }
    try connection.forEach("SELECT DISTINCT hash, mission FROM files") { row in
      guard let hash = ContentHash(row.blob(0)), let mission = MissionID(row.text(1)) else {
        return
      }
      evidence.owners[hash, default: []].insert(mission)
    }
    return names
  }
}
