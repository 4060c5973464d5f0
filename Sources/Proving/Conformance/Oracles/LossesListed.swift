import FerryProtocol

/// Checks that the author of a row that went with its parent finds the row among the conflicts
/// (SPEC.md §28).
///
/// The tables are those of ``Workload/branches``. Users delete only rows without a parent there.
///
/// - Each conflict in the outcome of an operation is listed on the losing device.
/// - Each delete not made by a user is of a row that went with its parent. The author of the
///   parent's delete had not seen the row. Each value of the row is listed on its author's device.
///
/// Not judged are lost, copied and restored files, devices with a refused cursor, and everything
/// after the server was restored or has lied.
package struct LossesListed: Oracle {
  package static let name = "losses-listed"

  /// The deletes made by users.
  private var chosen: Set<OperationID> = []
  private var doubtful: Set<String> = []
  private var isOff = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(_, let operations):
      for operation in operations
      where operation.kind == .delete && Workload.isBranch(operation.key.table) {
        chosen.insert(operation.id)
      }
    case .lostPower(let device, _): doubtful.insert(device)
    case .copied(let device, let original, _): doubtful.formUnion([device, original])
    case .serverWentBack, .serverLies: isOff = true
    case .read, .confirmed: break
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    if isOff { return [] }
    var authors: [DeviceID: (name: String, losses: Set<ListedLoss>)] = [:]
    for (name, replica) in final.replicas
    where !doubtful.contains(name) && replica.refusals == 0 {
      authors[replica.device] = (name, Set(replica.listed))
    }
    return expected(final.server).compactMap { loss, reason in
      guard let author = authors[loss.author], !author.losses.contains(loss) else { return nil }
      return Violation(oracle: Self.name, "\(author.name) does not list \(loss.place): \(reason)")
    }
  }

  /// Returns the values to be listed, each with the operation that removed it.
  private func expected(_ server: ServerEvidence) -> [(ListedLoss, reason: String)] {
    let cuts = Set(server.history.filter { $0.kind == .delete }.map { Cut($0.device, $0.key) })
    var (records, found) = ([RecordKey: GrownRecord](), [(ListedLoss, reason: String)]())
    var walk = HistoryWalk(server)
    walk.advance { entry in
      guard Workload.isBranch(entry.key.table) else { return }
      found += entry.outcome.conflicts.map {
        (ListedLoss($0, of: entry.key), "the outcome of \(entry.place) reports it")
      }
      let gone = records[entry.key, default: GrownRecord()].apply(entry)
      // A user's delete unknown to the harness is of a root, or goes with it.
      guard entry.kind == .delete, !chosen.contains(entry.id),
        let root = Workload.ancestors(of: entry.key).last, !cuts.contains(Cut(entry.device, root))
      else { return }
      found += gone.map {
        (
          ListedLoss(key: entry.key, column: $0.column, value: $0.value, author: $0.author),
          "\(entry.place) is of a row that went with its parent"
        )
      }
    } forget: { key in
      records[key] = nil
    }
    return found
  }
}

/// A record deleted by a device.
private struct Cut: Hashable {
  let device: DeviceID
  let key: RecordKey

  init(_ device: DeviceID, _ key: RecordKey) { (self.device, self.key) = (device, key) }
}

/// The values of a record before the next operation.
private struct GrownRecord {
  private var columns: [Name: (value: Value, stamp: Stamp)] = [:]
  private var deleted: Stamp?

  /// Applies an operation. Returns the removed values.
  mutating func apply(
    _ entry: HistoryEntry
  ) -> [(column: Name, value: Value, author: DeviceID)] {
    guard entry.kind == .delete else {
      for column in entry.columns {
        let stamp = entry.stamp(of: column.name)
        if let deleted, deleted > stamp { continue }
        if let present = columns[column.name], present.stamp > stamp { continue }
        columns[column.name] = (column.value, stamp)
      }
      return []
    }
    deleted = max(deleted ?? entry.stamp, entry.stamp)
    let gone = columns.filter { $0.value.stamp < entry.stamp }.sorted { $0.key < $1.key }
    for (name, _) in gone { columns[name] = nil }
    return gone.filter { $0.value.value != .null }
      .map { ($0.key, $0.value.value, $0.value.stamp.device) }
  }
}

/// A value listed as lost by a device.
package struct ListedLoss: Sendable, Hashable {
  package var key: RecordKey
  /// `nil`: the record's existence.
  package var column: Name?
  package var value: Value
  /// The device that wrote the value.
  package var author: DeviceID

  package init(key: RecordKey, column: Name?, value: Value, author: DeviceID) {
    (self.key, self.column, self.value, self.author) = (key, column, value, author)
  }

  fileprivate init(_ conflict: Conflict, of key: RecordKey) {
    self.init(
      key: key, column: conflict.column, value: conflict.lost, author: conflict.loser.device)
  }

  fileprivate var place: String {
    "\(value) in \(key.table)/\(key.record)" + (column.map { ".\($0)" } ?? "")
  }
}
