import FerryProtocol
import FerrySQLite

/// The user's answers to conflicts (SPEC.md §6, §15): the driver of ``ConflictDecision``.
struct ConflictAnswers {
  let file: ReplicaFile

  private var connection: SQLiteConnection { file.connection }
  private var conflicts: ConflictTable { file.conflicts }

  // MARK: Looking

  /// Returns the present states of conflicts' places, in the same order.
  func presentSides(of conflicts: [KeptConflict]) throws -> [PresentSide] {
    try connection.transaction(.deferred) {
      try conflicts.map { try presentSide(of: $0.conflict.column, in: $0.key) }
    }
  }

  private func presentSide(of column: Name?, in key: RecordKey) throws -> PresentSide {
    let plan: ApplyPlan
    do {
      plan = try file.tables.plainPlan(for: key.table)
    } catch is ReplicaError {
      // A dropped table has no row to show; the conflicts stay listed.
      return .unknown
    }
    guard try plan.exists(key.record) else { return .absent }
    guard let column else { return .exists }
    guard plan.known.contains(column) else { return .unknown }
    return .value(try file.rows.value(of: column, in: key) ?? .null)
  }

  // MARK: Answering

  /// Answers a conflict with an ordinary operation, also if the row has the value already: the
  /// operation closes the question on all devices. Returns true if there is an operation: a record
  /// that stays deleted needs none.
  func resolve(_ number: Int64, _ answer: ConflictAnswer) throws -> Bool {
    try file.write { _ in try self.answer(number, answer) }
  }

  /// Answers a conflict within an open transaction.
  func answer(_ number: Int64, _ answer: ConflictAnswer) throws -> Bool {
    let names = try file.ownNames()
    guard let kept = try conflicts.conflict(number, own: names) else {
      throw ReplicaError.notFound(.conflict(number))
    }
    var answer = answer
    if case .set(let columns) = answer, let table = try? file.tables.schema(of: kept.key.table) {
      answer = .set(table.spaceColumns(columns))
    }
    let facts = try conflictFacts(kept, names)
    if facts.exists, let column = ConflictDecision.lacking(answer, of: kept) {
      throw ReplicaError.cannotAnswer(
        "the answer has no value for column \(column), which conflict \(number) is about",
        advice: "add one with --set")
    }
    let decision = ConflictDecision(answer, to: kept, facts)
    switch decision {
    case .write(let columns):
      try file.formerParents.insert(for: kept.key, columns)
      try write(columns, to: kept.key)
    case .adopt(let columns):
      try file.tables.plainPlan(for: kept.key.table).checkKnown(columns)
      guard try UniqueValueQuestions(file).adopt(columns, by: kept.key) else {
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
      let plan = try file.tables.plainPlan(for: kept.key.table)
      if case .set(let chosen) = answer { try plan.checkKnown(chosen) }
      try file.formerParents.insert(for: kept.key, columns)
      try plan.upsert(kept.key.record, plan.unstamped(columns), isWhole: false, kept: [])
    case .delete: try file.tables.plainPlan(for: kept.key.table).delete(kept.key.record)
    case .leave: break
    }
    try conflicts.markResolved(kept, now: file.wallClock())
    return decision != .leave
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
      facts.former = try file.formerRows.newest(of: key, by: file.identity().device)
      let rules = try file.tables.schemas.current().rules(for: key.table)
      facts.isSum = kept.conflict.column.map { rules.policy(of: $0) == .counter } ?? false
    }
    return facts
  }

  /// Sets columns of an existing record and records them, even if unchanged.
  private func write(_ columns: [Column], to key: RecordKey) throws {
    let plan = try file.tables.plainPlan(for: key.table)
    try plan.checkKnown(columns)
    let former = try file.rows.row(key, plan.table, columns.map(\.name)) ?? []
    file.capture.beginApplying(key, .values)
    try file.capture.during(.applying) {
      _ = try plan.update(key.record, plan.unstamped(columns))
      try file.operations.recordUpdate(of: key, columns, former: former)
    }
  }
}

extension TableSchema {
  /// Returns values of the user's with the names in the space of their columns. The user may know a
  /// column by either name; the one in this file counts first.
  func spaceColumns(_ columns: [Column]) -> [Column] {
    columns.map { column in
      let info = self.columns.first { $0.local == column.name }
      return Column(info?.name ?? column.name, column.value)
    }
  }
}

extension ApplyPlan {
  /// Throws for a column missing from the table.
  func checkKnown(_ columns: [Column]) throws {
    guard let unknown = columns.first(where: { !known.contains($0.name) }) else { return }
    throw ReplicaError.cannotAnswer(
      table.lacks(unknown.name), advice: "choose one of these columns")
  }
}
