import FerryProtocol

/// Decides which operation answers a conflict, and which changes and own writes answer an open
/// question (SPEC.md §6, §15).
///
/// A pure machine: the replica's file loads the facts once, and executes the decision.
enum ConflictDecision: Equatable {
  /// Set columns of the record and record them, even if unchanged.
  case write([Column])
  /// Insert the record again, whole.
  case restore([Column])
  /// Apply the record, still waiting for a unique value, with other values.
  case adopt([Column])
  /// None: two records cannot have one unique value.
  case needsValue
  /// Delete the record.
  case delete
  /// Leave the record as it is.
  case leave

  /// The facts for the decision.
  struct Facts {
    /// True if the record has a row here.
    var exists = true
    /// The present value of the conflict's column; `nil` without a row, or if the table lacks it.
    var current: Value?
    /// Values lost by the deciding operation.
    var lost: [Conflict] = []
    /// The row as this device had it last, if it has none now.
    var former: FormerRow?
    /// True if the conflict's column is a sum: an operation may have only the added amount.
    var isSum = false
  }

  init(_ answer: ConflictAnswer, to kept: KeptConflict, _ facts: Facts) {
    if kept.holder != nil {
      self = Self.waiting(answer)
      return
    }
    let isForLoser = (answer == .keepLocal) == kept.isLosersOwn
    if case .set(let columns) = answer {
      self = facts.exists ? .write(columns) : .restore(facts.whole(of: kept, with: columns))
    } else if !facts.exists {
      self = isForLoser ? Self.returning(kept, facts) : .leave
    } else if let column = kept.conflict.column {
      let value = isForLoser ? kept.conflict.lost : facts.current
      self = value.map { .write([Column(column, $0)]) } ?? .leave
    } else {
      self = isForLoser ? Self.repeating(kept.conflict, facts) : .leave
    }
  }

  /// Returns the column of a conflict if an answer with values lacks it. Unless such an answer
  /// restores the record, it answers nothing.
  static func lacking(_ answer: ConflictAnswer, of kept: KeptConflict) -> Name? {
    guard kept.holder == nil, case .set(let columns) = answer, let asked = kept.conflict.column,
      !columns.contains(where: { $0.name == asked })
    else { return nil }
    return asked
  }

  /// Decides for a record that waits because a row here has its unique value. With the own side, it
  /// continues to wait.
  private static func waiting(_ answer: ConflictAnswer) -> ConflictDecision {
    switch answer {
    case .set(let columns): .adopt(columns)
    case .keepLocal: .leave
    case .keepRemote: .needsValue
    }
  }

  /// Repeats the losing operation on the existence of a record that exists now: an edit with the
  /// lost values, or a delete.
  private static func repeating(_ conflict: Conflict, _ facts: Facts) -> ConflictDecision {
    let columns = facts.together(with: conflict)
    return columns.isEmpty ? .delete : .write(columns)
  }

  /// Restores a deleted record. A losing delete is in effect already.
  private static func returning(_ kept: KeptConflict, _ facts: Facts) -> ConflictDecision {
    let conflict = kept.conflict
    if let column = conflict.column {
      let isInRow = facts.isSum && facts.former != nil
      let chosen = isInRow ? [] : [Column(column, conflict.lost)]
      return .restore(facts.whole(of: kept, with: chosen))
    }
    let isOfFormer =
      facts.former.map { former in
        // The conflict's operation deleted a row that went with a parent.
        former.deleted == conflict.winner
          || former.deleted != conflict.loser
            && former.deleted.time == kept.operation.value.timestamp
      } ?? false
    return isOfFormer || !facts.together(with: conflict).isEmpty
      ? .restore(facts.whole(of: kept, with: [])) : .leave
  }

  // MARK: Questions

  /// The end of an open question.
  enum QuestionEnd: Equatable {
    /// This device's user has written since.
    case answered
    /// The record is gone, or a third device has written. The lost value stays listed, and can be
    /// chosen.
    case listed
  }

  /// Returns the effect of a pulled change on a question; `nil` if it stays open. The winning
  /// device does not know the lost value, so a later write from there is no answer.
  static func end(
    of question: Conflict, by state: RecordState, own: OwnNames
  ) -> QuestionEnd? {
    let newest = max(question.loser, question.winner)
    if let deleted = state.deleted?.stamp, !state.isAlive {
      guard question.column != nil || deleted > newest else { return nil }
      return own.wrote(deleted) ? .answered : .listed
    }
    let write =
      question.column.map { name in state.columns.first { $0.name == name }?.stamp }
      ?? state.inserted?.stamp
    guard let write, write > newest else { return nil }
    if own.wrote(write) { return .answered }
    // Another device with the same question may have answered.
    return write.device == question.winner.device ? nil : .listed
  }

  /// Returns true if an own operation answers a question: a later delete, a later write of the
  /// column, or any later write if the question is about the record's existence. If it loses as
  /// well, there is another question. Identifiers have the order of recording; the server may have
  /// changed the times.
  static func isAnswered(_ question: KeptConflict, by operation: SyncOperation) -> Bool {
    guard question.key == operation.key, operation.id > question.operation else { return false }
    guard operation.kind != .delete, let name = question.conflict.column else { return true }
    return operation.columns.contains { $0.name == name }
  }
}

/// The values of a row no longer on this device.
struct FormerRow: Equatable {
  var columns: [Column]
  /// The delete that removed the row.
  var deleted: Stamp
}

extension ConflictDecision.Facts {
  /// Returns the values lost by the loser of a conflict through the same operation.
  fileprivate func together(with conflict: Conflict) -> [Column] {
    lost.filter { $0.loser.device == conflict.loser.device }.compactMap { lost in
      lost.column.map { Column($0, lost.lost) }
    }
  }

  /// Returns all values of a restored record. Without the former row, these are the values lost
  /// together.
  fileprivate func whole(of kept: KeptConflict, with chosen: [Column]) -> [Column] {
    var columns = former?.columns ?? together(with: kept.conflict)
    for column in chosen {
      if let place = columns.firstIndex(where: { $0.name == column.name }) {
        columns[place] = column
      } else {
        columns.append(column)
      }
    }
    return columns
  }
}
