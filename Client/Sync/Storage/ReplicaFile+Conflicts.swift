import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Values that lost, and questions for the user (SPEC.md §6, §15).
extension ReplicaFile {
  var conflicts: ConflictTable { ConflictTable(connection: connection, limits: limits) }

  // MARK: Noting

  /// Stores a conflict; ignores one that is known already.
  func note(
    _ conflict: Conflict, of operation: OperationID, on key: RecordKey,
    at sequence: SequenceNumber? = nil
  ) throws {
    try conflicts.note(conflict, of: operation, on: key, at: sequence, now: wallClock())
    try deviceNames.expectNames(of: conflict)
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

  /// Closes the questions on a record that are older than a change of it: the author of the change
  /// had seen both sides.
  func settleQuestions(by state: RecordState, on key: RecordKey) throws {
    let questions = try conflicts.openQuestions(on: key, own: ownNames())
    for question in questions where ConflictDecision.isAnswered(question.conflict, by: state) {
      try conflicts.settle(question, now: wallClock())
    }
  }

  // MARK: Looking

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
    try write { _ in try self.answer(number, answer) }
  }

  /// Answers a conflict within an open transaction.
  func answer(_ number: Int64, _ answer: ConflictAnswer) throws {
    let names = try ownNames()
    guard let kept = try conflicts.conflict(number, own: names) else {
      throw ReplicaError.notFound("there is no conflict \(number)")
    }
    var answer = answer
    if case .set(let columns) = answer { answer = .set(try named(columns, in: kept.key.table)) }
    switch ConflictDecision(answer, to: kept, try conflictFacts(kept, names)) {
    case .write(let columns): try write(columns, to: kept.key)
    case .delete:
      let table = try schema(of: kept.key.table)
      try ApplyPlan(table: table, rules: .standard, connection: connection)
        .delete(kept.key.record)
    case .leave: break
    }
    try conflicts.markResolved(kept, now: wallClock())
  }

  private func conflictFacts(
    _ kept: KeptConflict, _ names: OwnNames
  ) throws -> ConflictDecision.Facts {
    if let column = kept.conflict.column {
      return ConflictDecision.Facts(current: try value(of: column, in: kept.key) ?? .null)
    }
    return ConflictDecision.Facts(
      lost: try conflicts.lostValues(with: kept, own: names).map(\.conflict))
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
