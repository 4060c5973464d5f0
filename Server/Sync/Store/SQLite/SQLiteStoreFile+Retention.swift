import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  /// Buffered packets that one slice deletes at most: each may have 8 MiB.
  private static let bufferedRows = 50
  /// Rows of devices that one slice changes at most.
  private static let deviceRows = 1_000
  /// Pages that one call frees at most.
  private static let reclaimedPages: Int64 = 1_000

  func setRetention(_ retention: Retention, of space: Int64, by mark: AuditMark? = nil) throws {
    try connection.transaction {
      try connection.run(
        "UPDATE spaces SET retention = ? WHERE id = ?", retention.milliseconds, space)
      try append(mark, .retentionSet, of: space, retention.detail)
    }
  }

  // MARK: Retention horizon

  func raiseRetentionHorizon(of space: Int64, _ request: HorizonRequest) throws -> RaisedHorizon {
    try connection.transaction {
      let state = try horizonState(of: space, request)
      if let mark = state.dueMark(request) {
        try connection.run("INSERT INTO head_times VALUES (?, ?, ?)", space, mark.sequence, mark.at)
      }
      let retentionHorizon = state.raised(request)
      if retentionHorizon > state.retentionHorizon {
        try connection.run(
          "UPDATE spaces SET retention_horizon = ? WHERE id = ?", retentionHorizon, space)
        try connection.run(
          "DELETE FROM head_times WHERE space = ? AND sequence < ?", space, retentionHorizon)
      }
      let at = request.olderThan == 0 ? request.now : state.oldEnough?.at
      return RaisedHorizon(
        retentionHorizon: retentionHorizon, head: state.head, at: retentionHorizon > 0 ? at : nil)
    }
  }

  private func horizonState(of space: Int64, _ request: HorizonRequest) throws -> HorizonState {
    let found = try connection.first(
      "SELECT head, retention_horizon FROM spaces WHERE id = ?", space
    ) {
      ($0.int64(0), $0.int64(1))
    }
    guard let (head, retentionHorizon) = found else {
      throw StoreError.failed("the space does not exist any more")
    }
    return HorizonState(
      head: head, retentionHorizon: retentionHorizon,
      newest: try newestMark(of: space, before: .max),
      oldEnough: try newestMark(of: space, before: request.cutoff))
  }

  private func newestMark(of space: Int64, before cutoff: Int64) throws -> HeadTime? {
    try connection.first(
      """
      SELECT sequence, at FROM head_times WHERE space = ? AND at <= ?
      ORDER BY sequence DESC LIMIT 1
      """, space, cutoff
    ) { HeadTime(sequence: $0.int64(0), at: $0.int64(1)) }
  }

  // MARK: Slices

  func prune(_ slice: PruneSlice, of space: Int64) throws -> PruneStep {
    try connection.transaction {
      let retentionHorizon = try retentionHorizon(of: space)
      var rows = PrunedRows()
      // The operation at the retention horizon stays: cursors at the horizon are checked against
      // it.
      let last = retentionHorizon - 1
      let start = try slice.after ?? firstOperation(in: space).map { $0 - 1 } ?? last
      let reached = min(last, start + SequenceNumber(slice.rows))
      if reached > start {
        rows.operations = try delete(
          "operations WHERE space = ?1 AND sequence > ?2 AND sequence <= ?3", space, start, reached)
      }
      let room = slice.rows - rows.operations
      if reached >= last, room > 0 {
        rows.tombstones = try delete(
          """
          records WHERE rowid IN (SELECT rowid FROM records
            WHERE space = ?1 AND sequence <= ?2 AND dead ORDER BY sequence LIMIT ?3)
          """, space, retentionHorizon, Int64(room))
        rows.notices = try delete(
          """
          notices WHERE (space, device, sequence) IN (SELECT space, device, sequence FROM notices
            WHERE space = ?1 AND sequence <= ?2 ORDER BY sequence LIMIT ?3)
          """, space, retentionHorizon, Int64(room - rows.tombstones))
      }
      guard reached >= last, rows.count == 0 else {
        return .pruned(rows, reached: reached, isLast: false)
      }
      rows.buffered = try pruneBuffered(slice, of: space)
      if retentionHorizon > 0 { rows.devices = try pruneDevices(slice, of: space) }
      return .pruned(
        rows, reached: reached,
        isLast: rows.buffered < Self.bufferedRows && rows.devices < Self.deviceRows / 2)
    }
  }

  private func pruneBuffered(_ slice: PruneSlice, of space: Int64) throws -> Int {
    try connection.run(
      """
      UPDATE usage SET packets = max(0, packets - gone.count),
        packet_bytes = max(0, packet_bytes - gone.bytes)
      FROM (SELECT d.principal AS name, count(*) AS count, sum(p.bytes) AS bytes
        FROM (SELECT device, bytes FROM buffered WHERE space = ?1 AND arrived_at <= ?2
          ORDER BY rowid LIMIT ?3) AS p
        JOIN devices AS d ON d.space = ?1 AND d.device = p.device GROUP BY d.principal) AS gone
      WHERE space = ?1 AND principal = gone.name
      """, space, slice.bufferedBefore, Int64(Self.bufferedRows))
    return try delete(
      """
      buffered WHERE rowid IN (SELECT rowid FROM buffered
        WHERE space = ?1 AND arrived_at <= ?2 ORDER BY rowid LIMIT ?3)
      """, space, slice.bufferedBefore, Int64(Self.bufferedRows))
  }

  /// Forgets devices that were not seen for very long, and trims the chains of those that were not
  /// seen for long. While all history is kept, each operation is known by its identifier, and
  /// nothing is forgotten.
  private func pruneDevices(_ slice: PruneSlice, of space: Int64) throws -> Int {
    let old = """
      SELECT device FROM devices AS d WHERE space = ?1 AND seen_at <= ?2 AND NOT EXISTS (
        SELECT 1 FROM buffered AS p WHERE p.space = ?1 AND p.device = d.device)
      ORDER BY device LIMIT ?3
      """
    let room = Int64(Self.deviceRows / 2)
    try connection.run(
      """
      UPDATE usage SET devices = max(0, devices - gone.count)
      FROM (SELECT principal AS name, count(*) AS count FROM devices
        WHERE space = ?1 AND device IN (\(old)) GROUP BY principal) AS gone
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
