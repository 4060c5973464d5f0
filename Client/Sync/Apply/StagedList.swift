import FerryProtocol
import FerrySQLite

/// The pages of a pull list that is not complete, with the records fetched beside them.
package struct StagedList {
  let connection: SQLiteConnection
  let limits: Limits
  let wallClock: () -> Int64

  private var pages: StagedPages { StagedPages(connection: connection, limits: limits) }
  private var refreshes: RefreshTable { RefreshTable(connection: connection) }

  /// Stores one page of an incomplete pull list; no reader sees it.
  package func stage(_ body: [UInt8], _ head: PageHead, changes: Int) throws {
    try connection.transaction {
      try pages.append(body, changes: changes)
      let anchor = head.cursor.anchor
      try connection.run(
        """
        UPDATE ferry_replica SET epoch = ?, received = ?, head = max(head, ?), anchor_head = ?,
          anchor = ?, anchor_history_hash = ?, anchor_timeline = ?
        """, head.epoch.description, head.cursor.received, head.head, anchor?.head,
        anchor?.operation, anchor?.historyHash, anchor?.timeline?.value)
      try connection.run(
        """
        INSERT INTO ferry_list(one, began) VALUES (1, ?)
        ON CONFLICT(one) DO UPDATE SET began = excluded.began
        """, head.cursor.began)
    }
  }

  /// Stages single records from the server with the pages. They are no older than the pages before
  /// them and no newer than those after them, so the result equals the list's. Records missing from
  /// the answer are requested again.
  ///
  /// - Parameter keys: the requested records; an answer about others is rejected.
  func stage(_ body: [UInt8], ofRecords keys: [RecordKey]) throws {
    let asked = Set(keys)
    try connection.transaction {
      var failure: (any Error)?
      let head = try body.withUnsafeBytes { bytes in
        try PageReader.read(bytes, limits: limits) { change throws(MalformedMessage) in
          guard asked.contains(change.key) else {
            failure = ReplicaError.unexpectedAnswer(
              status: 200, "records that Ferry did not request")
            return
          }
          do { try refreshes.markFetched(change.key) } catch { failure = error }
        } unreadable: { change throws(MalformedMessage) in
          guard let key = change.key else { throw change.fault }
          do { try refreshes.markFetched(key) } catch { failure = error }
        }
      }
      if let failure { throw failure }
      guard head.count > 0 else {
        throw ReplicaError.unexpectedAnswer(status: 200, "none of the requested records")
      }
      try pages.append(body, changes: head.count)
    }
  }

  /// Omits records rejected by the server from the pull.
  ///
  /// - Parameter keys: the records; empty for all that are not fetched yet.
  func leaveOut(_ keys: [RecordKey], _ problem: Problem) throws {
    try connection.transaction {
      if keys.isEmpty {
        try log(
          "unfetched",
          "the server rejected too many requests for single records (\(problem.detail)); the next "
            + "sync asks again")
        try refreshes.rejectAll()
      }
      for key in keys where try refreshes.reject(key) {
        try log(
          "unfetched",
          "the server rejects the request for \(key.table)/\(key.record) (\(problem.detail)); "
            + "everything else is synced, and the next sync asks again")
      }
    }
  }

  /// Drops the pages of a pull list that cannot be completed; the next pull starts from scratch.
  func discard() throws {
    try connection.transaction {
      try removeAll()
      try connection.execute("UPDATE ferry_replica SET received = applied")
    }
  }

  /// Removes the staged pages. Single records among them are fetched again.
  func removeAll() throws {
    try pages.removeAll()
    try refreshes.fetchAgain()
  }

  private func log(_ event: String, _ detail: String) throws {
    try EventLog(connection: connection).append(event, detail, now: wallClock())
  }
}
