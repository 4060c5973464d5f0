import FerryProtocol

/// Every value that did not stay is in the outcome of an operation, with who wrote it (SPEC.md
/// §6). In the order of the history, for each operation:
///
/// - a value of its own that a greater stamp keeps out is among its own conflicts, unless what
///   stands is the same value; one that a greater delete keeps out always is; and the operation is
///   overruled;
/// - another device's value that it replaces, or that its delete takes away, is among its conflicts
///   where its author had not seen it (the value's sequence lies above its base) and, for a write,
///   where the values differ;
/// - an update or insert that leaves the record not existing, and a delete that leaves it existing,
///   is overruled and says so by a conflict without a column; an update of a record that was never
///   inserted has lost to nobody, and is overruled without one.
///
/// So of two concurrent writes of one column the losing value is found in one of the two outcomes,
/// unless somebody who had seen it, or its own writer, or somebody with the same value wrote over
/// it before the two met. Tables with policies are left out.
package struct ConflictsAccounted: Oracle {
  package static let name = "conflicts-accounted"

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] { [] }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var records: [RecordKey: ContestedRecord] = [:]
    var found: [Violation] = []
    var walk = HistoryWalk(final.server)
    walk.advance { entry in
      if Workload.hasPolicies(entry.key.table) { return }
      found += records[entry.key, default: ContestedRecord()].missing(from: entry).map { what in
        Violation(oracle: Self.name, "the outcome of \(entry.place) does not say that \(what)")
      }
    } forget: { key in
      records[key] = nil
    }
    return found
  }
}

/// What stands of a record before the next operation.
private struct ContestedRecord {
  private struct Write {
    var value: Value
    var stamp: Stamp
    var sequence: SequenceNumber
  }

  private var inserted: Stamp?
  private var deleted: Stamp?
  private var columns: [Name: Write] = [:]

  private var exists: Bool {
    guard let inserted else { return false }
    return deleted.map { inserted > $0 } ?? true
  }

  /// Takes the operation in. Answers with what its outcome has to say and does not.
  mutating func missing(from entry: HistoryEntry) -> [String] {
    switch entry.kind {
    case .delete: return delete(entry)
    case .batch: return []
    case .insert, .update:
      var missing = entry.columns.flatMap { write($0, of: entry) }
      if entry.kind == .insert { inserted = max(inserted ?? entry.insertStamp, entry.insertStamp) }
      // An insert that no delete has beaten makes the record exist.
      if deleted == nil && inserted == nil {
        return missing + (entry.outcome.isOverruled ? [] : ["the record does not exist"])
      }
      if !exists {
        let loser = entry.kind == .insert ? entry.insertStamp : entry.stamp
        missing += existence(loser, entry, "the record does not exist")
      }
      return missing
    }
  }

  private mutating func write(_ column: Column, of entry: HistoryEntry) -> [String] {
    let own = Write(
      value: column.value, stamp: entry.stamp(of: column.name), sequence: entry.sequence)
    if let deleted, deleted > own.stamp { return lost(column.name, own, entry) }
    guard let standing = columns[column.name] else {
      columns[column.name] = own
      return []
    }
    if standing.stamp > own.stamp {
      return standing.value == own.value ? [] : lost(column.name, own, entry)
    }
    columns[column.name] = own
    guard standing.stamp.device != entry.device, standing.sequence > entry.base,
      standing.value != own.value
    else { return [] }
    return unrecorded(column.name, standing, entry).map { ["it overruled \($0)"] } ?? []
  }

  private mutating func delete(_ entry: HistoryEntry) -> [String] {
    var missing: [String] = []
    if deleted.map({ $0 < entry.stamp }) ?? true {
      deleted = entry.stamp
      for (name, standing) in columns.sorted(by: { $0.key < $1.key }) {
        guard standing.stamp < entry.stamp || !exists else { continue }
        if standing.stamp.device != entry.device, standing.sequence > entry.base,
          let what = unrecorded(name, standing, entry)
        {
          missing.append("it took away \(what)")
        }
        if standing.stamp < entry.stamp { columns[name] = nil }
      }
    }
    return exists ? missing + existence(entry.stamp, entry, "the record still exists") : missing
  }

  /// An operation's own value that does not stay.
  private func lost(_ column: Name, _ own: Write, _ entry: HistoryEntry) -> [String] {
    let overruled = entry.outcome.isOverruled ? [] : ["it was overruled in \(column)"]
    return overruled + (unrecorded(column, own, entry).map { ["it lost \($0)"] } ?? [])
  }

  /// The value in words, where it is not among the conflicts.
  private func unrecorded(_ column: Name, _ write: Write, _ entry: HistoryEntry) -> String? {
    let isRecorded = entry.outcome.conflicts.contains {
      $0.column == column && $0.loser == write.stamp && $0.lost == write.value
    }
    return isRecorded ? nil : "\(write.value) in \(column) of #\(write.sequence)"
  }

  private func existence(_ loser: Stamp, _ entry: HistoryEntry, _ what: String) -> [String] {
    let isRecorded =
      entry.outcome.isOverruled
      && entry.outcome.conflicts.contains { $0.column == nil && $0.loser == loser }
    return isRecorded ? [] : [what]
  }
}
