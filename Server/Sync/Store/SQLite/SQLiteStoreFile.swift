import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// One connection to the embedded store's file. Synchronous, so a simulation can drive it; it stays
/// on one thread.
package final class SQLiteStoreFile {
  let connection: SQLiteConnection
  let limits: Limits
  let quotas: Quotas
  let schemas = SchemaCache()
  let timelines: OwnTimelines
  /// The turns of this process's connections to write.
  let writing: WriteLock
  /// The largest transaction that may delay other spaces.
  let slice: WriteSlice
  /// True if ``writing`` is this connection's.
  var isWriting = false
  /// True if transactions are synced only if they run in `synced`; see ``prepareForSlices()``.
  var leavesSyncing = false
  /// True if another connection copies the log while it writes slices.
  var leavesLog = false
  /// The space as the transaction under way leaves it.
  var unsettled: SpaceState?

  /// Opens the file. A missing file is created with all tables.
  package init(
    path: String, limits: Limits, quotas: Quotas = .standard, fileSystem: String? = nil,
    timelines: OwnTimelines = OwnTimelines(), writing: WriteLock = WriteLock(),
    slice: WriteSlice = .standard
  ) throws {
    (self.writing, self.slice) = (writing, slice)
    self.limits = limits
    self.quotas = quotas
    self.timelines = timelines
    connection = try SQLiteConnection(path: path, fileSystem: fileSystem)
    try connection.execute(SQLiteStoreSchema.settings)
    try SQLiteStoreSchema.prepare(connection)
  }

  // MARK: Pull

  func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) throws -> Result<[UInt8], Problem> {
    try connection.transaction(.deferred) {
      let found = try connection.first(
        """
        SELECT epoch, head, newest,
          coalesce((SELECT max(sequence) FROM record_rows
            WHERE space = ?1 AND sequence <= s.head), 0),
          o.sequence, minimum_protocol, retention_horizon, o.history_hash, s.history_hash, timeline,
          name_changes
        FROM spaces AS s LEFT JOIN operations AS o ON o.space = ?1 AND o.id = ?2
          AND o.sequence <= s.head WHERE s.id = ?1
        """, space, request.cursor?.anchor?.operation.value
      ) { row in
        (
          SpaceSnapshot(
            epoch: Epoch(UInt64(bitPattern: row.int64(0))), head: row.int64(1),
            newest: row.uniqueID(2).map(OperationID.init),
            historyHash: UInt64(bitPattern: row.int64(8)), timeline: row.timeline(9),
            anchored: HistoryPlace(row, 4, historyHash: 7), retentionHorizon: row.int64(6),
            minimumProtocol: Int(row.int64(5)), nameChanges: row.int64(10)),
          row.int64(3)
        )
      }
      guard let (stored, newest) = found else {
        return .failure(.spaceGone)
      }
      var snapshot = stored
      try snapshot.findEnd(of: request.cursor) { try ends(of: [$0], in: space)[$0] }
      let own = try request.device.flatMap { try known([$0], in: space).first }
      if let fault = PageBuilder.fault(in: request, snapshot, owner: own?.owner) {
        return .failure(fault)
      }
      var page = PageBuilder(
        request, notices: try notices(for: request, in: space, to: snapshot.head))
      let rows = try connection.statement(
        """
        SELECT sequence, tbl, record, state, whole_below FROM records
        WHERE space = ? AND sequence > ? AND sequence <= ? ORDER BY sequence
        """)
      defer { rows.reset() }
      rows.bind(space, page.last, snapshot.head)
      while page.hasRoom, try rows.step(), page.admits(rows.int64(0)) {
        try page.add(
          sequence: rows.int64(0), table: rows.textBytes(1), record: rows.recordName(2),
          state: rows.blobBytes(3), wholeBelow: rows.int64(4))
      }
      return .success(
        page.finish(
          snapshot, newest: newest, appliedTail: own?.chain?.tail, deviceName: own?.name, now: now))
    }
  }
}

extension HistoryPlace {
  /// Reads a place from the columns; `nil` if there is no such operation.
  init?(_ row: SQLiteStatement, _ sequence: Int32, historyHash: Int32) {
    guard let place = row.optionalInt64(sequence) else { return nil }
    self.init(sequence: place, historyHash: UInt64(bitPattern: row.int64(historyHash)))
  }
}

extension SQLiteStoreFile {
  /// Throws unless the file can be read.
  func check() throws { try connection.execute("SELECT 1 FROM spaces LIMIT 1") }

  /// Returns the newest assigned sequence; 0 for a deleted space.
  func head(of space: Int64) throws -> SequenceNumber {
    try connection.first("SELECT head FROM spaces WHERE id = ?", space) { $0.int64(0) } ?? 0
  }
}
