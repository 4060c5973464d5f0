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
/// ``UploadQueue`` decides which operations leave and return together.
extension ReplicaFile {
  private static let followsText = "it follows a change that failed"

  /// Returns the upload-only tables of one kind.
  private func uploadTables(automatic: Bool) throws -> Set<Name> {
    let direction = TrackDirection.uploadOnly(automatic: automatic).kept
    return Set(
      try connection.rows("SELECT name FROM ferry_tables WHERE direction = ?", direction) {
        $0.name(0)
      })
  }

  /// Loads operations, in the order of their places.
  private func uploadQueue(of source: String = "ferry_pending") throws -> UploadQueue {
    UploadQueue(
      try connection.rows("SELECT seq, grp, tbl, record FROM \(source) ORDER BY seq") { row in
        UploadQueue.Operation(
          order: row.int64(0), group: row.int64(1),
          key: RecordKey(table: row.name(2), record: row.name(3)))
      })
  }

  /// Returns a place in the queue that SQL computes.
  private func place(_ expression: String) throws -> Int64 {
    try connection.first("SELECT \(expression)") { $0.int64(0) } ?? 0
  }

  /// Returns the last place that the server has confirmed.
  private func confirmedPlace() throws -> Int64 {
    try place(
      """
      coalesce((SELECT max(to_order) FROM ferry_current_packets WHERE state = 'acknowledged'), 0)
      """)
  }

  // MARK: Failing

  /// Marks operations up to this place as failed: the sync that should have sent them, or had made
  /// a packet of them, failed.
  func markFailed(through order: Int64, _ detail: String) throws {
    let tables = try uploadTables(automatic: false)
    if tables.isEmpty { return }
    try connection.transaction {
      let first = try confirmedPlace() + 1
      let last = max(order, try place(PacketTable.frozenOrder))
      guard first <= last else { return }
      let mark = try connection.statement(
        "INSERT OR IGNORE INTO ferry_failed(seq, detail) VALUES (?, ?)")
      var count = 0
      for order in try uploadQueue().failed(in: first...last, of: tables) {
        count += try mark.run(order, detail)
      }
      if count > 0 {
        try note("unsent", "\(count) operations of upload-only tables could not be delivered")
      }
    }
  }

  /// Whether a pull has to show the state of marked operations.
  func hasFailed() throws -> Bool { try connection.exists("SELECT 1 FROM ferry_failed LIMIT 1") }

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
    guard try connection.exists("SELECT 1 FROM ferry_unsent LIMIT 1") else { return }
    let automatic = try uploadTables(automatic: true)
    try connection.transaction { try requeueUnsent { automatic.contains($0.table) } }
  }

  private func withdrawFailed() throws {
    try connection.run(
      "DELETE FROM ferry_failed WHERE seq <= ? OR seq NOT IN (SELECT seq FROM ferry_pending)",
      try confirmedPlace())
    guard try hasFailed() else { return }
    let first = try connection.first(
      """
      SELECT min(number) FROM ferry_current_packets JOIN ferry_failed
      ON ferry_failed.seq BETWEEN from_order AND to_order WHERE state <> 'acknowledged'
      """
    ) { $0.optionalInt64(0) }
    try withhold(
      connection.rows("SELECT seq, detail FROM ferry_failed") { ($0.int64(0), $0.text(1)) })
    try connection.execute("DELETE FROM ferry_failed")
    if let first = first ?? nil { try closeGaps(from: first) }
  }

  /// Removes later operations on records with a failed one from the queue, unless they are in a
  /// packet.
  func withholdFollowers() throws {
    let tables = Set(try uploadTables())
    guard !tables.isEmpty else { return }
    // Mostly no record with a failed operation is in the queue, and the queue need not be loaded.
    let failed = try ["ferry_unsent", "ferry_quarantine"].flatMap { source in
      try connection.rows(
        """
        SELECT DISTINCT f.tbl, f.record FROM \(source) AS f JOIN ferry_pending AS p
        ON p.record = f.record AND p.tbl = f.tbl WHERE p.seq > \(PacketTable.frozenOrder)
        """
      ) { RecordKey(table: $0.name(0), record: $0.name(1)) }
    }
    guard !failed.isEmpty else { return }
    let followers = try uploadQueue().followers(
      of: Set(failed), after: place(PacketTable.frozenOrder), of: tables)
    try withhold(followers.map { ($0, Self.followsText) })
  }

  /// Moves operations out of the queue, with the reasons.
  private func withhold(_ operations: [(order: Int64, detail: String)]) throws {
    if operations.isEmpty { return }
    try rememberClock()
    let note = try connection.statement("INSERT INTO ferry_failures(seq, detail) VALUES (?, ?)")
    let move = try connection.statement("UPDATE ferry_operations SET state = 2 WHERE seq = ?")
    for (order, detail) in operations {
      try note.run(order, detail)
      try move.run(order)
    }
  }

  /// Closes the gaps in packets that lost operations.
  private func closeGaps(from number: Int64) throws {
    let rows = try packets.current().filter { $0.number >= number }
    let gaps = PacketGaps(
      in: try rows.map { row in
        PacketGaps.Packet(
          number: row.number, dependency: row.dependency,
          operations: try operations(of: row).map(\.id))
      })
    for change in gaps.changes { try packets.perform(change) }
    // Operations that cancel each other out are left in no packet.
    for row in rows where gaps.changes.contains(.remove(row.number)) {
      try queue.forget(row.orders)
    }
    try connection.run("UPDATE ferry_replica SET tail = ?", gaps.tail)
  }

  // MARK: Trying again

  /// Makes the next sync send failed operations. Returns the number of their records.
  func retryUploads(table: Name?, record: Name?) throws -> Int {
    let before = try failedCount()
    if let table, let record, try failedCount(table, record) == 0 {
      throw ReplicaError.notFound("\(table) \(record) has no failed change")
    }
    let isChosen = { (key: RecordKey) in
      (table == nil || key.table == table) && (record == nil || key.record == record)
    }
    try connection.transaction {
      try unmark(isChosen)
      try withholdFollowers()
    }
    for entry in try entries(table, record) { try retryQuarantined(entry, changing: []) }
    try connection.transaction { try requeueUnsent(isChosen) }
    return try max(0, before - failedCount())
  }

  /// Makes the next sync send failed operations of a table from now on.
  func releaseUnsent(of table: Name) throws {
    try unmark { $0.table == table }
    try requeueUnsent { $0.table == table }
  }

  private static let matches = "(?1 IS NULL OR tbl = ?1) AND (?2 IS NULL OR record = ?2)"

  /// Removes the marks of pending operations on these records, and of those that go with them.
  private func unmark(_ isChosen: (RecordKey) -> Bool) throws {
    let marked = "ferry_pending WHERE seq IN (SELECT seq FROM ferry_failed)"
    let remove = try connection.statement("DELETE FROM ferry_failed WHERE seq = ?")
    for order in try uploadQueue(of: marked).returning(where: { isChosen($0.key) }) {
      try remove.run(order)
    }
  }

  /// Moves unsent operations on these records, and those that go with them, to the queue's end with
  /// their identifiers. The server may know them, so an insert and its delete do not cancel each
  /// other out.
  private func requeueUnsent(_ isChosen: (RecordKey) -> Bool) throws {
    let chosen = try uploadQueue(of: "ferry_unsent").returning { isChosen($0.key) }
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
    let automatic = try uploadTables(automatic: true)
    let entries = try connection.rows("SELECT DISTINCT entry, tbl FROM ferry_quarantine") {
      (entry: $0.int64(0), table: $0.name(1))
    }
    let others = Set(entries.filter { !automatic.contains($0.table) }.map(\.entry))
    return Set(entries.map(\.entry)).subtracting(others).sorted()
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
