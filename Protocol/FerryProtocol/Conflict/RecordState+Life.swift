// Deletes against edits, if a table's rules are not the standard ones (SPEC.md §6). They are
// decided before the registers.

extension RecordState {
  /// Decides whether the record exists after the operation. Returns `true` if the operation lost as
  /// a whole.
  mutating func settlesLife(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber, _ rules: TableRules,
    _ outcome: inout Outcome
  ) -> Bool {
    guard operation.kind != .delete else {
      return settlesDelete(operation, stamp, sequence, rules, &outcome)
    }
    guard let deleted, !isAlive else { return false }
    let isUnseen = deleted.isUnseen(by: stamp.device, since: operation.base)
    if isUnseen && rules.deletes == .editWins && (operation.kind == .insert || inserted != nil) {
      revive(from: deleted, stamp, sequence, &outcome)
      return false
    }
    let isQuestion = isUnseen && rules.deletes == .ask
    if operation.kind == .insert, !isQuestion,
      operation.insertStamp(within: stamp) > deleted.stamp
    {
      // A new life holds nothing of the former one, which the author knew to be over.
      if !isUnseen { columns = [] }
      return false
    }
    loseAll(operation, stamp, to: deleted.stamp, isQuestion: isQuestion, &outcome)
    self.deleted?.sequence = sequence
    return true
  }

  /// Makes a delete lose if the author had not seen all of the record.
  private mutating func settlesDelete(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber, _ rules: TableRules,
    _ outcome: inout Outcome
  ) -> Bool {
    guard rules.deletes != .deleteWins, !rules.isAuthority, isAlive,
      let winner = newestUnseen(by: stamp.device, since: operation.base)
    else { return false }
    outcome.lose(.existence(stamp, to: winner, isQuestion: rules.deletes == .ask))
    touchAll(sequence)
    return true
  }

  private func newestUnseen(by device: DeviceID, since base: SequenceNumber) -> Stamp? {
    var newest: Stamp?
    if let inserted, inserted.isUnseen(by: device, since: base) { newest = inserted.stamp }
    for column in columns where column.isUnseen(by: device, since: base) {
      newest = newest.map { max($0, column.stamp) } ?? column.stamp
    }
    return newest
  }

  /// Makes the record exist again, with all columns hidden by the delete; the deleting device gets
  /// a notice.
  private mutating func revive(
    from deleted: SequencedStamp, _ stamp: Stamp, _ sequence: SequenceNumber,
    _ outcome: inout Outcome
  ) {
    outcome.conflicts.append(.existence(deleted.stamp, to: stamp))
    self.deleted = nil
    touchAll(sequence)
  }

  /// Lists a write to a deleted record as lost: the existence, and all values later than the
  /// delete, which nobody sees.
  func loseLife(
    _ operation: SyncOperation, _ loser: Stamp, _ stamp: Stamp, to winner: Stamp,
    _ outcome: inout Outcome
  ) {
    outcome.lose(.existence(loser, to: winner))
    for column in operation.columns {
      let own = operation.stamp(of: column.name, within: stamp)
      let isListed = outcome.conflicts.contains { $0.column == column.name && $0.loser == own }
      if isListed { continue }
      outcome.lose(Conflict(column: column.name, lost: column.value, loser: own, winner: winner))
    }
  }

  private func loseAll(
    _ operation: SyncOperation, _ stamp: Stamp, to winner: Stamp, isQuestion: Bool,
    _ outcome: inout Outcome
  ) {
    outcome.lose(.existence(stamp, to: winner, isQuestion: isQuestion))
    for column in operation.columns {
      outcome.lose(
        Conflict(
          column: column.name, lost: column.value,
          loser: operation.stamp(of: column.name, within: stamp), winner: winner))
    }
  }
}
