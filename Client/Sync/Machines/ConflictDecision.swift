import FerryProtocol

/// Decides which operation answers a conflict, and which changes answer an open question (SPEC.md
/// §6, §15).
///
/// A pure machine: the replica's file loads the facts once, and executes the decision.
enum ConflictDecision: Equatable {
  /// Set columns of the record and record them, even if unchanged; restore a deleted record.
  case write([Column])
  /// Delete the record.
  case delete
  /// Leave the record as it is.
  case leave

  /// The facts that decide.
  struct Facts {
    /// The present value of the conflict's column; NULL without a row.
    var current = Value.null
    /// Values that the deciding operation lost, of a conflict about the record's existence.
    var lost: [Conflict] = []
  }

  init(_ answer: ConflictAnswer, to kept: KeptConflict, _ facts: Facts) {
    let isForLoser = (answer == .keepLocal) == kept.isLosersOwn
    if case .set(let columns) = answer {
      self = .write(columns)
    } else if let column = kept.conflict.column {
      self = .write([Column(column, isForLoser ? kept.conflict.lost : facts.current)])
    } else if isForLoser {
      self = Self.repeating(kept.conflict, facts.lost)
    } else {
      self = .leave
    }
  }

  /// Repeats the losing operation on the record's existence. An edit of a deleted record restores it
  /// with its lost values; a delete deletes it.
  private static func repeating(_ conflict: Conflict, _ lost: [Conflict]) -> ConflictDecision {
    let columns = lost.filter { $0.loser.device == conflict.loser.device }.compactMap { lost in
      lost.column.map { Column($0, lost.lost) }
    }
    return columns.isEmpty ? .delete : .write(columns)
  }

  /// Whether a change of a record answers a question about it: the author of the change had seen
  /// both sides.
  static func isAnswered(_ question: Conflict, by state: RecordState) -> Bool {
    let newest = max(question.loser, question.winner)
    if let deleted = state.deleted?.stamp, !state.isAlive { return deleted > newest }
    guard let name = question.column else {
      return (state.inserted?.stamp).map { $0 > newest } ?? false
    }
    return state.columns.contains { $0.name == name && $0.stamp > newest }
  }
}
