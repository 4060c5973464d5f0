import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Lost values, and questions for the user (SPEC.md §6, §15).
extension ReplicaFile {
  var conflicts: ConflictTable { ConflictTable(connection: connection, limits: limits) }

  // MARK: Noting

  /// Stores a conflict; ignores a known one.
  func store(
    _ conflict: Conflict, of operation: OperationID, on key: RecordKey,
    at sequence: SequenceNumber? = nil
  ) throws {
    try conflicts.store(conflict, of: operation, on: key, at: sequence, now: wallClock())
    try deviceNames.expectNames(of: conflict)
  }

  /// Stores this device's losses listed by a page, under the present or a former identifier.
  func store(_ notices: [Notice]) throws {
    if notices.isEmpty { return }
    let names = try ownNames()
    for notice in notices {
      for conflict in notice.conflicts where names.wrote(conflict.loser) {
        try store(conflict, of: notice.operation, on: notice.key, at: notice.sequence)
      }
    }
  }

  // MARK: Resolving

  /// Ends the questions on a record with no choice left after a pulled change.
  func resolveQuestions(by state: RecordState, on key: RecordKey) throws {
    let names = try ownNames()
    for question in try conflicts.openQuestions(on: key, own: names) {
      switch ConflictDecision.end(of: question.conflict, by: state, own: names) {
      case .answered: try conflicts.resolve(question, now: wallClock())
      case .listed: try conflicts.withdraw(question)
      case nil: break
      }
    }
  }

  /// Closes the questions answered by this device's pending operations.
  func resolveQuestionsByOwnWrites() throws {
    guard try conflicts.hasOpenQuestions() else { return }
    let answered = try conflicts.openQuestions(own: ownNames()).filter { question in
      try queue.operations(on: question.key).contains {
        ConflictDecision.isAnswered(question, by: $0)
      }
    }
    if answered.isEmpty { return }
    let settle = { [self] in
      for question in answered { try conflicts.resolve(question, now: wallClock()) }
    }
    try connection.isInTransaction ? settle() : connection.transaction { try settle() }
  }

  // MARK: Former rows

  var formerRows: FormerRows { FormerRows(connection: connection, limits: limits) }

  /// Stores the row deleted by a change, if this device has written to it, or lost a value of it.
  func storeFormerRow(_ change: Change, _ table: TableSchema, hasOwnWrites: Bool) throws {
    guard let deleted = change.state.deleted?.stamp,
      try hasOwnWrites || conflicts.concern(change.key),
      let former = try referringRow(change.key)
    else { return }
    try storeFormerRow(former, of: change.key, deletedBy: deleted)
  }

  /// Returns the row of a record as this device had it last: before another device deleted it, or this
  /// one.
  func formerRow(of key: RecordKey) throws -> FormerRow? {
    let stored = try formerRows.row(of: key)
    guard let own = try queue.newestDelete(of: key) else { return stored }
    let deleted = Stamp(time: own.time, device: try identity().device)
    if let stored, stored.deleted > deleted { return stored }
    return FormerRow(columns: own.columns, deleted: deleted)
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
      // A dropped table has no row to show; the conflicts stay listed.
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
  /// operation closes the question on all devices. Returns true if there is an operation: a record
  /// that stays deleted needs none.
  func resolve(_ number: Int64, _ answer: ConflictAnswer) throws -> Bool {
    try write { _ in try self.answer(number, answer) }
  }

  /// Answers a conflict within an open transaction.
  func answer(_ number: Int64, _ answer: ConflictAnswer) throws -> Bool {
    let names = try ownNames()
    guard let kept = try conflicts.conflict(number, own: names) else {
      throw ReplicaError.notFound(.conflict(number))
    }
    var answer = answer
    if case .set(let columns) = answer { answer = .set(try named(columns, in: kept.key.table)) }
    let facts = try conflictFacts(kept, names)
    if facts.exists, let column = ConflictDecision.lacking(answer, of: kept) {
      throw ReplicaError.cannotAnswer(
        "the answer has no value for column \(column), which conflict \(number) is about",
        advice: "add one with --set")
    }
    let decision = ConflictDecision(answer, to: kept, facts)
    switch decision {
    case .write(let columns):
      try returnParents(of: kept.key, columns)
      try write(columns, to: kept.key)
    case .adopt(let columns):
      try checkKnown(columns, try plainPlan(for: kept.key.table))
      guard try UniqueValueQuestions(self).adopt(columns, by: kept.key) else {
        throw ReplicaError.cannotAnswer(
          "\(kept.key.table) \(kept.key.record) does not wait any more",
          advice: "look at the conflicts again")
      }
    case .needsValue:
      throw ReplicaError.cannotAnswer(
        "two records have this value",
        advice: "choose another one for \(kept.key.record) with --set, or change "
          + "\(kept.holder ?? "the other record") here")
    case .restore(let columns):
      let plan = try plainPlan(for: kept.key.table)
      if case .set(let chosen) = answer { try checkKnown(chosen, plan) }
      try returnParents(of: kept.key, columns)
      try plan.upsert(kept.key.record, plan.unstamped(columns), isWhole: false, kept: [])
    case .delete: try plainPlan(for: kept.key.table).delete(kept.key.record)
    case .leave: break
    }
    try conflicts.markResolved(kept, now: wallClock())
    return decision != .leave
  }

  func plainPlan(for table: Name) throws -> ApplyPlan {
    ApplyPlan(table: try schema(of: table), rules: .standard, connection: connection)
  }

  private func conflictFacts(
    _ kept: KeptConflict, _ names: OwnNames
  ) throws -> ConflictDecision.Facts {
    let key = kept.key
    var facts = ConflictDecision.Facts()
    facts.lost = try conflicts.lostValues(with: kept, own: names).map(\.conflict)
    switch try presentSide(of: kept.conflict.column, in: key) {
    case .value(let value): facts.current = value
    case .exists, .unknown: break
    case .absent:
      facts.exists = false
      facts.former = try formerRow(of: key)
      let rules = try schemas.current().rules(for: key.table)
      facts.isSum = kept.conflict.column.map { rules.policy(of: $0) == .counter } ?? false
    }
    return facts
  }

  /// Throws for a column missing from the table.
  func checkKnown(_ columns: [Column], _ plan: ApplyPlan) throws {
    guard let unknown = columns.first(where: { !plan.known.contains($0.name) }) else { return }
    throw ReplicaError.cannotAnswer(
      plan.table.lacks(unknown.name), advice: "choose one of these columns")
  }

  /// Sets columns of an existing record and records them, even if unchanged.
  private func write(_ columns: [Column], to key: RecordKey) throws {
    let plan = try plainPlan(for: key.table)
    try checkKnown(columns, plan)
    let former = try row(key, plan.table, columns.map(\.name)) ?? []
    capture.beginApplying(key, .values)
    capture.mode = .applying
    defer { capture.mode = .recording }
    _ = try plan.update(key.record, plan.unstamped(columns))
    try operations.recordUpdate(of: key, columns, former: former)
  }
}
