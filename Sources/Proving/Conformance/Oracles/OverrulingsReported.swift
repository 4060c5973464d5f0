import FerryProtocol

/// Checks that authors find their overruled values in the quarantine (SPEC.md §15), and nothing
/// else as such.
///
/// - If an operation has a reason, each value of another device that it replaces or removes is
///   overruled, whether the author had seen it or not. So is a removed record, and a delete if the
///   record exists again. The value's device has an entry for the operation and the record.
/// - Each entry is of an operation with a reason.
///
/// Tables with policies are left out. Not judged are lost, copied and restored files, devices with
/// a refused cursor, and everything after the server was restored or has lied.
package struct OverrulingsReported: Oracle {
  package static let name = "overrulings-reported"

  private var doubtful: Set<String> = []
  private var isOff = false

  package init() {}

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
    let overrulings = overrulings(final.server)
    let reasoned = Set(final.server.history.filter { $0.reason != nil }.map(\.id))
    let judged = final.replicas.filter { name, replica in
      !doubtful.contains(name) && replica.refusals == 0
    }
    return judged.sorted { $0.key < $1.key }.flatMap { name, replica in
      let entries = Set(replica.overruled)
      let missing = overrulings.filter {
        $0.loser == replica.device && $0.sequence > replica.overruledAfter
          && !entries.contains($0.entry)
      }
      let invented = replica.overruled.filter { !reasoned.contains($0.operation) }
      return missing.map {
        Violation(oracle: Self.name, "\(name) does not list the values overruled by \($0.place)")
      }
        + invented.map {
          Violation(
            oracle: Self.name,
            "\(name) lists values of \($0.key.table)/\($0.key.record) as overruled, without a reason"
          )
        }
    }
  }

  /// Returns the losers of all operations with a reason.
  private func overrulings(_ server: ServerEvidence) -> [Overruling] {
    var records: [RecordKey: AuthoredRecord] = [:]
    var found: [Overruling] = []
    var walk = HistoryWalk(server)
    walk.advance { entry in
      if entry.kind == .batch || Workload.hasPolicies(entry.key.table) { return }
      let losers = records[entry.key, default: AuthoredRecord()].apply(entry)
      if entry.reason == nil { return }
      found += losers.subtracting([entry.device]).sorted().map {
        Overruling(
          loser: $0, entry: OverruledEntry(operation: entry.id, key: entry.key),
          sequence: entry.sequence, place: entry.place)
      }
    } forget: { key in
      records[key] = nil
    }
    return found
  }
}

/// An operation that overrules values of a device.
private struct Overruling {
  let loser: DeviceID
  let entry: OverruledEntry
  let sequence: SequenceNumber
  let place: String
}

/// A device's values overruled by an operation, as the device lists them.
package struct OverruledEntry: Sendable, Hashable {
  package var operation: OperationID
  package var key: RecordKey

  package init(operation: OperationID, key: RecordKey) {
    (self.operation, self.key) = (operation, key)
  }
}

/// The authors of a record's parts before the next operation.
private struct AuthoredRecord {
  private var inserted: Stamp?
  private var deleted: Stamp?
  private var columns: [Name: (value: Value, stamp: Stamp)] = [:]

  private var exists: Bool {
    guard let inserted else { return false }
    return deleted.map { inserted > $0 } ?? true
  }

  /// Applies an operation. Returns the authors of replaced and removed parts.
  mutating func apply(_ entry: HistoryEntry) -> Set<DeviceID> {
    let before = self
    let replaced = entry.kind == .delete ? remove(entry) : write(entry)
    switch (before.exists, exists) {
    case (true, true): return replaced
    case (true, false):
      let authors = before.columns.values.map(\.stamp.device)
      return Set(authors + [before.inserted].compactMap(\.?.device))
    case (false, true): return Set([before.deleted].compactMap(\.?.device))
    case (false, false): return []
    }
  }

  private mutating func write(_ entry: HistoryEntry) -> Set<DeviceID> {
    var losers: Set<DeviceID> = []
    if entry.kind == .insert { inserted = max(inserted ?? entry.insertStamp, entry.insertStamp) }
    for column in entry.columns {
      let stamp = entry.stamp(of: column.name)
      if let deleted, deleted > stamp { continue }
      if let present = columns[column.name] {
        if present.stamp > stamp { continue }
        if present.value != column.value { losers.insert(present.stamp.device) }
      }
      columns[column.name] = (column.value, stamp)
    }
    return losers
  }

  private mutating func remove(_ entry: HistoryEntry) -> Set<DeviceID> {
    if let deleted, deleted >= entry.stamp { return [] }
    deleted = entry.stamp
    let gone = columns.filter { $0.value.stamp < entry.stamp }
    for name in gone.keys { columns[name] = nil }
    return Set(gone.values.map(\.stamp.device))
  }
}
