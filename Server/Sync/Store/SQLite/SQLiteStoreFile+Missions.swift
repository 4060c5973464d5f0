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
    try rows(MissionQueries.count, [.integer(space), .integer(Int64(MissionChange.countMax))]) {
      Int(try $0.integer(0))
    }[0]
  }

  // MARK: Changes

  func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64, random: UInt64,
    by mark: AuditMark? = nil
  ) throws -> Result<MissionRecord, Problem> {
    try change(space) {
      let decision = try MissionChange.publish(
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
      try saveBlobs(blobs, of: record.id.value, in: space, ended: nil)
      try endBlobs(of: record.id.value, besides: Set(blobs.map(\.hash)), in: space, now: now)
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

  func storeUpload(_ blob: MissionBlob, in space: Int64, now: Int64) throws {
    try connection.transaction { try saveBlobs([blob], of: "", in: space, ended: now) }
  }

  private func saveBlobs(
    _ blobs: [MissionBlob], of mission: String, in space: Int64, ended: Int64?
  ) throws {
    let insert = try connection.statement(
      """
      INSERT INTO mission_blobs(space, mission, sha256, size, ended) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT(space, mission, sha256) DO UPDATE SET ended = excluded.ended
        WHERE ended IS NOT excluded.ended
      """)
    for blob in blobs { try insert.run(space, mission, blob.hash.bytes, blob.size, ended) }
  }

  /// Ends the use of content that the version in force does not name any more. Rows that stay are not
  /// written: versions of a large mission differ in few files.
  private func endBlobs(
    of mission: String, besides kept: Set<ContentHash>, in space: Int64, now: Int64
  ) throws {
    let dropped = try connection.rows(
      "SELECT sha256 FROM mission_blobs WHERE space = ? AND mission = ? AND ended IS NULL", space,
      mission
    ) { ContentHash($0.blob(0)) }.compactMap { $0 }.filter { !kept.contains($0) }
    let end = try connection.statement(
      "UPDATE mission_blobs SET ended = ? WHERE space = ? AND mission = ? AND sha256 = ?")
    for hash in dropped { try end.run(now, space, mission, hash.bytes) }
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

  // MARK: Slices

  /// Forgets some of the reports about a version of a bundle. Returns their number.
  func forgetReports(of id: MissionID, in space: Int64, upTo limit: Int) throws -> Int {
    try connection.transaction {
      try BundleReports(space: space).forget(id, upTo: limit, on: self)
    }
  }

  /// Forgets the content that only former versions name, among some of a mission's content.
  ///
  /// - Parameter place: The content after which these entries begin.
  /// - Returns: The last of them; `nil` at the end.
  func endFormerBlobs(
    of id: MissionID, in space: Int64, after place: [UInt8], upTo limit: Int
  ) throws -> [UInt8]? {
    try connection.transaction {
      let found = try connection.rows(
        """
        SELECT sha256, ended IS NULL FROM mission_blobs
        WHERE space = ? AND mission = ? AND sha256 > ? ORDER BY sha256 LIMIT ?
        """, space, id.value, place, limit
      ) { (hash: $0.blob(0), isInForce: $0.int64(1) != 0) }
      let forget = try connection.statement(
        "DELETE FROM mission_blobs WHERE space = ? AND mission = ? AND sha256 = ?")
      for blob in found where !blob.isInForce { try forget.run(space, id.value, blob.hash) }
      return found.count < limit ? nil : found.last?.hash
    }
  }

  /// Forgets some of the content whose use ended before `moment`. Returns the number of entries.
  func endBlobs(before moment: Int64, upTo limit: Int) throws -> Int {
    try connection.transaction {
      let ended = try connection.rows(
        """
        SELECT space, mission, sha256 FROM mission_blobs WHERE ended < ? ORDER BY ended LIMIT ?
        """, moment, limit
      ) { (space: $0.int64(0), mission: $0.text(1), hash: $0.blob(2)) }
      let forget = try connection.statement(
        "DELETE FROM mission_blobs WHERE space = ? AND mission = ? AND sha256 = ?")
      for blob in ended { try forget.run(blob.space, blob.mission, blob.hash) }
      return ended.count
    }
  }
}
