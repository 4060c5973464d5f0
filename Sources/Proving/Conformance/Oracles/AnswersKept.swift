import FerryProtocol

/// Checks the effect of answers to conflicts: at once on the device, and at the end.
///
/// - The side of the loser has the lost value in the record afterwards. A missing record comes back
///   whole: the answer never fails for a NOT NULL column.
/// - A row that went with its parent comes back with a value in each column listed as lost, and so
///   do the parents.
/// - The side of the winner changes no row, and brings no record back.
/// - At the end, no question is open about a column of a missing record, or about a part written
///   since by the asked device. A merged operation (SPEC.md §4) writes each column at its own time.
///   Not judged are lost, copied and restored files, which share identifiers, and everything after
///   the server was restored or has lied.
package struct AnswersKept: Oracle {
  package static let name = "answers-kept"

  /// An answer of a user who keeps one side of a conflict, with the record's row.
  package struct Answer {
    package var key: RecordKey
    /// `nil` if the conflict is about the record's existence.
    package var column: Name?
    /// The lost value.
    package var lost: Value
    /// True if the user chose the lost side.
    package var keepsLost: Bool
    /// True if this side is a write of the device, and no delete.
    package var isEdit: Bool
    /// Of a row that went with its parent: the columns with values listed as lost together.
    package var listed: Set<Name> = []
    /// The row before the answer; `nil` if there was none.
    package var before: [Column]?
    package var after: [Column]?

    package init(
      key: RecordKey, column: Name?, lost: Value, keepsLost: Bool, isEdit: Bool,
      before: [Column]?, after: [Column]? = nil
    ) {
      (self.key, self.column, self.lost, self.keepsLost) = (key, column, lost, keepsLost)
      (self.isEdit, self.before, self.after) = (isEdit, before, after)
    }

    fileprivate var place: String { "\(key.table)/\(key.record)" }
  }

  private var doubtful: Set<String> = []
  private var isOff = false

  package init() {}

  /// Judges an accepted answer.
  package static func judge(device: String, _ answer: Answer) -> [Violation] {
    fault(of: answer).map {
      [Violation(oracle: name, "\(device) answers a conflict of \(answer.place): \($0)")]
    } ?? []
  }

  /// Judges a failed answer. A missing parent, or a value of another record, may be a reason.
  ///
  /// - Parameter lacksValue: True if a NOT NULL column had no value, or if the device lacks a
  ///   parent's values.
  package static func judge(
    device: String, _ answer: Answer, failure: String, lacksValue: Bool
  ) -> [Violation] {
    guard lacksValue else { return [] }
    return [Violation(oracle: name, "\(device) cannot answer for \(answer.place): \(failure)")]
  }

  private static func fault(of answer: Answer) -> String? {
    guard answer.keepsLost else {
      return answer.before == answer.after ? nil : "the winner's side changes the row"
    }
    guard let after = answer.after else {
      let isLost = answer.isEdit || answer.column != nil || !answer.listed.isEmpty
      return isLost ? "the record does not come back" : nil
    }
    if let lost = after.first(where: { $0.value == .null && answer.listed.contains($0.name) }) {
      return "\(lost.name) is NULL afterwards"
    }
    guard let column = answer.column else { return nil }
    guard let value = after.first(where: { $0.name == column })?.value, value != answer.lost else {
      return nil
    }
    return "\(column) is \(value) instead of \(answer.lost)"
  }

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .lostPower(let device, _): doubtful.insert(device)
    case .copied(let device, let original, _): doubtful.formUnion([device, original])
    case .serverWentBack, .serverLies: isOff = true
    case .committed, .read, .confirmed: break
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    if isOff { return [] }
    let judged = final.replicas.filter { !doubtful.contains($0.key) }
    return judged.sorted { $0.key < $1.key }.flatMap { name, replica in
      replica.questions.compactMap { question in
        Self.fault(of: question, final.server).map {
          Violation(oracle: Self.name, "\(name) is asked about \(question.place), \($0)")
        }
      }
    }
  }

  private static func fault(of question: OpenQuestion, _ server: ServerEvidence) -> String? {
    if question.column != nil, server.records[question.key]?.isAlive != true {
      return "which does not exist"
    }
    let later = server.history.first { entry in
      entry.key == question.key && entry.device == question.loser.device
        && (entry.time(of: question.column).map { $0 > question.loser.time } ?? false)
    }
    return later.map { "which it has written since: \($0.place)" }
  }
}

extension HistoryEntry {
  /// Returns the time of the write to a part of the record, `nil` without one: of any write if the
  /// part is the record's existence, else of a delete or of a write of the column.
  fileprivate func time(of part: Name?) -> HybridTimestamp? {
    guard let part, kind != .delete else { return time }
    return columns.contains { $0.name == part } ? stamp(of: part).time : nil
  }
}

/// A question of a device without an answer from the user.
package struct OpenQuestion: Sendable, Equatable {
  package var key: RecordKey
  /// `nil` if the question is about the record's existence.
  package var column: Name?
  /// The losing write.
  package var loser: Stamp

  package init(key: RecordKey, column: Name?, loser: Stamp) {
    (self.key, self.column, self.loser) = (key, column, loser)
  }

  fileprivate var place: String {
    "\(key.table)/\(key.record)" + (column.map { ".\($0)" } ?? "")
  }
}
