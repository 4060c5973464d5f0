import FerryProtocol
import FerrySQLite

/// A pull from the start to replace the rows here, and the rule for records it does not name.
/// Pending operations and their records stay in any case.
enum Replacement: Int64, Sendable {
  /// The server lost history. Records left only on this device are re-uploaded.
  case rescuing = 1
  /// This device was offline for longer than the server keeps history. Records not named by the
  /// server were deleted meanwhile.
  case removing = 2
  /// Both: the server lost the records it does not name, or another device deleted them. A
  /// re-upload would undo every such delete, so the rows are removed, and the log keeps their
  /// values.
  case removingLost = 3

  /// True if the server lost history: earlier places and bases have no meaning.
  var followsLoss: Bool { self != .removing }

  /// Creates the replacement for a rejected cursor, perhaps during another one. A replacement with
  /// re-uploads of lost records continues them, however long it takes.
  init(_ code: ProblemCode, during current: Replacement?) {
    self =
      switch (code, current) {
      case (.cursorExpired, nil), (.cursorExpired, .removing): .removing
      case (.cursorExpired, .removingLost), (.lostAndExpired, nil), (.lostAndExpired, .removing),
        (.lostAndExpired, .removingLost):
        .removingLost
      default: .rescuing
      }
  }
}

/// A pull from the start: its beginning, and its end after all pages.
struct ReplacingPull {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }

  init(_ file: ReplicaFile) { self.file = file }

  /// Begins a replacement: the server cannot continue from this replica's cursor. The next pull
  /// requests everything.
  func begin(_ problem: Problem) throws {
    try connection.transaction {
      let kind = Replacement(problem.code, during: try file.syncState().replacement)
      try connection.run(
        """
        UPDATE ferry_replica SET epoch = NULL, applied = 0, received = 0, head = 0,
          anchor_head = NULL, anchor = NULL, anchor_history_hash = NULL,
          anchor_timeline = NULL, is_found = 1, replacing = ?
        """, kind.rawValue)
      // Rows missing from a copy of the server are young. Only a server started from scratch lacks
      // old ones.
      if problem.code != .epochChanged { try file.marks.removeAll() }
      // Places of a lost history have no meaning any more.
      try connection.execute(
        """
        UPDATE ferry_tables SET since = 0 WHERE since > 0;
        UPDATE ferry_untracked SET since = 0
        """)
      try file.packets.forgetPlaces()
      try file.incoming.removeAll()
      try file.log("replaced", "\(problem.detail); pulling everything again")
    }
  }

  /// Handles the records named by no page, after all pages are applied.
  ///
  /// - Parameter now: the server's clock, in milliseconds.
  func finish(_ replacement: Replacement, _ pass: inout ApplyPass, now: Int64) throws {
    try connection.execute(
      """
      DELETE FROM ferry_kept WHERE NOT EXISTS (SELECT 1 FROM temp.ferry_named AS n
        WHERE n.tbl = ferry_kept.tbl AND n.record = ferry_kept.record);
      UPDATE ferry_replica SET replacing = 0
      """)
    var notNamed: [(table: TableSchema, records: [Name])] = []
    let uploads = try file.tables.tracked.uploads()
    let unrecorded = try file.unrecordedWrites.tablesWithUnknownRows()
    for name in try file.tables.tracked.names()
    where (replacement == .rescuing || !uploads.contains(name)) && !unrecorded.contains(name) {
      guard let table = try? file.tables.schema(of: name) else { continue }
      notNamed.append((table, try recordsNotNamed(of: table)))
    }
    let count = notNamed.reduce(0) { $0 + $1.records.count }
    switch replacement {
    case .removing, .removingLost:
      if replacement == .removingLost { try recordContent(of: notNamed) }
      if replacement == .removing { try recordEdits(of: notNamed) }
      for (table, records) in notNamed {
        for record in records { try pass.remove(RecordKey(table: table.name, record: record)) }
      }
    case .rescuing: try rescue(notNamed, now: now)
    }
    try removeMissionsNotNamed()
    try connection.execute("DELETE FROM temp.ferry_named")
    guard count > 0 else { return }
    let records = count.counted("record")
    let what =
      switch replacement {
      case .rescuing: "re-uploaded \(records) that the server had lost"
      case .removing: "removed \(records) that other devices had deleted"
      case .removingLost:
        "removed \(records) that the server lost or other devices deleted; earlier entries list "
          + "the values of \(count > Self.notedRowsMax ? "\(Self.notedRowsMax) records" : "all")"
      }
    try file.log("replaced", what)
  }

  /// The most rows with values in the log, out of ``EventLog/length`` entries.
  private static let notedRowsMax = 900

  private func recordContent(of notNamed: [(table: TableSchema, records: [Name])]) throws {
    var room = Self.notedRowsMax
    for (table, records) in notNamed where room > 0 && !records.isEmpty {
      let scan = try TableScan(table.name, on: connection, limits: file.limits)
      for record in records.prefix(room) {
        let columns = try scan.received(RecordKey(table: table.name, record: record)) ?? []
        try file.log(
          "lost",
          "the server does not have \(table.name)/\(record) any more; here it \(LostValues.held(columns))"
        )
      }
      room -= records.count
    }
  }

  /// Logs the values of rows edited here and deleted elsewhere. The server has forgotten the
  /// delete, so no conflict names it.
  private func recordEdits(of notNamed: [(table: TableSchema, records: [Name])]) throws {
    if try file.queue.isEmpty() { return }
    let find = try connection.statement("SELECT 1 FROM ferry_pending WHERE record = ? AND tbl = ?")
    var room = Self.notedRowsMax
    for (table, records) in notNamed where !records.isEmpty {
      let scan = try TableScan(table.name, on: connection, limits: file.limits)
      for record in records where room > 0 {
        guard try find.exists(record, table.name) else { continue }
        let columns = try scan.received(RecordKey(table: table.name, record: record)) ?? []
        try file.log(
          "edited",
          "\(table.name)/\(record) was deleted before its edit here; it \(LostValues.held(columns))"
        )
        room -= 1
      }
    }
  }

  /// Returns local records not named by the server, except inserts that are pending or wait for the
  /// user.
  private func recordsNotNamed(of table: TableSchema) throws -> [Name] {
    let key = table.record(of: "t")
    return try connection.prepare(
      """
      SELECT \(key) FROM \(table.rows) AS t WHERE typeof(\(key)) = 'text'
        AND NOT EXISTS (SELECT 1 FROM temp.ferry_named WHERE tbl = ?1 AND record = \(key))
        AND NOT EXISTS (SELECT 1 FROM ferry_pending
          WHERE record = \(key) AND tbl = ?1 AND kind = 'insert')
        AND NOT EXISTS (SELECT 1 FROM ferry_unsent WHERE record = \(key) AND tbl = ?1)
        AND NOT EXISTS (SELECT 1 FROM ferry_quarantine
          WHERE record = \(key) AND tbl = ?1 AND \(FailedUploads.isRejected)
            AND NOT \(TrackedTables.isTwoWay))
      ORDER BY \(key)
      """
    ).rows(table.name) { $0.name(0) }
  }

  /// Records rows as inserted at the beginning of time, so all real writes to them are later. They
  /// form one transaction, up to the maximum size: rows written together arrive together.
  private func rescue(
    _ notNamed: [(table: TableSchema, records: [Name])], now: Int64
  ) throws {
    let head = try file.syncState().applied
    let isKept = try file.marks.areYoung(now: now)
    try file.marks.removeAll()
    guard notNamed.contains(where: { !$0.records.isEmpty }) else { return }
    // The newest pending operation has the clock's time; these operations do not.
    try file.operations.rememberClock()
    file.capture.endTransaction()
    try file.capture.during(.rescuing) {
      let last = try file.queue.newestOrder()
      for (table, records) in notNamed where !records.isEmpty {
        let counters = try file.tables.counters(of: table)
        let insert = try connection.prepare(
          CaptureTriggers.recordExisting(table, counters: counters))
        for record in records {
          let key = RecordKey(table: table.name, record: record)
          let own = isKept || counters.isEmpty ? [] : try file.operations.markConcurrent(key)
          do throws(SQLiteError) {
            try insert.run(record)
          } catch {
            guard error.concernsRow, connection.isInTransaction else { throw error }
            try file.log("lost", "\(table.name)/\(record) cannot be re-uploaded: \(error.message)")
            continue
          }
          if !isKept { try reupload(counters, of: key, pending: own) }
        }
      }
      file.capture.endTransaction()
      // Others may re-upload the same rows, so a delete that follows has a record to delete. All of
      // the server's changes to them are later than the list.
      try connection.execute(
        single: """
          UPDATE ferry_operations SET concurrent = 1, base = \(head)
          WHERE state = 0 AND seq > \(last)
          """)
    }
  }

  /// Records the remainder of a row's counters beyond the own increments; these are sent again.
  private func reupload(
    _ counters: [Name], of key: RecordKey, pending: [SyncOperation]
  ) throws {
    for name in counters {
      guard let value = try file.rows.value(of: name, in: key) else { continue }
      let amount = RescuedCounter.remainder(of: Column(name, value), pending: pending)
      if amount != 0 {
        let id = RescuedCounter.identifier(of: name, in: key)
        try file.operations.recordIncrement(amount, of: name, in: key, id: id, base: 0)
      }
    }
  }

  /// Removes missions not named by a complete pull. They were retracted, or lost with the server's
  /// history, and this device does not re-upload them.
  private func removeMissionsNotNamed() throws {
    try connection.execute(
      """
      DELETE FROM ferry_missions WHERE NOT EXISTS (SELECT 1 FROM temp.ferry_named AS n
        WHERE n.tbl = 'ferry_missions' AND n.record = ferry_missions.id)
      """)
  }
}
