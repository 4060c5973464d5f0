import FerryProtocol

/// Records whose changes a pull does not apply as they arrive.
struct DeferredRecords {
  /// Records deferred without an attempt, with the reason; `nil` for a violated foreign key.
  var reasons: [RecordKey: String?] = [:]
  /// The record that each deferred one goes with. It is fetched once: the server may have deleted
  /// it.
  var parents: [RecordKey: RecordKey] = [:]
  /// Records that end the transaction, with the event for which they wait.
  var ended: [RecordKey: Deferral] = [:]
  /// The deferred record that each deferred one goes with. The list has it.
  var lacking: [RecordKey: RecordKey] = [:]
  /// Deleted records to which rows refer that the list has brought later. Their delete waits for the
  /// rest of the list.
  var held: Set<RecordKey> = []
  /// Records that this device has deleted, and that come back because rows refer to them.
  var recalled: Set<RecordKey> = []
  /// Whether no record may come back: one of them refers to a row that cannot.
  var isRecallOff = false
  /// Those of them for which the user is asked.
  var asked: Set<RecordKey> = []
  /// Records that lose their parent (ON DELETE SET NULL, SET DEFAULT), because it is deleted.
  var released: [RecordKey: ParentLink] = [:]
  /// Deleted records, because they go with a deleted record.
  var orphans: Set<RecordKey> = []
  /// Whether the pass searches for records that the server has deleted, and for those that it lacks.
  var isSearching = false

  /// Defers records, and at once all that need them.
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

  /// Returns the reason and the event for which a change waits that is deferred without an attempt; `nil`
  /// if it is not.
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
