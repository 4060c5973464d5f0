import FerryProtocol
import FerrySQLite

/// The state of a space's sync in the file: the cursor, and the end of the last round. In `ferry_replica`.
struct ReplicaState {
  let connection: SQLiteConnection
  let limits: Limits
  let wallClock: () -> Int64
  let path: String

  /// Returns the present state.
  func load() throws -> SyncState {
    let state = try connection.first(
      """
      SELECT epoch, applied, received, head, clock_offset, last_sync, anchor_head, anchor,
        replacing, anchor_history_hash, (SELECT began FROM ferry_list), anchor_timeline
      FROM ferry_replica
      """
    ) { row in
      let anchor = row.uniqueID(7).map {
        Cursor.Anchor(
          head: row.int64(6), operation: OperationID($0),
          historyHash: row.optionalInt64(9).map(UInt64.init(bitPattern:)),
          timeline: row.timeline(11))
      }
      return SyncState(
        epoch: row.optionalText(0).flatMap { Epoch($0) }, applied: row.int64(1),
        received: row.int64(2), head: row.int64(3), clockOffset: row.int64(4),
        lastSync: row.optionalInt64(5), anchor: anchor,
        replacement: Replacement(rawValue: row.int64(8)), began: row.optionalInt64(10))
    }
    guard let state else {
      throw ReplicaError.cannotOpen(path: path, "its sync state is missing")
    }
    return state
  }

  /// Returns the cursor, anchored at the newest known point of the server's history: own confirmed
  /// packets may be ahead of the pulled changes.
  ///
  /// - Parameter ofFormerNames: true if only packets of earlier identifiers count. A page itself
  ///   shows whether the server lost packets of the present one.
  func knownCursor(ofFormerNames: Bool = false) throws -> Cursor? {
    guard let cursor = try load().cursor else { return nil }
    let newest = try PacketTable(connection: connection).newestAnchor(
      after: cursor.anchor?.head ?? cursor.received, ofFormerNames: ofFormerNames)
    guard let newest else { return cursor }
    return Cursor(
      epoch: cursor.epoch, applied: cursor.applied, received: cursor.received, anchor: newest,
      began: cursor.began)
  }

  /// Stores the cursor and what belongs to it. The time of the last sync, the clock and the list's
  /// beginning are stored where they change.
  func save(_ state: SyncState) throws {
    let anchor = state.anchor
    try connection.run(
      """
      UPDATE ferry_replica SET epoch = ?, applied = ?, received = ?, head = ?, anchor_head = ?,
        anchor = ?, anchor_history_hash = ?, anchor_timeline = ?, replacing = ?
      """, state.epoch?.description, state.applied, state.received, state.head, anchor?.head,
      anchor?.operation, anchor?.historyHash, anchor?.timeline?.value,
      state.replacement?.rawValue ?? 0)
  }

  /// Moves the cursor back to a place, so the next pull fetches everything after it.
  func goBack(to place: SequenceNumber) throws {
    var state = try load()
    state.goBack(to: place)
    try save(state)
    try StagedList(connection: connection, limits: limits, wallClock: wallClock).removeAll()
  }

  /// Stores the result and time of a sync, and the offset of the server's clock.
  func finish(_ report: SyncReport, clockOffset: Int64?) throws {
    try connection.transaction {
      try connection.run("UPDATE ferry_replica SET last_sync = ?", wallClock())
      try saveClockOffset(clockOffset)
      guard let summary = report.summary else { return }
      try log("sync", summary)
    }
  }

  /// Records a failed sync; changes applied before the failure stay.
  func recordFailure(_ error: ReplicaError) throws {
    try connection.transaction { try log("error", error.description) }
  }

  func saveClockOffset(_ offset: Int64?) throws {
    guard let offset else { return }
    try connection.run("UPDATE ferry_replica SET clock_offset = ?", offset)
  }

  /// Adds an entry to the log.
  func log(_ event: String, _ detail: String) throws {
    try EventLog(connection: connection).append(event, detail, now: wallClock())
  }
}
