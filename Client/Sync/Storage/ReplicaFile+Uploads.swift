import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Operations of upload-only tables whose sending failed (SPEC.md §17).
///
/// - Undelivered operations are marked and stay in the queue: the server may have them, and only
///   its answer was lost. The pull before the next push shows that.
/// - Operations that have not arrived by then leave the queue, so that everything else continues.
///   When the user retries them, they return to its end, with their identifiers.
/// - Operations that the server rejects go to the quarantine like all others, and return in the
///   same way.
///
/// A transaction stays whole. If it also wrote to a two-way or an automatic table, it is retried by
/// itself, as that table's operations are. Later operations on a record with a failed one wait with
/// it.
extension ReplicaFile {
  private static let isConfirmed = """
    seq <= coalesce((SELECT max(to_order) FROM ferry_current_packets WHERE state = 'acknowledged'), 0)
    """

  private static let followsText = "it follows a change that failed"

  /// Returns SQL that selects pending transactions that wrote only to tables whose direction is
  /// like `pattern`.
  private static func groups(_ pattern: String) -> String {
    """
    (SELECT grp FROM ferry_pending GROUP BY grp HAVING sum(tbl NOT IN
      (SELECT name FROM ferry_tables WHERE direction LIKE '\(pattern)')) = 0)
    """
  }

  private func exists(_ query: String) throws -> Bool {
    try connection.exists("\(query) LIMIT 1")
  }

  // MARK: Failing

  /// Marks operations up to this place as failed: the sync that should have sent them, or had made
  /// a packet of them, failed.
  func markFailed(through order: Int64, _ detail: String) throws {
    guard try exists("SELECT 1 FROM ferry_tables WHERE direction = 'upload-only'") else { return }
    try connection.transaction {
      try connection.run(
        """
        INSERT OR IGNORE INTO ferry_failed(seq, detail) SELECT seq, ?2 FROM ferry_pending
        WHERE seq <= max(?1, \(PacketTable.frozenOrder))
          AND NOT \(Self.isConfirmed) AND grp IN \(Self.groups("upload-only"))
        """, order, detail)
      let count = connection.changes
      if count > 0 {
        try note("unsent", "\(count) operations of upload-only tables could not be delivered")
      }
    }
  }

  /// Whether a pull has to show the state of marked operations.
  func hasFailed() throws -> Bool { try exists("SELECT 1 FROM ferry_failed") }

  // MARK: Before a push

  /// Removes failed operations from the queue unless the pull before has shown their arrival, and
  /// returns automatic ones to it.
  func prepareUploads() throws {
    guard try !uploadTables().isEmpty || hasFailed() else { return }
    try connection.transaction {
      try withdrawFailed()
      try withholdFollowers()
    }
    for entry in try automaticEntries() { try retryQuarantined(entry, changing: []) }
    guard try exists("SELECT 1 FROM ferry_unsent") else { return }
    try connection.transaction {
      let automatic = "SELECT name FROM ferry_tables WHERE direction = 'upload-only-automatic'"
      try choose(from: "ferry_unsent", where: "tbl IN (\(automatic))")
      try requeueChosen()
    }
  }

  private func withdrawFailed() throws {
    try connection.execute(
      """
      DELETE FROM ferry_failed
      WHERE \(Self.isConfirmed) OR seq NOT IN (SELECT seq FROM ferry_pending)
      """)
    guard try hasFailed() else { return }
    let first = try connection.first(
      """
      SELECT min(number) FROM ferry_current_packets JOIN ferry_failed
      ON ferry_failed.seq BETWEEN from_order AND to_order WHERE state <> 'acknowledged'
      """
    ) { $0.optionalInt64(0) }
    try withhold("SELECT seq, detail FROM ferry_failed")
    try connection.execute("DELETE FROM ferry_failed")
    if let first = first ?? nil { try closeGaps(from: first) }
  }

  /// Removes later operations on records with a failed one from the queue, unless they are in a
  /// packet.
  func withholdFollowers() throws {
    guard try !uploadTables().isEmpty else { return }
    let found = ["ferry_unsent", "ferry_quarantine"].map { failed in
      """
      SELECT p.grp FROM \(failed) AS f JOIN ferry_pending AS p
      ON p.record = f.record AND p.tbl = f.tbl WHERE p.seq > \(PacketTable.frozenOrder)
      """
    }.joined(separator: " UNION ALL ")
    let followers = """
      SELECT seq, '\(Self.followsText)' AS detail FROM ferry_pending
      WHERE grp IN (\(found)) AND grp IN \(Self.groups("upload-only%"))
      """
    while try exists(found) && withhold(followers) > 0 {}
  }

  /// Moves operations out of the queue; `selection` returns their places and the reason.
  @discardableResult
  private func withhold(_ selection: String) throws -> Int {
    try connection.execute(
      """
      INSERT INTO ferry_failures(seq, detail)
      SELECT p.seq, s.detail FROM ferry_pending AS p JOIN (\(selection)) AS s ON s.seq = p.seq
      """)
    let count = connection.changes
    guard count > 0 else { return 0 }
    try rememberClock()
    try connection.execute(
      """
      UPDATE ferry_operations SET state = 2
      WHERE state = 0 AND seq IN (SELECT seq FROM ferry_failures WHERE entry IS NULL)
      """)
    return count
  }

  /// Closes the gaps in packets that lost operations. Their other operations stay merged, since the
  /// server may know them by these identifiers; the chain skips the removed ones.
  private func closeGaps(from number: Int64) throws {
    let rows = try packets.current().filter { $0.number >= number }
    var previous = rows.first?.dependency
    for row in rows {
      let operations = try operations(of: row)
      if let tail = operations.last?.id {
        try packets.change(
          row.number, dependency: previous, tail: tail, operations: operations.count)
        previous = tail
      } else {
        try packets.remove(row.number)
        try forget(row.orders)
      }
    }
    try connection.run("UPDATE ferry_replica SET tail = ?", previous)
  }

  // MARK: Trying again

  /// Makes the next sync send failed operations. Returns the number of their records.
  func retryUploads(table: Name?, record: Name?) throws -> Int {
    let before = try failedCount()
    if let table, let record, try failedCount(table, record) == 0 {
      throw ReplicaError.notFound("\(table) \(record) has no failed change")
    }
    try connection.transaction {
      try choose(from: Self.marked, table, record)
      try connection.execute(
        "DELETE FROM ferry_failed WHERE seq IN (SELECT seq FROM temp.ferry_chosen)")
      try withholdFollowers()
    }
    for entry in try entries(table, record) { try retryQuarantined(entry, changing: []) }
    try connection.transaction {
      try choose(from: "ferry_unsent", table, record)
      try requeueChosen()
    }
    return try max(0, before - failedCount())
  }

  /// Makes the next sync send failed operations of a table from now on.
  func releaseUnsent(of table: Name) throws {
    try choose(from: Self.marked, table, nil)
    try connection.execute(
      "DELETE FROM ferry_failed WHERE seq IN (SELECT seq FROM temp.ferry_chosen)")
    try choose(from: "ferry_unsent", table, nil)
    try requeueChosen()
  }

  private static let marked =
    "(SELECT p.* FROM ferry_pending AS p JOIN ferry_failed AS f ON f.seq = p.seq)"

  private static let matches = "(?1 IS NULL OR tbl = ?1) AND (?2 IS NULL OR record = ?2)"

  private func choose(from source: String, _ table: Name?, _ record: Name?) throws {
    try choose(from: source, where: Self.matches, [table, record])
  }

  /// Notes operations in the temporary table `ferry_chosen`, with the rest of their transactions
  /// and later operations on the same records.
  private func choose(
    from source: String, where condition: String, _ values: [Name?] = []
  ) throws {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS temp.ferry_chosen(seq INTEGER PRIMARY KEY);
      DELETE FROM temp.ferry_chosen
      """)
    try connection.run(
      "INSERT INTO temp.ferry_chosen SELECT seq FROM \(source) WHERE \(condition)",
      SQLiteList(values))
    let chosen = "FROM \(source) WHERE seq IN (SELECT seq FROM temp.ferry_chosen)"
    let add = try connection.statement(
      """
      INSERT INTO temp.ferry_chosen SELECT seq FROM \(source)
      WHERE (grp IN (SELECT grp \(chosen)) OR (tbl, record) IN (SELECT tbl, record \(chosen)))
        AND seq NOT IN (SELECT seq FROM temp.ferry_chosen)
      """)
    while try add.run() > 0 {}
  }

  /// Moves the chosen operations to the queue's end with their identifiers. The server may know
  /// them, so an insert and its delete do not cancel each other out.
  private func requeueChosen() throws {
    let chosen = try connection.rows("SELECT seq FROM temp.ferry_chosen ORDER BY seq") {
      $0.int64(0)
    }
    try rememberClock()
    for order in chosen {
      try requeue(order, "base = min(base, (SELECT applied FROM ferry_replica))")
    }
  }

  /// Moves an operation that failed to the queue's end. The caller has stored the clock, since the
  /// operation at the end has an old time then.
  ///
  /// - Parameter changes: the columns that change with its state.
  private func requeue(_ order: Int64, _ changes: String) throws {
    try connection.run(
      """
      UPDATE ferry_operations SET state = 0, concurrent = 1, apart = 0, \(changes),
        seq = \(OperationRecorder.newestOrder) + 1
      WHERE seq = ?
      """, order)
    try connection.run("DELETE FROM ferry_failures WHERE seq = ?", order)
  }

  // MARK: Refused

  /// Returns rejected transactions that concern a table and record.
  private func entries(_ table: Name?, _ record: Name?) throws -> [Int64] {
    try connection.rows(
      """
      SELECT DISTINCT entry FROM ferry_quarantine
      WHERE NOT \(Self.isTwoWay) AND \(Self.matches) ORDER BY entry
      """, table, record
    ) { $0.int64(0) }
  }

  /// Returns rejected transactions that each sync retries.
  private func automaticEntries() throws -> [Int64] {
    try connection.rows(
      """
      SELECT entry FROM ferry_quarantine GROUP BY entry HAVING sum(tbl NOT IN
        (SELECT name FROM ferry_tables WHERE direction = 'upload-only-automatic')) = 0
      ORDER BY entry
      """
    ) { $0.int64(0) }
  }

  /// Sends a rejected operation of an upload-only table again unchanged: its row is still there.
  /// Changes are written to the row and recorded. Returns `false` for an operation that has to be
  /// written to its table again.
  func requeue(_ operation: SyncOperation, of entry: Int64, changing changes: [Column]) throws
    -> Bool
  {
    let table = operation.key.table
    guard operation.batch == nil,
      try uploadTables().contains(where: { $0 == table })
    else { return false }
    let order = try connection.first(
      "SELECT seq FROM ferry_quarantine WHERE entry = ? AND id = ?", entry, operation.id
    ) { $0.int64(0) }
    guard let order else { return false }
    try rememberClock()
    try requeue(order, "grp = ferry_group(), base = ferry_base()")
    guard !changes.isEmpty, operation.kind != .delete else { return true }
    let plan = ApplyPlan(
      table: try schema(of: table), rules: .standard, connection: connection)
    let known = changes.filter { plan.known.contains($0.name) }
    if !known.isEmpty { _ = try plan.update(operation.key.record, plan.unstamped(known)) }
    return true
  }

  // MARK: Looking

  /// Returns the unconfirmed state of upload-only tables, by table and record.
  func uploads(of table: Name?, limit: Int) throws -> [UploadState] {
    try connection.rows(
      """
      SELECT tbl, record, is_dirty, is_deleted, failed, detail, identifier
      FROM ferry_uploads WHERE ?1 IS NULL OR tbl = ?1 ORDER BY tbl, record LIMIT ?2
      """, table, limit
    ) { row in
      UploadState(
        key: RecordKey(table: row.name(0), record: row.name(1)),
        identifier: OperationID(UniqueID(row.text(6)) ?? UniqueID(high: 0, low: 0)),
        isDirty: row.int64(2) != 0, isDeleted: row.int64(3) != 0, isFailed: row.int64(4) != 0,
        detail: row.optionalText(5))
    }
  }

  /// Returns the number of records of upload-only tables with a failed operation.
  func failedCount(_ table: Name? = nil, _ record: Name? = nil) throws -> Int {
    guard try !uploadTables().isEmpty else { return 0 }
    return try connection.first(
      "SELECT count(*) FROM ferry_uploads WHERE failed AND \(Self.matches)", table, record
    ) { Int($0.int64(0)) } ?? 0
  }
}
