import FerryProtocol

/// Checks that every lost value is in the outcome of an operation, with the author (SPEC.md §6).
///
/// In the order of the history, for each operation:
///
/// - An own value that loses to a greater stamp is among the operation's conflicts, unless the
///   record has the same value. An own value that loses to a greater delete always is. The
///   operation is overruled.
/// - Another device's replaced or deleted value is among the conflicts if the author had not seen
///   this value. The value's sequence is then above the operation's base. For a write, the values
///   must also differ.
/// - An update or insert is overruled if the record does not exist after it, and a delete if the
///   record does. A conflict without a column reports this. The values of such an update or insert
///   are among the conflicts. An update of a never inserted record has lost to no other write, and
///   is overruled without a conflict.
///
/// So of two concurrent writes of one column the losing value is in one of the two outcomes. The
/// exception: a third write replaced it before, by the same author, by an author who had seen it,
/// or with the same value. Tables with policies are left out.
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
        Violation(oracle: Self.name, "the outcome of \(entry.place) does not report that \(what)")
      }
    } forget: { key in
      records[key] = nil
    }
    return found
  }
}

/// The state of a record before the next operation.
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

  /// Applies the operation. Returns the conflicts missing in the outcome.
  mutating func missing(from entry: HistoryEntry) -> [String] {
    switch entry.kind {
    case .delete: return delete(entry)
    case .batch: return []
    case .insert, .update:
      var missing = entry.columns.flatMap { write($0, of: entry) }
      if entry.kind == .insert { inserted = max(inserted ?? entry.insertStamp, entry.insertStamp) }
      // An insert not beaten by a delete makes the record exist.
      if deleted == nil && inserted == nil {
        return missing + (entry.outcome.isOverruled ? [] : ["the record does not exist"])
      }
      if !exists {
        let loser = entry.kind == .insert ? entry.insertStamp : entry.stamp
        missing += existence(loser, entry, "the record does not exist")
        missing += hidden(by: entry)
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
          missing.append("it removed \(what)")
        }
        if standing.stamp < entry.stamp { columns[name] = nil }
      }
    }
    return exists ? missing + existence(entry.stamp, entry, "the record still exists") : missing
  }

  /// Checks an operation's own losing value.
  private func lost(_ column: Name, _ own: Write, _ entry: HistoryEntry) -> [String] {
    let overruled = entry.outcome.isOverruled ? [] : ["it was overruled in \(column)"]
    return overruled + (unrecorded(column, own, entry).map { ["it lost \($0)"] } ?? [])
  }

  /// Returns the value in words if it is not among the conflicts.
  private func unrecorded(_ column: Name, _ write: Write, _ entry: HistoryEntry) -> String? {
    let isRecorded = entry.outcome.conflicts.contains {
      $0.column == column && $0.loser == write.stamp && $0.lost == write.value
    }
    return isRecorded ? nil : "\(write.value) in \(column) of #\(write.sequence)"
  }

  /// Checks the values of an operation later than the delete of their record.
  private func hidden(by entry: HistoryEntry) -> [String] {
    entry.columns.compactMap { column in
      guard let write = columns[column.name], write.stamp == entry.stamp(of: column.name) else {
        return nil
      }
      return unrecorded(column.name, write, entry).map { "it lost \($0) with the record" }
    }
  }

  private func existence(_ loser: Stamp, _ entry: HistoryEntry, _ what: String) -> [String] {
    let isRecorded =
      entry.outcome.isOverruled
      && entry.outcome.conflicts.contains { $0.column == nil && $0.loser == loser }
    return isRecorded ? [] : [what]
  }
}
