import FerryProtocol
import FerrySQLite

/// Lost values, and questions for the user (SPEC.md §6, §15).
struct ConflictLog {
  let file: ReplicaFile

  private var conflicts: ConflictTable { file.conflicts }

  // MARK: Lost values

  /// Stores a conflict; ignores a known one.
  func store(
    _ conflict: Conflict, of operation: OperationID, on key: RecordKey,
    at sequence: SequenceNumber? = nil
  ) throws {
    try conflicts.store(conflict, of: operation, on: key, at: sequence, now: file.wallClock())
    try file.deviceNames.expectNames(of: conflict)
  }

  /// Stores this device's losses listed by a page, under the present or a former identifier.
  func store(_ notices: [Notice]) throws {
    if notices.isEmpty { return }
    let names = try file.ownNames()
    for notice in notices {
      for conflict in notice.conflicts where names.wrote(conflict.loser) {
        try store(conflict, of: notice.operation, on: notice.key, at: notice.sequence)
      }
    }
  }

  // MARK: Questions

  /// Ends the questions on a record with no choice left after a pulled change.
  func resolveQuestions(by state: RecordState, on key: RecordKey) throws {
    let names = try file.ownNames()
    for question in try conflicts.openQuestions(on: key, own: names) {
      switch ConflictDecision.end(of: question.conflict, by: state, own: names) {
      case .answered: try conflicts.resolve(question, now: file.wallClock())
      case .listed: try conflicts.withdraw(question)
      case nil: break
      }
    }
  }

  /// Closes the questions answered by this device's pending operations.
  func resolveQuestionsByOwnWrites() throws {
    guard try conflicts.hasOpenQuestions() else { return }
    let answered = try conflicts.openQuestions(own: file.ownNames()).filter { question in
      try file.queue.operations(on: question.key).contains {
        ConflictDecision.isAnswered(question, by: $0)
      }
    }
    if answered.isEmpty { return }
    let resolve = {
      for question in answered { try conflicts.resolve(question, now: file.wallClock()) }
    }
    let connection = file.connection
    try connection.isInTransaction ? resolve() : connection.transaction { try resolve() }
  }

  // MARK: Former rows

  /// Stores the row deleted by a change, if this device has written to it, or lost a value of it.
  func storeFormerRow(_ change: Change, hasOwnWrites: Bool) throws {
    guard let deleted = change.state.deleted?.stamp,
      try hasOwnWrites || conflicts.concern(change.key),
      let former = try file.formerParents.row(change.key)
    else { return }
    try file.formerParents.store(former, of: change.key, deletedBy: deleted)
  }
}
