import FerryPersistence
import FerryProtocol

/// Answers to conflicts and rejections, and undoing within a transaction of ``Replica/write(_:)``, for harnesses
/// that need the operations of the transaction. The calls of ``Replica`` make a separate
/// transaction.
extension Database {
  /// Returns conflicts, newest first.
  ///
  /// - Parameter number: the space's number in the file.
  package func conflicts(_ limit: Int, ofLedger number: Int) throws -> [KeptConflict] {
    let file = try ledger(number)
    try file.conflictLog.resolveQuestionsByOwnWrites()
    return try file.conflicts.newest(limit, own: file.ownNames())
  }

  /// Answers a conflict as ``Replica/resolve(_:_:)`` does.
  package func resolve(
    _ conflict: Int64, _ answer: ConflictAnswer, ofLedger number: Int
  ) throws {
    try mapped { _ = try ledger(number).conflictAnswers.answer(conflict, answer) }
  }

  /// Returns the operations of this device, newest first.
  package func ownOperations(_ limit: Int, ofLedger number: Int) throws -> [OwnOperation] {
    try ledger(number).queue.newestOwn(limit)
  }

  /// Undoes an operation as ``Operations/undo(_:)`` does.
  package func undo(_ operation: OperationID, ofLedger number: Int) throws -> Int {
    try mapped { try ledger(number).undoSteps.revert(operation) }
  }

  /// Retries an entry of the quarantine as ``Quarantine/retry(_:changing:)`` does.
  package func retry(
    _ entry: Int64, changing changes: [Column], ofLedger number: Int
  ) throws {
    try mapped { try ledger(number).quarantineAnswers.retry(entry, changing: changes) }
  }

  private func ledger(_ number: Int) throws -> ReplicaFile {
    guard let spaces = owner as? FileSpaces else {
      throw ReplicaError.database("an answer writes; use Replica.write", code: 8)
    }
    return try spaces.file(number)
  }

  private func mapped<T>(_ body: () throws -> T) throws -> T {
    do { return try body() } catch { throw ReplicaError(error) }
  }
}
