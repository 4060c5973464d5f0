import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  /// The most pages freed by one call.
  private static let reclaimedPages: Int64 = 1_000

  func prune(_ slice: PruneSlice, of space: Int64) throws -> PruneStep {
    try connection.transaction {
      var work = PruneWork(
        slice, retentionHorizon: try retentionHorizon(of: space),
        first: slice.after == nil ? try firstOperation(in: space) : nil)
      if !work.operations.isEmpty {
        work.rows.operations = try delete(
          "operations WHERE space = ?1 AND sequence >= ?2 AND sequence < ?3", space,
          work.operations.lowerBound, work.operations.upperBound)
      }
      if work.room > 0 {
        work.rows.tombstones = try delete(
          """
          record_rows WHERE rowid IN (SELECT rowid FROM record_rows
            WHERE space = ?1 AND sequence <= ?2 AND dead ORDER BY sequence LIMIT ?3)
          """, space, try tombstoneHorizon(of: space), work.room)
        work.rows.notices = try delete(
          """
          notices WHERE (space, device, sequence) IN (SELECT space, device, sequence FROM notices
            WHERE space = ?1 AND sequence <= ?2 ORDER BY sequence LIMIT ?3)
          """, space, work.retentionHorizon, work.room)
      }
      if work.reachesDevices { work.rows.buffered = try pruneBuffered(slice, of: space) }
      if work.forgetsDevices { work.rows.devices = try pruneDevices(slice, of: space) }
      return work.step
    }
  }

  private func pruneBuffered(_ slice: PruneSlice, of space: Int64) throws -> Int {
    try connection.run(
      """
      WITH old AS (SELECT \(Principal.accountSQL(of: "d.principal")) AS name, p.bytes
        FROM (SELECT device, bytes FROM buffered WHERE space = ?1 AND arrived_at <= ?2
          ORDER BY rowid LIMIT ?3) AS p
        JOIN devices AS d ON d.space = ?1 AND d.device = p.device)
      UPDATE usage SET packets = max(0, packets - gone.count),
        packet_bytes = max(0, packet_bytes - gone.bytes)
      FROM (SELECT name, count(*) AS count, sum(bytes) AS bytes FROM old GROUP BY name
        UNION ALL SELECT '', count(*), sum(bytes) FROM old HAVING count(*) > 0) AS gone
      WHERE space = ?1 AND principal = gone.name
      """, space, slice.bufferedBefore, PruneWork.bufferedRows)
    return try delete(
      """
      buffered WHERE rowid IN (SELECT rowid FROM buffered
        WHERE space = ?1 AND arrived_at <= ?2 ORDER BY rowid LIMIT ?3)
      """, space, slice.bufferedBefore, Int64(PruneWork.bufferedRows))
  }

  /// Forgets devices not seen for very long, and trims the chains of those not seen for long.
  private func pruneDevices(_ slice: PruneSlice, of space: Int64) throws -> Int {
    let old = """
      SELECT device FROM devices AS d WHERE space = ?1 AND seen_at <= ?2 AND NOT EXISTS (
        SELECT 1 FROM buffered AS p WHERE p.space = ?1 AND p.device = d.device)
      ORDER BY device LIMIT ?3
      """
    let room = Int64(PruneWork.deviceRows)
    try connection.run(
      """
      WITH old AS (SELECT \(Principal.accountSQL(of: "principal")) AS name
        FROM devices WHERE space = ?1 AND device IN (\(old)))
      UPDATE usage SET devices = max(0, devices - gone.count)
      FROM (SELECT name, count(*) AS count FROM old GROUP BY name
        UNION ALL SELECT '', count(*) FROM old HAVING count(*) > 0) AS gone
      WHERE space = ?1 AND principal = gone.name
      """, space, slice.devicesBefore, room)
    let forgotten = try delete(
      "devices WHERE space = ?1 AND device IN (\(old))", space, slice.devicesBefore, room)
    let trimmed = try connection.run(
      """
      UPDATE devices SET trimmed = 1, recent = substr(recent, -?4)
      WHERE space = ?1 AND device IN (SELECT device FROM devices
        WHERE space = ?1 AND seen_at <= ?2 AND length(recent) > ?4 ORDER BY device LIMIT ?3)
      """, space, slice.chainsBefore, room, Int64(DeviceChain.trimmedCount * 16))
    return forgotten + trimmed
  }

  private func retentionHorizon(of space: Int64) throws -> SequenceNumber {
    try connection.first("SELECT retention_horizon FROM spaces WHERE id = ?", space) { $0.int64(0) }
      ?? 0
  }

  /// Returns the place up to which tombstones may go: a replacing row remains until the replaced
  /// one is gone.
  private func tombstoneHorizon(of space: Int64) throws -> SequenceNumber {
    try connection.first(
      "SELECT min(retention_horizon, coalesce(overlap, retention_horizon)) FROM spaces WHERE id = ?",
      space
    ) { $0.int64(0) } ?? 0
  }

  private func firstOperation(in space: Int64) throws -> SequenceNumber? {
    try connection.first("SELECT min(sequence) FROM operations WHERE space = ?", space) {
      $0.optionalInt64(0)
    } ?? nil
  }

  private func delete(
    _ rows: String, _ space: Int64, _ second: Int64, _ third: Int64
  ) throws -> Int {
    try connection.run("DELETE FROM \(rows)", space, second, third)
  }

  // MARK: Room

  /// Cuts free pages off the file while they are more than a quarter of it; fewer pages are soon
  /// used again.
  func reclaim() throws -> ReclaimStep {
    let free = try pragma("freelist_count")
    guard free > Self.reclaimedPages, free > (try pragma("page_count")) / 4 else { return .done }
    try connection.execute("PRAGMA incremental_vacuum(\(Self.reclaimedPages))")
    return try pragma("freelist_count") < free ? .more : .done
  }

  private func pragma(_ name: String) throws -> Int64 {
    try connection.prepare("PRAGMA \(name)").first { $0.int64(0) } ?? 0
  }
}
