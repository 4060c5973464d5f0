import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Values that lost, and questions for the user (SPEC.md §6, §15).
extension ReplicaFile {
  // MARK: Noting

  /// Stores a conflict; ignores one that is known already.
  func note(
    _ conflict: Conflict, of operation: OperationID, on key: RecordKey,
    at sequence: SequenceNumber? = nil
  ) throws {
    var lost = JSONWriter()
    lost.value(conflict.lost)
    try connection.run(
      """
      INSERT INTO ferry_conflicts(at, operation, tbl, record, col, lost, loser_time, loser,
        winner_time, winner, sequence, question) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO NOTHING
      """, wallClock(), operation, key.table, key.record, conflict.column,
      SQLiteText(lost.finish()), conflict.loser.time.rawValue, conflict.loser.device,
      conflict.winner.time.rawValue, conflict.winner.device, sequence, conflict.isQuestion)
    try expectNames(of: conflict)
  }

  /// Stores this device's losses that a page lists, under its present or a former identifier.
  func take(_ notices: [Notice]) throws {
    if notices.isEmpty { return }
    let names = try ownNames()
    for notice in notices {
      for conflict in notice.conflicts where names.wrote(conflict.loser) {
        try note(conflict, of: notice.operation, on: notice.key, at: notice.sequence)
      }
    }
  }

  // MARK: Resolving

  /// Whether any question for the user is open.
  func hasOpenQuestions() throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_conflicts WHERE question = 1 AND resolved IS NULL LIMIT 1")
  }

  /// Closes the questions on a record that are older than a change of it: the author of the change
  /// had seen both sides.
  func settleQuestions(by state: RecordState, on key: RecordKey) throws {
    let settle = try connection.statement("UPDATE ferry_conflicts SET resolved = ? WHERE seq = ?")
    for question in try openQuestions(on: key)
    where ConflictDecision.isAnswered(question.conflict, by: state) {
      try settle.run(wallClock(), question.number)
    }
  }

  private func openQuestions(on key: RecordKey) throws -> [KeptConflict] {
    let names = try ownNames()
    return try connection.rows(
      "\(Self.selectConflicts) WHERE record = ? AND tbl = ? AND question = 1 AND resolved IS NULL",
      key.record, key.table
    ) { try keptConflict($0, names) }
  }

  // MARK: Looking

  static let selectConflicts = """
    SELECT seq, at, operation, tbl, record, col, lost, loser_time, loser, winner_time, winner,
      question, resolved FROM ferry_conflicts
    """

  /// Reads a row of ``selectConflicts``.
  func keptConflict(_ row: SQLiteStatement, _ names: OwnNames) throws -> KeptConflict {
    func id(_ index: Int32) -> UniqueID { row.uniqueID(index) ?? UniqueID(high: 0, low: 0) }
    func stamp(_ time: Int32, _ device: Int32) -> Stamp {
      Stamp(
        time: HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(time))),
        device: DeviceID(id(device)))
    }
    var lost = JSONReader(row.textBytes(6))
    let (loser, winner) = (stamp(7, 8), stamp(9, 10))
    return KeptConflict(
      number: row.int64(0), noticedAt: row.int64(1), operation: OperationID(id(2)),
      key: RecordKey(table: row.name(3), record: row.name(4)),
      conflict: Conflict(
        column: row.optionalName(5), lost: try lost.value(limits: limits), loser: loser,
        winner: winner, isQuestion: row.int64(11) != 0),
      isLosersOwn: names.wrote(loser), isWinnersOwn: names.wrote(winner),
      resolvedAt: row.optionalInt64(12))
  }

  /// Returns values that lost, newest first.
  func conflicts(limit: Int, openOnly: Bool = false) throws -> [KeptConflict] {
    let condition = openOnly ? "WHERE question = 1 AND resolved IS NULL" : ""
    let names = try ownNames()
    return try connection.rows(
      "\(Self.selectConflicts) \(condition) ORDER BY seq DESC LIMIT ?", limit
    ) { try keptConflict($0, names) }
  }

  /// Returns conflicts that were noted after one of them, oldest first.
  func conflicts(after number: Int64) throws -> [KeptConflict] {
    let names = try ownNames()
    return try connection.rows("\(Self.selectConflicts) WHERE seq > ? ORDER BY seq", number) {
      try keptConflict($0, names)
    }
  }

  /// Returns the present states of conflicts' places, in the same order.
  func presentSides(of conflicts: [KeptConflict]) throws -> [PresentSide] {
    try connection.transaction(.deferred) {
      try conflicts.map { try presentSide(of: $0.conflict.column, in: $0.key) }
    }
  }

  private func presentSide(of column: Name?, in key: RecordKey) throws -> PresentSide {
    let table: TableSchema
    do {
      table = try schema(of: key.table)
    } catch is ReplicaError {
      // A table that was dropped has no row to show; its conflicts stay listed.
      return .unknown
    }
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
    guard try plan.exists(key.record) else { return .absent }
    guard let column else { return .exists }
    guard plan.known.contains(column) else { return .unknown }
    return .value(try value(of: column, in: key) ?? .null)
  }

  // MARK: Answering

  /// Answers a conflict with an ordinary operation, also if the row has the value already: the
  /// operation closes the question on all devices.
  func resolve(_ number: Int64, _ answer: ConflictAnswer) throws {
    let names = try ownNames()
    let found = try connection.first("\(Self.selectConflicts) WHERE seq = ?", number) {
      try keptConflict($0, names)
    }
    guard let kept = found else { throw ReplicaError.notFound("there is no conflict \(number)") }
    var answer = answer
    if case .set(let columns) = answer { answer = .set(try named(columns, in: kept.key.table)) }
    _ = try write { _ in
      switch ConflictDecision(answer, to: kept, try conflictFacts(kept, names)) {
      case .write(let columns): try self.write(columns, to: kept.key)
      case .delete:
        let table = try schema(of: kept.key.table)
        try ApplyPlan(table: table, rules: .standard, connection: connection)
          .delete(kept.key.record)
      case .leave: break
      }
      try markResolved(kept)
    }
  }

  private func conflictFacts(
    _ kept: KeptConflict, _ names: OwnNames
  ) throws -> ConflictDecision.Facts {
    if let column = kept.conflict.column {
      return ConflictDecision.Facts(current: try value(of: column, in: kept.key) ?? .null)
    }
    return ConflictDecision.Facts(
      lost: try connection.rows(
        """
        \(Self.selectConflicts) WHERE operation = ? AND record = ? AND tbl = ? AND col IS NOT NULL
        """, kept.operation, kept.key.record, kept.key.table
      ) { try keptConflict($0, names).conflict })
  }

  private func markResolved(_ kept: KeptConflict) throws {
    // The question of a record's existence includes its lost values.
    try connection.run(
      """
      UPDATE ferry_conflicts SET resolved = ?1 WHERE record = ?2 AND tbl = ?3 AND resolved IS NULL
        AND (seq = ?4 OR operation = ?5 AND ?6)
      """, wallClock(), kept.key.record, kept.key.table, kept.number, kept.operation,
      kept.conflict.column == nil)
  }

  /// Sets columns of a record and records them, even if unchanged. Restores a deleted record.
  private func write(_ columns: [Column], to key: RecordKey) throws {
    let table = try schema(of: key.table)
    let plan = ApplyPlan(table: table, rules: .standard, connection: connection)
    if let unknown = columns.first(where: { !plan.known.contains($0.name) }) {
      throw ReplicaError.notFound("table \(key.table) has no column \(unknown.name)")
    }
    let states = plan.unstamped(columns)
    guard try plan.exists(key.record) else {
      return try plan.upsert(key.record, states, isWhole: false, kept: [])
    }
    capture.beginApplying(key, isDeleting: false)
    capture.mode = .applying
    defer { capture.mode = .recording }
    _ = try plan.update(key.record, states)
    var json = JSONWriter()
    json.columns(columns)
    try connection.run(
      """
      INSERT INTO ferry_operations(seq, id, grp, base, tbl, record, kind, data)
      VALUES (\(OperationRecorder.newestOrder) + 1, ferry_operation(), ferry_group(), ferry_base(), ?, ?, 'update', ?)
      """, table.name, key.record, SQLiteText(json.finish()))
  }
}
