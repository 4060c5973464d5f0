import FerryConformance
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// Users who answer conflicts and undo their writes.
extension DeviceProcess {
  /// Conflicts and writes among which a user chooses: the newest ones.
  private static let choices = 30

  /// Answers a conflict, or undoes a write, if there is one.
  func answer(_ planned: PlannedAction, on database: Database) throws {
    if setting.hasRules, try sendAgain(planned, database) { return }
    var random = SeededRandom(planned.seed, "answer")
    if random.chance(1, in: 5) { return try undo(&random, database) }
    let ledger = device.ledgers[0].number
    let kept = try database.conflicts(Self.choices, ofLedger: ledger).filter {
      Workload.answered[$0.key.table] != nil
    }
    let open = kept.filter(\.isOpen)
    let among = open.isEmpty || random.chance(1, in: 3) ? kept : open
    guard !among.isEmpty else { return }
    let chosen = among[random.below(among.count)]
    let sides: [ConflictAnswer?] = [.keepLocal, .keepLocal, .keepRemote, .keepRemote, nil]
    guard let answer = sides[random.below(sides.count)] else {
      return try set(chosen, &random, database)
    }
    let isForLoser = (answer == .keepLocal) == chosen.isLosersOwn
    var evidence = AnswersKept.Answer(
      key: chosen.key, column: chosen.conflict.column, lost: chosen.conflict.lost,
      keepsLost: isForLoser, isEdit: try isOwnEdit(chosen, database),
      before: try row(chosen.key, database))
    if isForLoser, evidence.before == nil { evidence.listed = listed(chosen, among: kept) }
    do {
      try database.resolve(chosen.number, answer, ofLedger: ledger)
    } catch {
      setting.report(
        device,
        AnswersKept.judge(
          device: device.name, evidence, failure: "\(error)",
          lacksValue: Self.lacksValue(error, evidence)))
      throw error
    }
    evidence.after = try row(chosen.key, database)
    setting.report(device, AnswersKept.judge(device: device.name, evidence))
  }

  /// Returns `true` if a NOT NULL column had no value, or if the device lacks the values of a
  /// deleted parent.
  private static func lacksValue(_ error: any Error, _ answer: AnswersKept.Answer) -> Bool {
    switch ReplicaError(error) {
    case .database(let message, let code): SQLiteError(code: code, message: message).isNotNull
    case .cannotAnswer: !answer.listed.isEmpty
    default: false
    }
  }

  /// Returns the columns of a row that went with its parent, if their values are among the
  /// conflicts. Unless the file was lost, it has the parent's values, too.
  private func listed(_ chosen: KeptConflict, among kept: [KeptConflict]) -> Set<Name> {
    guard Workload.isBranch(chosen.key.table), chosen.isLosersOwn, device.hasWholeFile else {
      return []
    }
    let together = kept.filter { $0.operation == chosen.operation && $0.key == chosen.key }
    return Set(together.filter { $0.conflict.lost != .null }.compactMap(\.conflict.column))
  }

  /// Returns `true` if the deciding operation is a write of the losing device.
  private func isOwnEdit(_ kept: KeptConflict, _ database: Database) throws -> Bool {
    let own = try database.ownOperations(1_000, ofLedger: device.ledgers[0].number)
    let decided = own.first { $0.operation.id == kept.operation }?.operation
    return kept.isLosersOwn && decided.map { $0.kind == .insert || $0.kind == .update } ?? false
  }

  private func set(
    _ chosen: KeptConflict, _ random: inout SeededRandom, _ database: Database
  ) throws {
    guard let column = Workload.answered[chosen.key.table] else { return }
    let value = Value.text("chosen \(random.below(100))")
    try database.resolve(
      chosen.number, .set([Column(column, value)]), ofLedger: device.ledgers[0].number)
  }

  /// Sends a note again that a company has refused, now and then with other stars. Returns `false`
  /// if there is none.
  private func sendAgain(_ planned: PlannedAction, _ database: Database) throws -> Bool {
    let entries = try database.query(
      """
      SELECT DISTINCT entry FROM ferry_quarantine
      WHERE code = 'overruled' AND tbl = 'notes' AND instr(detail, '\(CompanyRules.condition)') > 0
      ORDER BY entry
      """
    ).compactMap { row -> Int64? in
      if case .integer(let entry)? = row.values.first { entry } else { nil }
    }
    if entries.isEmpty { return false }
    var random = SeededRandom(planned.seed, "again")
    let entry = entries[random.below(entries.count)]
    let stars = Column("stars", CompanyRules.stars(&random))
    do {
      try database.retry(
        entry, changing: random.chance(3, in: 4) ? [stars] : [],
        ofLedger: device.ledgers[0].number)
    } catch ReplicaError.cannotAnswer {
      // Deletes have no values to change.
    } catch ReplicaError.cannotRetry {
      // The note has gone.
    }
    return true
  }

  private func undo(_ random: inout SeededRandom, _ database: Database) throws {
    let ledger = device.ledgers[0].number
    let own = try database.ownOperations(Self.choices, ofLedger: ledger).filter {
      Workload.answered[$0.operation.key.table] != nil && $0.operation.kind != .batch
    }
    guard !own.isEmpty else { return }
    do {
      _ = try database.undo(own[random.below(own.count)].operation.id, ofLedger: ledger)
    } catch ReplicaError.cannotAnswer {
      // Later changes have replaced the values.
    }
  }

  /// Returns the row of a record in a table whose key is `id`.
  private func row(_ key: RecordKey, _ database: Database) throws -> [Column]? {
    let sql = "SELECT * FROM \(key.table) WHERE id = \(Value.text(key.record.text).sqlLiteral)"
    return try database.query(sql).first.map { row in
      zip(row.names, row.values).map { Column(Name($0), $1) }
    }
  }
}
