import FerryNetworking
import FerryProtocol
import FerrySQLite

/// A device's transport with a planted mistake: the arrival of a page changes the device's file.
struct PlantedTransport: Transport {
  let fault: PlantedFault
  let inner: SimulatedTransport
  let scheduler: Scheduler
  let limits: Limits
  /// Returns the connection of the device's process, with the names of the space's ledger.
  let ledger: @Sendable () -> SQLiteConnection?

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    var response = try await inner.send(request)
    guard request.url.contains("/changes"), let ledger = ledger(), !ledger.isInTransaction,
      let head = try? PageReader.head(of: response.body)
    else { return response }
    if fault == .tailNotCompared, let tail = try? confirmedTail(on: ledger) {
      var trusted = head
      trusted.appliedTail = tail
      response.body = response.body.replacingHead(trusted)
    } else if fault == .appliedChangesRecorded {
      try? record(response.body, on: ledger)
    } else if fault == .cursorApartFromRows, !head.more {
      try? save(head, on: ledger)
      // The rows follow, unless the process dies now.
      try? await scheduler.sleep(.milliseconds(100))
    }
    return response
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    try await inner.stream(request)
  }

  /// Returns the end of the chain confirmed by receipts.
  private func confirmedTail(on ledger: SQLiteConnection) throws -> OperationID? {
    try ledger.first(
      """
      SELECT tail FROM ferry_packets WHERE state = 'acknowledged'
        AND number > (SELECT chain_start FROM ferry_replica) ORDER BY number DESC LIMIT 1
      """
    ) { $0.uniqueID(0).map { OperationID($0) } } ?? nil
  }

  /// Saves the cursor of a list before the list's rows.
  private func save(_ head: PageHead, on ledger: SQLiteConnection) throws {
    let anchor = head.cursor.anchor
    try ledger.run(
      """
      UPDATE ferry_replica SET epoch = ?1, applied = ?2, received = ?2, anchor_head = ?3,
        anchor = ?4, anchor_history_hash = ?5, anchor_timeline = ?6
      """, head.epoch.description, head.cursor.applied, anchor?.head, anchor?.operation,
      anchor?.historyHash, anchor?.timeline?.value)
  }

  /// Records titles changed by a page as the user's own.
  private func record(_ page: [UInt8], on ledger: SQLiteConnection) throws {
    var titles: [(record: Name, json: [UInt8])] = []
    _ = try page.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: limits) { (change) throws(MalformedMessage) in
        guard change.key.table == "notes" else { return }
        for column in change.state.columns where column.name == "title" {
          var json = JSONWriter()
          json.columns([Column(column.name, column.value)])
          titles.append((change.key.record, json.finish()))
        }
      }
    }
    try ledger.transaction {
      for (record, json) in titles {
        try ledger.run(
          """
          INSERT INTO ferry_operations(id, grp, base, tbl, record, kind, data)
          SELECT ferry_operation(), ferry_group(), ferry_base(), 'notes', ?1, 'update', ?2
          FROM notes WHERE id = ?1 AND title IS NOT json_extract(?2, '$.title')
          """, record, SQLiteText(json))
      }
    }
  }
}
