import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Records whose server state is not known here, such as those of rejected operations. The next
/// pull fetches them whole and applies them with its list.
extension ReplicaFile {
  /// The number of records in one request.
  static let refreshBatch = Limits.standard.recordsPerRequest

  /// Makes the next pull fetch these records, except those of upload-only tables.
  func refresh(_ keys: some Sequence<RecordKey>) throws {
    let insert = try connection.statement(
      """
      INSERT INTO ferry_refresh(tbl, record) VALUES (?, ?)
      ON CONFLICT(tbl, record) DO UPDATE SET fetched = 0
      """)
    let uploads = try uploadTables()
    for key in keys where !uploads.contains(key.table) { try insert.run(key.table, key.record) }
  }

  /// Returns the next records to fetch.
  func recordsToRefresh() throws -> [RecordKey] {
    try connection.rows(
      "SELECT tbl, record FROM ferry_refresh WHERE fetched = 0 ORDER BY tbl, record LIMIT ?",
      Self.refreshBatch
    ) { RecordKey(table: $0.name(0), record: $0.name(1)) }
  }

  /// Whether records wait to be fetched.
  func hasRefresh() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_refresh LIMIT 1")
  }

  /// Whether a record waits to be fetched.
  func isToRefresh(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_refresh WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  /// Stages single records from the server with the pull list's pages. They are no older than the
  /// pages before them and no newer than those after them, so the result equals the list's. Records
  /// that the answer omits are requested again.
  ///
  /// - Parameter keys: the requested records; an answer about others is rejected.
  func stageRefresh(_ body: [UInt8], of keys: [RecordKey]) throws {
    let asked = Set(keys)
    try connection.transaction {
      let mark = try connection.statement(
        "UPDATE ferry_refresh SET fetched = 1 WHERE tbl = ? AND record = ?")
      var failure: (any Error)?
      let head = try body.withUnsafeBytes { bytes in
        try PageReader.read(bytes, limits: limits) { change throws(MalformedMessage) in
          guard asked.contains(change.key) else {
            failure = ReplicaError.unexpectedAnswer(
              status: 200, "records that Ferry did not request")
            return
          }
          do { try mark.run(change.key.table, change.key.record) } catch { failure = error }
        } unreadable: { change throws(MalformedMessage) in
          guard let key = change.key else { throw change.fault }
          do { try mark.run(key.table, key.record) } catch { failure = error }
        }
      }
      if let failure { throw failure }
      guard head.count > 0 else {
        throw ReplicaError.unexpectedAnswer(status: 200, "none of the requested records")
      }
      try insertPage(body, changes: head.count)
    }
  }
}
