import FerryProtocol
import FerrySQLite

/// One page of a pull list, read in one transaction.
struct SQLitePull {
  let file: SQLiteStoreFile
  let space: Int64
  let request: PullRequest
  let now: Int64

  private var connection: SQLiteConnection { file.connection }

  func page() throws -> Result<[UInt8], Problem> {
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
      try snapshot.findEnd(of: request.cursor) { try file.ends(of: [$0], in: space)[$0] }
      let own = try request.device.flatMap { try file.known([$0], in: space).first }
      if let fault = PageBuilder.fault(in: request, snapshot, owner: own?.owner) {
        return .failure(fault)
      }
      var page = PageBuilder(
        request, notices: try notices(to: snapshot.head))
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

  /// Reads the asking device's notices after the cursor, as many as a page may hold. One operation
  /// may have made two notices for it, under two of its names.
  private func notices(to head: SequenceNumber) throws -> NoticeFeed {
    if request.device == nil { return NoticeFeed() }
    let received = request.cursor?.received ?? 0
    // Notices of a device of another principal are only for this principal.
    let names = try request.addressees.filter { name in
      try file.known([name], in: space).first?.owner.leaves(deviceTo: request.principal) ?? false
    }
    if names.isEmpty { return NoticeFeed() }
    let newest = try newestNotice(for: names, to: head)
    guard newest > received else { return NoticeFeed() }
    let places = Array(repeating: "?", count: names.count).joined(separator: ", ")
    let find = try connection.statement(
      """
      SELECT sequence, group_concat(body) FROM notices
      WHERE space = ? AND sequence > ? AND sequence <= ? AND device IN (\(places)) GROUP BY sequence
      ORDER BY sequence
      """)
    defer { find.reset() }
    find.bind(space, received, head, SQLiteList(names))
    var rows: [NoticeFeed.Row] = []
    var bytes = 0
    while rows.count < request.limit, bytes < request.byteLimit, try find.step() {
      let row = NoticeFeed.Row(sequence: find.int64(0), body: Array(find.textBytes(1)))
      bytes += row.body.count
      rows.append(row)
    }
    return NoticeFeed(rows, newest: newest)
  }

  /// Returns the place of the newest one; 0 if there is none.
  private func newestNotice(
    for devices: [DeviceID], to head: SequenceNumber
  ) throws -> SequenceNumber {
    let last = try connection.statement(
      """
      SELECT coalesce(max(sequence), 0) FROM notices
      WHERE space = ? AND device = ? AND sequence <= ?
      """)
    var newest: SequenceNumber = 0
    for device in devices {
      newest = max(newest, try last.first(space, device.value, head) { $0.int64(0) } ?? 0)
    }
    return newest
  }
}

extension HistoryPlace {
  /// Reads a place from the columns; `nil` if there is no such operation.
  fileprivate init?(_ row: SQLiteStatement, _ sequence: Int32, historyHash: Int32) {
    guard let place = row.optionalInt64(sequence) else { return nil }
    self.init(sequence: place, historyHash: UInt64(bitPattern: row.int64(historyHash)))
  }
}
