import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// One connection to the embedded store's file. Synchronous, so that a simulation can drive it;
/// it stays on one thread.
package final class SQLiteStoreFile {
  let connection: SQLiteConnection
  let limits: Limits
  let quotas: Quotas
  let schemas = SchemaCache()
  let timelines: OwnTimelines
  /// The space as the transaction under way leaves it.
  var unsettled: SpaceState?

  /// Opens the file, and creates it with its tables if there is none.
  package init(
    path: String, limits: Limits, quotas: Quotas = .standard, fileSystem: String? = nil,
    timelines: OwnTimelines = OwnTimelines()
  ) throws {
    self.limits = limits
    self.quotas = quotas
    self.timelines = timelines
    connection = try SQLiteConnection(path: path, fileSystem: fileSystem)
    try connection.execute(SQLiteStoreSchema.settings)
    try SQLiteStoreSchema.prepare(connection)
  }

  // MARK: Spaces

  func createSpace(
    _ name: SpaceName, epoch: Epoch, by mark: AuditMark? = nil
  ) throws -> SpaceSummary {
    try connection.transaction {
      try insertSpace(name, epoch: epoch, by: mark)
      guard let space = try space(named: name) else {
        throw StoreError.failed("space \(name) was not made")
      }
      return space
    }
  }

  /// Returns `nil` if the principal has created as many spaces as it may.
  func createSpace(
    _ name: SpaceName, epoch: Epoch, by mark: AuditMark, quota: Int64
  ) throws -> SpaceSummary? {
    try connection.transaction {
      let made = try connection.run(
        """
        INSERT INTO spaces(name, epoch, retention, creator) SELECT ?1, ?2, ?3, ?4
        WHERE (SELECT count(*) FROM spaces WHERE creator = ?4) < ?5 ON CONFLICT DO NOTHING
        """, name.value, epoch.value, Retention.standard.milliseconds, mark.principal.id, quota)
      if made > 0 { try append(mark.entry(.spaceCreated, space: name)) }
      return try space(named: name)
    }
  }

  /// Makes a space within the transaction under way, unless it is there.
  func insertSpace(_ name: SpaceName, epoch: Epoch, by mark: AuditMark?) throws {
    let made = try connection.run(
      "INSERT INTO spaces(name, epoch, retention) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      name.value, epoch.value, Retention.standard.milliseconds)
    guard made > 0, let mark else { return }
    try append(mark.entry(.spaceCreated, space: name))
  }

  func space(named name: SpaceName) throws -> SpaceSummary? {
    try connection.first(
      "SELECT id, name, epoch, head, retention_horizon, retention FROM spaces WHERE name = ?",
      name.value
    ) { summary($0) } ?? nil
  }

  func spaces() throws -> [SpaceSummary] {
    try connection.rows(
      "SELECT id, name, epoch, head, retention_horizon, retention FROM spaces ORDER BY name"
    ) { summary($0) }.compactMap { $0 }
  }

  private func summary(_ row: SQLiteStatement) -> SpaceSummary? {
    SpaceName(row.text(1)).map {
      SpaceSummary(
        id: row.int64(0), name: $0, epoch: Epoch(UInt64(bitPattern: row.int64(2))),
        head: row.int64(3), retentionHorizon: row.int64(4),
        retention: Retention(milliseconds: row.optionalInt64(5)))
    }
  }

  // MARK: Pull

  func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) throws -> Result<[UInt8], Problem> {
    try connection.transaction(.deferred) {
      let found = try connection.first(
        """
        SELECT epoch, head, newest,
          coalesce((SELECT max(sequence) FROM records WHERE space = ?1), 0),
          o.sequence, minimum_protocol, retention_horizon, o.history_hash, s.history_hash, timeline,
          name_changes
        FROM spaces AS s LEFT JOIN operations AS o ON o.space = ?1 AND o.id = ?2 WHERE s.id = ?1
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
      try snapshot.noteEnd(of: request.cursor) { try end(of: $0, in: space) }
      let own = try request.device.flatMap { try self.device($0, in: space) }
      if let fault = PageBuilder.fault(in: request, snapshot, owner: own?.owner) {
        return .failure(fault)
      }
      var page = PageBuilder(request, notices: try notices(for: request, in: space))
      let rows = try connection.statement(
        """
        SELECT sequence, tbl, record, state, whole_below FROM records
        WHERE space = ? AND sequence > ? ORDER BY sequence
        """)
      defer { rows.reset() }
      rows.bind(space, page.last)
      while page.hasRoom, try rows.step(), page.admits(rows.int64(0)) {
        try page.add(
          sequence: rows.int64(0), table: rows.textBytes(1), record: rows.textBytes(2),
          state: rows.textBytes(3), wholeBelow: rows.int64(4))
      }
      return .success(
        page.finish(
          snapshot, newest: newest, appliedTail: own?.chain?.tail, deviceName: own?.name, now: now))
    }
  }

  func buffered(in space: Int64, of device: DeviceID) throws -> (packets: Int, bytes: Int) {
    try connection.first(
      "SELECT count(*), coalesce(sum(bytes), 0) FROM buffered WHERE space = ? AND device = ?",
      space, device.value
    ) { (Int($0.int64(0)), Int($0.int64(1))) } ?? (0, 0)
  }
}

extension HistoryPlace {
  /// Reads a place from the columns that hold its parts; `nil` if there is no such operation.
  init?(_ row: SQLiteStatement, _ sequence: Int32, historyHash: Int32) {
    guard let place = row.optionalInt64(sequence) else { return nil }
    self.init(sequence: place, historyHash: UInt64(bitPattern: row.int64(historyHash)))
  }
}

extension SQLiteStoreFile {
  /// Throws unless the file can be read.
  func check() throws { try connection.execute("SELECT 1 FROM spaces LIMIT 1") }

  /// Returns the newest sequence given; 0 for a space that is gone.
  func head(of space: Int64) throws -> SequenceNumber {
    try connection.first("SELECT head FROM spaces WHERE id = ?", space) { $0.int64(0) } ?? 0
  }
}
