import FerryProtocol

/// Checks that the server's records are exactly the result of SPEC.md §6 for its history.
///
/// For every record this is the latest insert and the latest delete. For every column it is the
/// latest write not erased by a delete, by time and then device. So each operation's effect is in
/// the state, or lost to a greater stamp; and there is no record without an operation. If history
/// is pruned, no existing record goes; one that did not exist begins from scratch after that.
/// Tables with policies are left out; ``CounterSums`` checks the one with a counter. Of their
/// records only those without any delete certainly existed when they were pruned.
package struct ReferenceState: Oracle {
  package static let name = "reference-state"

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] { [] }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    let (reference, forgottenAlive) = ReferenceRecord.all(final.server)
    var found = forgottenAlive.map { violation($0, "existed at its pruning") }
    for (key, expected) in reference.sorted(by: { $0.key < $1.key })
    where !Workload.hasPolicies(key.table) {
      guard let state = final.server.records[key] else {
        if !expected.isBlank { found.append(violation(key, "is missing")) }
        continue
      }
      if let difference = Self.difference(state, expected) {
        found.append(violation(key, difference))
      }
    }
    for key in final.server.records.keys.sorted() where reference[key] == nil {
      found.append(violation(key, "is in no operation of the history"))
    }
    return found
  }

  private func violation(_ key: RecordKey, _ what: String) -> Violation {
    Violation(oracle: Self.name, "the server's record \(key.table)/\(key.record) \(what)")
  }

  private static func difference(_ state: RecordState, _ expected: ReferenceRecord) -> String? {
    if state.inserted?.stamp != expected.inserted {
      return "was inserted \(described(state.inserted?.stamp)), but by the history "
        + described(expected.inserted)
    }
    if state.deleted?.stamp != expected.deleted {
      return
        "was deleted \(described(state.deleted?.stamp)), but by the history "
        + described(expected.deleted)
    }
    let columns = expected.columns
    for column in state.columns {
      guard let write = columns[column.name] else {
        return "has \(column.value) in \(column.name), which the history erased or never had"
      }
      guard write.stamp == column.stamp, write.value == column.value else {
        return
          "has \(column.value) of \(described(column.stamp)) in \(column.name), by the history "
          + "\(write.value) of \(described(write.stamp))"
      }
    }
    let present = Set(state.columns.map(\.name))
    if let missing = columns.keys.filter({ !present.contains($0) }).min() {
      return "lacks column \(missing)"
    }
    return nil
  }

  private static func described(_ stamp: Stamp?) -> String {
    stamp.map { "at \($0.time) by \($0.device)" } ?? "never"
  }
}
