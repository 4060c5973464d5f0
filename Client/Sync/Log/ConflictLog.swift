import FerryProtocol
import FerrySQLite

/// Lost values, and questions for the user (SPEC.md §6, §15).
struct ConflictLog {
  let conflicts: ConflictTable
  let queue: OperationTable
  let deviceNames: DeviceNameTable
  /// Returns this device's identifiers.
  let own: () throws -> OwnNames
  let wallClock: () -> Int64

  // MARK: Lost values

  /// Stores a conflict; ignores a known one.
  func store(
    _ conflict: Conflict, of operation: OperationID, on key: RecordKey,
    at sequence: SequenceNumber? = nil
  ) throws {
    try conflicts.store(conflict, of: operation, on: key, at: sequence, now: wallClock())
    try deviceNames.expectNames(of: conflict)
  }

  /// Stores this device's losses listed by a page, under the present or a former identifier. Values
  /// overruled with a reason go to the quarantine instead (``OverruledWrites``).
  func store(_ notices: [Notice]) throws {
    if notices.isEmpty { return }
    let names = try own()
    for notice in notices where notice.overruling == nil {
      for conflict in notice.conflicts where names.wrote(conflict.loser) {
        try store(conflict, of: notice.operation, on: notice.key, at: notice.sequence)
      }
    }
  }

  // MARK: Questions

  /// Ends the questions on a record with no choice left after a pulled change.
  func resolveQuestions(by state: RecordState, on key: RecordKey) throws {
    let names = try own()
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
    let answered = try conflicts.openQuestions(own: own()).filter { question in
      try queue.operations(on: question.key).contains {
        ConflictDecision.isAnswered(question, by: $0)
      }
    }
    if answered.isEmpty { return }
    let resolve = {
      for question in answered { try conflicts.resolve(question, now: wallClock()) }
    }
    let connection = conflicts.connection
    try connection.isInTransaction ? resolve() : connection.transaction { try resolve() }
  }
}
