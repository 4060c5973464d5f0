import FerryProtocol

/// Records with changes that a pull does not apply as they arrive.
struct DeferredRecords {
  /// Records deferred without an attempt, with the reason; `nil` for a violated foreign key.
  var reasons: [RecordKey: String?] = [:]
  /// The parent of each deferred record. It is fetched once: the server may have deleted it.
  var parents: [RecordKey: RecordKey] = [:]
  /// Records that end the transaction, with the event they wait for.
  var ended: [RecordKey: Deferral] = [:]
  /// The deferred parent of each deferred record. The list has it.
  var lacking: [RecordKey: RecordKey] = [:]
  /// Deleted records with referring rows later in the list. Their delete waits for the rest of the
  /// list.
  var held: Set<RecordKey> = []
  /// Records deleted by this device and restored because rows refer to them.
  var recalled: Set<RecordKey> = []
  /// True if no record may return: one of them refers to a row that cannot.
  var isRecallOff = false
  /// Those of them with a question to the user.
  var asked: Set<RecordKey> = []
  /// Records that lose their deleted parent (ON DELETE SET NULL, SET DEFAULT).
  var released: [RecordKey: ForeignKey] = [:]
  /// Deleted records, because they go with a deleted record.
  var orphans: Set<RecordKey> = []
  /// True if the pass searches for records deleted by the server, and for records missing there.
  var isSearching = false

  /// Defers records, and at once all records that need them.
  mutating func leaveOut(
    _ records: Set<RecordKey>, _ dependants: DependentRecords<RecordKey>,
    besides settled: Set<RecordKey> = []
  ) {
    var dependants = dependants
    for key in records { reasons.updateValue(nil, forKey: key) }
    for (child, parent) in dependants.lacking(records)
    where !reasons.keys.contains(child) && !settled.contains(child) {
      reasons.updateValue(nil, forKey: child)
      lacking[child] = parent
    }
  }

  /// Defers a record that ends the transaction when it is applied.
  mutating func leaveOut(_ record: RecordEndedTransaction) {
    reasons.updateValue(record.reason, forKey: record.key)
    ended[record.key] = record.isAlone ? .definition : .rows
  }

  /// Returns the reason to defer a change without an attempt, and the event it waits for; `nil` if
  /// it is not deferred.
  func deferral(of change: Change) -> (reason: String, Deferral)? {
    guard !reasons.isEmpty, let reason = reasons[change.key] else { return nil }
    let isAlive = change.state.isAlive
    let text =
      reason
      ?? (isAlive
        ? "it refers to a record that does not exist here (foreign key)"
        : "records here refer to it (foreign key)")
    if let deferral = ended[change.key] { return (text, deferral) }
    if let parent = lacking[change.key] ?? parents[change.key] { return (text, .parent(parent)) }
    return (text, isAlive ? .unseen : .rows)
  }
}

/// Rows without a parent after a pass (SPEC.md §28).
extension DeferredRecords {
  /// A row without a parent, with the facts that decide about it.
  struct Violation {
    let row: DanglingRow
    /// True if the list deletes the parent.
    var isParentDeleted = false
    /// The record that the row refers to, if it exists before the list; only for a row that keeps
    /// its parent.
    var target: RecordKey?
    /// True if this device can restore the parent.
    var canRecall = false
  }

  /// Decides about rows without a parent: the parent stays or returns, or the row goes with it,
  /// loses the reference, or is deferred.
  ///
  /// - Parameter recalled: records inserted again by the pass.
  /// - Returns: The rows to defer; none if parents stay or return in the next pass.
  mutating func decide(
    _ violations: [Violation], recalled inserted: Set<RecordKey> = []
  ) -> [DanglingRow] {
    // A restored record must not lack a parent itself.
    if violations.contains(where: { inserted.contains($0.row.child) }) {
      (recalled, isRecallOff) = ([], true)
      return []
    }
    if restoreParents(of: violations) { return [] }
    return violations.filter { !goesOrIsReleased($0) }.map(\.row)
  }

  /// Records the parents that stay or return. Returns true if there are any new ones.
  private mutating func restoreParents(of violations: [Violation]) -> Bool {
    var isAny = false
    for facts in violations where facts.row.isTracked && facts.row.link.keepsParent {
      if let target = facts.target {
        if held.insert(target).inserted { isAny = true }
        continue
      }
      guard !isRecallOff, let parent = facts.row.parent else { continue }
      parents[facts.row.child] = parent
      guard facts.canRecall else { continue }
      if facts.row.link.rule == .ask { asked.insert(parent) }
      if recalled.insert(parent).inserted { isAny = true }
    }
    return isAny
  }

  /// Records a row that goes with the parent, or loses the reference. Returns false for a row to
  /// defer.
  private mutating func goesOrIsReleased(_ facts: Violation) -> Bool {
    let row = facts.row
    guard let parent = row.parent else { return false }
    guard facts.isParentDeleted else {
      parents[row.child] = parent
      return false
    }
    if row.link.rule == .childGoes { return orphans.insert(row.child).inserted }
    guard row.link.rule == nil else { return false }
    return released.updateValue(row.link, forKey: row.child) == nil
  }
}
