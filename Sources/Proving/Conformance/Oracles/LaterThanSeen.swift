import FerryProtocol

/// Checks that a write is later than every write to the record that its author had seen.
///
/// This holds whatever the clocks of devices and nodes show, so no older value undoes an author's
/// write (SPEC.md §6). An author had seen the operations at or below the operation's `base`.
///
/// Left out are overruled operations, since a pull list may not show them. Left out are also rows
/// re-uploaded to a server, which are older than everything. An insert is compared with deletes
/// alone: a deleted record does not show its hidden values.
package struct LaterThanSeen: Oracle {
  package static let name = "later-than-seen"

  /// The newest stamps of a record up to a place of the order.
  private struct Newest {
    var sequence: SequenceNumber
    var write: Stamp?
    var delete: Stamp?
  }

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] { [] }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var records: [RecordKey: [Newest]] = [:]
    var found: [Violation] = []
    var walk = HistoryWalk(final.server)
    walk.advance { entry in
      // A hostile member claims times and bases as it likes.
      if entry.kind == .batch || Workload.isStray(entry.key.table) { return }
      let before = records[entry.key, default: []]
      let isStrange = Workload.isStrange(entry.device)
      if !isStrange,
        let violation = Self.violation(entry, before.last { $0.sequence <= entry.base })
      {
        found.append(violation)
      }
      if entry.outcome.isOverruled { return }
      var newest = before.last ?? Newest(sequence: 0)
      newest.sequence = entry.sequence
      newest.write = [newest.write, entry.newestStamp].compactMap { $0 }.max()
      if entry.kind == .delete {
        newest.delete = [newest.delete, entry.stamp].compactMap { $0 }.max()
      }
      records[entry.key, default: []].append(newest)
    } forget: { key in
      records[key] = nil
    }
    return found
  }

  private static func violation(_ entry: HistoryEntry, _ seen: Newest?) -> Violation? {
    guard let own = entry.oldestStamp,
      let newest = entry.kind == .insert ? seen?.delete : seen?.write, newest >= own
    else { return nil }
    return Violation(
      oracle: name,
      "\(entry.place) is at \(own.time), but its author had seen up to #\(entry.base), with a "
        + "write of the record at \(newest.time) by \(newest.device)")
  }
}

extension HistoryEntry {
  private var stamps: [Stamp] {
    columns.isEmpty ? [stamp] : columns.map { stamp(of: $0.name) }
  }

  /// The newest stamp of all parts.
  fileprivate var newestStamp: Stamp? { stamps.max() }

  /// The oldest stamp of all parts, without those of re-uploaded rows.
  fileprivate var oldestStamp: Stamp? { stamps.filter { $0.time > .rescue }.min() }
}
