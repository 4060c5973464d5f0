import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  func mission(_ id: MissionID, in space: Int64) throws -> StoredMission? {
    try connection.transaction(.deferred) {
      let last = try lastVersion(of: id, in: space)
      guard last > 0 else { return nil }
      let state = try record(MissionChange.key(id), in: space)
      return StoredMission(lastVersion: last, record: MissionRecord(id, stored: state))
    }
  }

  private func lastVersion(of id: MissionID, in space: Int64) throws -> Int64 {
    try connection.first(
      "SELECT version FROM missions WHERE space = ? AND mission = ?", space, id.value
    ) { $0.int64(0) } ?? 0
  }

  /// Returns the number of missions in force, up to the limit.
  private func missionCount(in space: Int64) throws -> Int {
    try connection.first(
      """
      SELECT count(*) FROM (
        SELECT 1 FROM records WHERE space = ? AND tbl = ? AND NOT dead LIMIT ?)
      """, space, MissionRecord.table, MissionChange.countMax
    ) { Int($0.int64(0)) } ?? 0
  }

  // MARK: Changes

  func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64, random: UInt64,
    by mark: AuditMark? = nil
  ) throws -> Result<MissionRecord, Problem> {
    try change(space) {
      let decision = MissionChange.publish(
        record, last: try lastVersion(of: record.id, in: space),
        stored: try self.record(MissionChange.key(record.id), in: space),
        count: try missionCount(in: space), in: try spaceState(space), now: now, random: random)
      guard case .success(let change) = decision, !change.effects.isEmpty else {
        return decision.map(\.record)
      }
      try save(change.effects, in: space, now: now)
      try connection.run(
        """
        INSERT INTO missions(space, mission, version) VALUES (?, ?, ?)
        ON CONFLICT(space, mission) DO UPDATE SET version = excluded.version
        """, space, record.id.value, record.version)
      try connection.run(
        "UPDATE mission_blobs SET ended = ? WHERE space = ? AND mission = ? AND ended IS NULL", now,
        space, record.id.value)
      try saveBlobs(blobs, of: record.id.value, in: space, ended: nil)
      try append(mark, .missionPublished, of: space, "\(record.id) version \(record.version)")
      return .success(change.record)
    }
  }

  func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, random: UInt64, by mark: AuditMark? = nil
  ) throws -> Bool {
    try change(space) {
      let effects = MissionChange.retract(
        id, stored: try record(MissionChange.key(id), in: space), in: try spaceState(space),
        now: now, random: random)
      try save(effects, in: space, now: now)
      try connection.run(
        "DELETE FROM mission_blobs WHERE space = ? AND mission = ?", space, id.value)
      for statement in BundleReports.forget {
        try run(statement, [.integer(space), .text(id.value)])
      }
      if !effects.isEmpty { try append(mark, .missionRetracted, of: space, id.value) }
      return !effects.isEmpty
    }
  }

  func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, random: UInt64,
    by mark: AuditMark? = nil
  ) throws -> Result<MissionRecord, Problem> {
    try self.change(space) {
      let decision = MissionChange.change(
        id, by: change, stored: try record(MissionChange.key(id.mission), in: space),
        in: try spaceState(space), now: now, random: random)
      guard case .success(let made) = decision, !made.effects.isEmpty else {
        return decision.map(\.record)
      }
      try save(made.effects, in: space, now: now)
      try append(mark, change.action, of: space, change.detail(of: id))
      return .success(made.record)
    }
  }

  // MARK: Content

  func noteUpload(_ blob: MissionBlob, in space: Int64, now: Int64) throws {
    try connection.transaction { try saveBlobs([blob], of: "", in: space, ended: now) }
  }

  private func saveBlobs(
    _ blobs: [MissionBlob], of mission: String, in space: Int64, ended: Int64?
  ) throws {
    let insert = try connection.statement(
      """
      INSERT INTO mission_blobs(space, mission, sha256, size, ended) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT(space, mission, sha256) DO UPDATE SET ended = excluded.ended
      """)
    for blob in blobs { try insert.run(space, mission, blob.hash.bytes, blob.size, ended) }
  }

  func heldBlobs(among hashes: [ContentHash], in space: Int64) throws -> [MissionBlob] {
    let find = try connection.statement(
      "SELECT size FROM mission_blobs WHERE sha256 = ? AND space = ? LIMIT 1")
    return try hashes.sorted().compactMap { hash in
      try find.first(hash.bytes, space) { MissionBlob(hash: hash, size: $0.int64(0)) }
    }
  }

  func neededBlobs(among hashes: [ContentHash]) throws -> [ContentHash] {
    let find = try connection.statement("SELECT 1 FROM mission_blobs WHERE sha256 = ? LIMIT 1")
    return try hashes.sorted().filter { try find.exists($0.bytes) }
  }
}
