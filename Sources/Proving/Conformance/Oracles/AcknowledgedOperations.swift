import FerryProtocol

/// Checks that acknowledged operations reach the history.
///
/// The history holds the sequences 1 to head, each once, and no operation twice. It contains every
/// operation confirmed to a device, or committed on a device and still there. The operation has the
/// columns written by the device, or was merged before it was sent, as SPEC.md §4 and §5 allow:
///
/// - an insert or update into the file's next operation on the record, which carries its columns
///   with the times at which they were written;
/// - an update into the delete after it;
/// - an insert, with the updates after it, and the delete after those: neither is there, or the
///   delete alone.
///
/// Operations rejected by the server are in the device's quarantine instead (``QuarantineApart``).
/// An operation may also carry one not reported by the harness: a pull records the rows that follow
/// another value (ON UPDATE CASCADE). The device had seen less then, so the base may be lower than
/// that of all reported ones. The file shows whether there was such an operation.
///
/// A pruned operation may be in the history again, if a copy of the file sent it after the pruning.
///
/// If the server was restored from a backup, devices re-upload the lost operations that they keep.
/// Operations are gone if only files out of use had them. A device may send operations from before
/// it learnt of the restore with a lower base than was recorded. It may merge them again, also with
/// operations already in the history (SPEC.md §5). And it may merge a re-uploaded row, an insert of
/// columns at the beginning of time, into a later operation on the record.
package struct AcknowledgedOperations: Oracle {
  package static let name = "acknowledged-operations"

  private var logs = FileLogs()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    logs.see(event)
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    logs.see(final)
    let history = History(final.server.history, recordedIn: logs)
    var found = Self.gaps(final.server) + history.repeated
    var audits = logs.files.map { file in
      let unaware = file.countUnaware(logs.lineage, in: final.server.history)
      return FileAudit(file, history, unaware: unaware)
    }
    for index in audits.indices { audits[index].run() }
    // Operations held by two files have to reach the server from one of them.
    let satisfied = audits.reduce(into: Set<OperationID>()) { $0.formUnion($1.satisfied) }
    var reported = Set<OperationID>()
    for audit in audits {
      for (operation, why) in audit.lost
      where !satisfied.contains(operation.id) && reported.insert(operation.id).inserted {
        found.append(
          "\(audit.file.device)'s \(operation.kind) \(operation.id) of \(operation.key.table)/"
            + "\(operation.key.record) is lost: \(why)")
      }
      found += audit.altered
    }
    return found.map { Violation(oracle: Self.name, $0) }
  }

  private static func gaps(_ server: ServerEvidence) -> [String] {
    var found: [String] = []
    for (index, entry) in server.history.enumerated()
    where entry.sequence != SequenceNumber(index) + 1 {
      found.append("the history's sequence \(index + 1) is \(entry.sequence)")
      break
    }
    if server.history.last?.sequence ?? 0 != server.head {
      found.append(
        "the history ends at \(server.history.last?.sequence ?? 0), the head is \(server.head)")
    }
    return found
  }
}

/// The server's history, for comparison with files.
private struct History {
  let entries: [OperationID: HistoryEntry]
  /// Duplicate operations in the history.
  let repeated: [String]
  /// By device: entries not reported by any harness, by their times.
  let unheard: [DeviceID: [HistoryEntry]]
  let deleted: Set<RecordKey>

  init(_ history: [HistoryEntry], recordedIn logs: FileLogs) {
    var entries: [OperationID: HistoryEntry] = [:]
    var repeated: [String] = []
    var newest: [OperationID: HistoryEntry] = [:]
    for entry in history {
      let before = newest.updateValue(entry, forKey: entry.id)
      // As it came first: later it may have been merged otherwise.
      if before?.isForgotten(before: entry) ?? false { continue }
      entries[entry.id] = entry
      if before == nil { continue }
      repeated.append("operation \(entry.id) is a duplicate in the history at #\(entry.sequence)")
    }
    let recorded = Set(logs.files.lazy.flatMap { $0.entries.lazy.map(\.operation.id) })
    // A batch's effects on single records were on no device.
    let unheard = history.filter { !recorded.contains($0.id) && !$0.id.isEffect }
    (self.entries, self.repeated) = (entries, repeated)
    self.unheard = Dictionary(grouping: unheard, by: \.device).mapValues { list in
      list.sorted { $0.id < $1.id }
    }
    // A delete lost by a server may have taken children along before the loss.
    let lost = logs.lineage.wentBack ? logs.deleted : []
    deleted = lost.union(history.lazy.filter { $0.kind == .delete }.map(\.key))
  }
}

/// Follows every operation of one file to the place in the history.
private struct FileAudit {
  /// One operation on a record: reported by the harness, or found in the history only.
  private struct Step {
    var operation: LocalOperation
    var isShared = false
    var isHeard = true
    /// Recorded before the device learnt of the server's restore from a backup.
    var isUnaware = false
    /// The server lost it, and the file with it is gone.
    var isExcused = false
    var isQuarantined = false
  }

  let file: FileLog
  private let history: History
  private let unaware: Int
  private(set) var satisfied: Set<OperationID> = []
  /// In this file only: another one with them still has to send them.
  private var excused: Set<OperationID> = []
  private(set) var lost: [(LocalOperation, String)] = []
  /// Operations whose content differs from the recorded one.
  private(set) var altered: [String] = []

  /// - Parameter unaware: Entries from before the device learnt of the server's restore from a
  ///   backup.
  init(_ file: FileLog, _ history: History, unaware: Int) {
    self.file = file
    self.history = history
    self.unaware = unaware
  }

  mutating func run() {
    var order: [RecordKey] = []
    var steps: [RecordKey: [Step]] = [:]
    for (index, entry) in file.entries.enumerated() {
      let key = entry.operation.key
      if steps[key] == nil { order.append(key) }
      steps[key, default: []].append(
        Step(
          operation: entry.operation, isShared: entry.isShared, isUnaware: index < unaware,
          isExcused: file.isClosed && entry.isRevoked, isQuarantined: entry.isQuarantined))
    }
    for identity in file.identities {
      for entry in history.unheard[identity] ?? [] {
        guard var list = steps[entry.key] else { continue }
        let place = list.firstIndex { $0.operation.id > entry.id } ?? list.count
        let operation = LocalOperation(
          id: entry.id, key: entry.key, kind: entry.kind, columns: entry.columns)
        list.insert(Step(operation: operation, isHeard: false), at: place)
        steps[entry.key] = list
      }
    }
    for key in order { replay(steps[key] ?? []) }
  }

  /// Follows all operations on one record.
  private mutating func replay(_ steps: [Step]) {
    // Inserts and updates missing in the history, so later operations have to carry them.
    var carried: [LocalOperation] = []
    excused.formUnion(steps.lazy.filter(\.isExcused).map(\.operation.id))
    defer { lost.removeAll { excused.contains($0.0.id) } }
    for (index, step) in steps.enumerated() {
      let operation = step.operation
      guard step.isHeard else {
        // They may be in this one, or it is another file's.
        satisfied.formUnion(carried.lazy.map(\.id))
        continue
      }
      if let entry = history.entries[operation.id] {
        check(entry, steps[...index], carried)
        satisfied.formUnion(carried.lazy.map(\.id))
        satisfied.insert(operation.id)
        carried = []
      } else if step.isQuarantined {
        continue
      } else if operation.kind != .delete {
        carried.append(operation)
      } else if carried.contains(where: { $0.kind == .insert }) || mayHoldUnheard(operation.id)
        || mayCancelShared(steps[..<index])
      {
        // In this file only: another one with them has to send them.
        carried = []
      } else {
        lost.append((operation, "the delete is not in the history"))
      }
    }
    if !mayBeGoneWithParent(carried) {
      lost += carried.map { ($0, "it is not in the history, and no later operation contains it") }
    }
  }

  /// Returns `true` if an operation unknown to the harness may have been merged into this one, or
  /// cancelled out by it. An example is the insert of a row that was written unrecorded.
  private func mayHoldUnheard(_ operation: OperationID) -> Bool {
    file.unheard.contains { $0 < operation && history.entries[$0] == nil }
  }

  /// Returns `true` if a delete may have cancelled out an insert sent by a copy of the file: here
  /// it was still pending.
  private func mayCancelShared(_ before: ArraySlice<Step>) -> Bool {
    before.last { $0.operation.kind == .insert }?.isShared ?? false
  }

  /// Returns `true` if rows may be gone with their parent. Before they were sent, a pull deleted
  /// the parent. This delete is recorded and cancels the insert out, so no other device sees it.
  private func mayBeGoneWithParent(_ carried: [LocalOperation]) -> Bool {
    guard let insert = carried.first(where: { $0.kind == .insert }),
      let parent = Workload.cascades[insert.key.table]?.parent(
        of: insert.key.record, { name in insert.columns.first { $0.name == name }?.value })
    else { return false }
    return history.deleted.contains(parent)
      || Workload.ancestors(of: insert.key).contains(where: history.deleted.contains)
  }

  /// Returns `true` if a column's time belongs to an operation unknown to the harness. The server
  /// may have clamped it to the time of the carrying operation.
  private func isUnheard(column time: HybridTimestamp, of entry: HistoryEntry) -> Bool {
    file.unheard.contains { $0 < entry.id && min($0.value.timestamp, entry.time) == time }
  }

  /// Returns `true` if the last step may carry an unknown operation: one recorded after the newest
  /// step sent before it.
  private func mayCarryUnheard(_ steps: ArraySlice<Step>) -> Bool {
    guard let last = steps.last?.operation.id else { return false }
    let sent = steps.dropLast().last {
      !$0.isShared && !$0.isUnaware && history.entries[$0.operation.id] != nil
    }?.operation.id
    return file.unheard.contains { id in
      id < last && sent.map { $0 < id } != false && history.entries[id] == nil
    }
  }

  // MARK: Content

  /// Checks whether the history holds the columns of the last step, with those merged into it.
  private mutating func check(
    _ entry: HistoryEntry, _ steps: ArraySlice<Step>, _ carried: [LocalOperation]
  ) {
    guard let own = steps.last?.operation else { return }
    var isUnaware = steps.last?.isUnaware ?? false
    if entry.kind == .delete && own.kind == .delete { return }
    if entry.kind == .batch && own.kind == .batch && entry.key.table == own.key.table { return }
    // Operations carried by another file's operation, or also sent by another file, may have been
    // merged here all the same. A pull may have deleted the row with the parent: then the insert of
    // a user who restores the row contains nothing of it.
    let isRestored = own.kind == .insert && mayBeGoneWithParent(carried)
    let required =
      isRestored ? 0 : carried.count { !satisfied.contains($0.id) && !excused.contains($0.id) }
    var merged = [own]
    func difference() -> String? {
      self.difference(entry, merged, isUnaware, carriesUnheard: mayCarryUnheard(steps))
    }
    var wrong = required == 0 ? difference() : "lacks the operations merged into it"
    for step in steps.dropLast().reversed() where wrong != nil && step.isHeard {
      let operation = step.operation
      guard operation.kind != .delete,
        step.isShared || step.isUnaware && steps.last?.isUnaware == true
          || carried.contains(where: { $0.id == operation.id })
      else { break }
      merged.insert(operation, at: 0)
      isUnaware = isUnaware || step.isUnaware
      if merged.count > required, let still = difference() {
        // The plainest reading is the one to report.
        if merged.count == required + 1 { wrong = still }
      } else if merged.count > required {
        wrong = nil
      }
    }
    if let wrong { altered.append("\(entry.place) of \(file.device) \(wrong)") }
  }

  private func difference(
    _ entry: HistoryEntry, _ merged: [LocalOperation], _ isUnaware: Bool,
    carriesUnheard: @autoclosure () -> Bool
  ) -> String? {
    let kind: OperationKind = merged.contains { $0.kind == .insert } ? .insert : .update
    let isRescued =
      kind == .update && entry.kind == .insert
      && (file.mayRescue || mayHoldUnheard(entry.id))
    if entry.kind != kind && !isRescued { return "was recorded as \(kind)" }
    if entry.key != merged.last?.key { return "is of a record that was not written" }
    var expected: [Name: (value: Value, time: HybridTimestamp)] = [:]
    for (index, operation) in merged.enumerated() {
      // The server may have clamped the operation's time; the columns are no later.
      let time = index == merged.count - 1 ? entry.time : min(operation.time, entry.time)
      for column in operation.columns {
        expected[column.name] = (column.value, time)
      }
    }
    for column in entry.columns {
      let time = min(entry.columnTimes[column.name] ?? entry.time, entry.time)
      let recorded = expected.removeValue(forKey: column.name)
      // The insert of an unrecorded row writes all columns, also those of earlier edits.
      let isOwn = merged.last?.columns.contains { $0.name == column.name } ?? false
      if !isOwn, isUnheard(column: time, of: entry) { continue }
      guard let recorded else {
        if file.mayRescue && time <= .rescue { continue }
        return "has \(column.name), which was not written"
      }
      // A policy may merge a value of the re-uploaded row into the operation.
      if entry.kind == .insert, file.mayRescue, Workload.dependsOnKnowledge(entry.key.table) {
        continue
      }
      if recorded.value != column.value {
        return "has \(column.value) in \(column.name) instead of \(recorded.value)"
      }
      if recorded.time != time {
        return "has \(time) as the time of \(column.name) instead of \(recorded.time)"
      }
    }
    if let missing = expected.keys.min() { return "lacks \(missing), which was written" }
    let bases = merged.compactMap(\.base)
    if bases.count == merged.count, let base = bases.min(), let newest = bases.max(),
      entry.base > (isUnaware || isRescued ? newest : base)
        || entry.base < base && !isUnaware && !isRescued && !carriesUnheard()
    {
      return "has the base \(entry.base) instead of \(base)"
    }
    return nil
  }
}
