import FerryProtocol
import FerrySQLite

/// The choice and the time of retries of deferred changes (SPEC.md §23). The rule is ``Deferral``;
/// here are its queries. Each query costs as much as the changes it finds.
extension KeptChanges {
  /// The most changes with an unseen reason retried by one pull, longest wait first.
  static let unseenPerPull = 500

  /// Returns true if a pull must retry changes, although the list is empty.
  func isAnyToTry() throws -> Bool {
    if try hasOpen()
      || connection.exists("SELECT 1 FROM ferry_kept WHERE waits >= \(Waits.rows) LIMIT 1")
    {
      return true
    }
    return try connection.exists(
      """
      SELECT 1 FROM ferry_kept WHERE EXISTS (SELECT 1 FROM ferry_operations
        WHERE seq > (SELECT tried_order FROM ferry_replica)) LIMIT 1
      """)
  }

  /// Returns true if changes are to be tried now.
  func hasOpen() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_kept WHERE waits = \(Waits.open) LIMIT 1")
  }

  /// Returns records waiting because other rows of their tables have their unique values.
  func waitingForRows(limit: Int) throws -> [RecordKey] {
    try connection.rows(
      """
      SELECT tbl, record FROM ferry_kept INDEXED BY ferry_kept_table
      WHERE waits = \(Waits.table) LIMIT ?
      """, Int64(limit)
    ) { RecordKey(table: $0.name(0), record: $0.name(1)) }
  }

  /// Returns true if changes wait for the records they refer to.
  func hasWaitingForParents() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_kept WHERE waits = \(Waits.parent) LIMIT 1")
  }

  // MARK: Events

  /// Opens changes waiting for a record.
  func open(waitingFor parent: RecordKey) throws {
    try connection.run(
      """
      UPDATE ferry_kept INDEXED BY ferry_kept_parent SET waits = \(Waits.open)
      WHERE waits = \(Waits.parent) AND parent = ? AND parent_tbl = ?
      """, parent.record, parent.table)
  }

  /// Opens changes waiting for rows of these tables.
  func open(afterWritesTo tables: some Sequence<Name>) throws {
    var isAny = false
    for table in tables {
      isAny = true
      try connection.run(
        """
        UPDATE ferry_kept INDEXED BY ferry_kept_table SET waits = \(Waits.open)
        WHERE waits = \(Waits.table) AND tbl = ?
        """, table)
    }
    if isAny { try openRows() }
  }

  /// Opens changes for a retry, if this device's own writes since the last call may have made room.
  func openAfterOwnWrites() throws {
    let state = try connection.first(
      """
      SELECT tried_order, (SELECT max(seq) FROM ferry_operations),
        (SELECT min(seq) FROM ferry_operations) FROM ferry_replica
      """
    ) { (tried: $0.int64(0), newest: $0.int64(1), oldest: $0.int64(2)) }
    guard let state, state.newest > state.tried else { return }
    // The archive was trimmed beyond the mark.
    if state.oldest > state.tried + 1 && state.tried > 0 { try openAll() }
    let own = "SELECT DISTINCT tbl AS t, record AS r FROM ferry_operations WHERE seq > ?"
    try connection.run(
      """
      UPDATE ferry_kept INDEXED BY ferry_kept_parent SET waits = \(Waits.open) FROM (\(own)) AS own
      WHERE waits = \(Waits.parent) AND parent = own.r AND parent_tbl = own.t
      """, state.tried)
    try connection.run(
      """
      UPDATE ferry_kept SET waits = \(Waits.open) FROM (\(own)) AS own
      WHERE waits > \(Waits.open) AND ferry_kept.tbl = own.t AND ferry_kept.record = own.r
      """, state.tried)
    let tables = try connection.rows(
      "SELECT DISTINCT tbl FROM ferry_operations WHERE seq > ?", state.tried
    ) { $0.name(0) }
    try open(afterWritesTo: tables)
    try connection.run("UPDATE ferry_replica SET tried_order = ?", state.newest)
  }

  /// Opens changes waiting for rows of any table.
  func openRows() throws {
    try connection.execute(
      "UPDATE ferry_kept SET waits = \(Waits.open) WHERE waits = \(Waits.rows)")
  }

  /// Opens all changes for a retry: the schema or the rules have changed.
  func openAll() throws {
    try connection.execute(
      "UPDATE ferry_kept SET waits = \(Waits.open) WHERE waits > \(Waits.open)")
  }

  /// Opens some changes for a retry, if Ferry perhaps does not see their reason.
  func openUnseen() throws {
    try connection.run(
      """
      UPDATE ferry_kept SET waits = \(Waits.open) FROM (SELECT tbl AS t, record AS r FROM ferry_kept
        WHERE waits >= \(Waits.rows) ORDER BY tried LIMIT ?) AS next
      WHERE ferry_kept.tbl = next.t AND ferry_kept.record = next.r
      """, Int64(Self.unseenPerPull))
  }

  /// Ends the attempt of a change that is still open: no retry can apply it.
  func endAttempt(_ key: RecordKey) throws {
    try connection.run(
      """
      UPDATE ferry_kept SET waits = \(Waits.unseen), tried = \(Self.nextTry)
      WHERE tbl = ? AND record = ? AND waits = \(Waits.open)
      """, key.table, key.record)
  }

  /// The number of the next attempt.
  static let nextTry =
    "(SELECT ifnull(max(tried), 0) + 1 FROM ferry_kept WHERE waits >= \(Waits.rows))"
}
