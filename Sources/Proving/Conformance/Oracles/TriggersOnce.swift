import FerryProtocol

/// Checks that the triggers of the user write to tracked tables once for each write of a user: the
/// counter of a device's chips changes with each chip, and each delete of a chip is in the log.
///
/// No device sends more changes of counters than inserts and deletes of chips, or more entries of the
/// log than deletes. A device that only applies the others' changes sends neither. A device may send
/// fewer: it records a chip before the triggers' writes, and a crash may end its work between them.
///
/// After the server went back to an earlier state, nothing is judged.
package struct TriggersOnce: Oracle {
  package static let name = "triggers-once"

  private struct Counts {
    var inserts = 0
    var deletes = 0
    var counted = 0
    var logged = 0

    mutating func add(_ entry: HistoryEntry) {
      switch (entry.key.table, entry.kind) {
      case ("chips", .insert): inserts += 1
      case ("chips", .delete): deletes += 1
      case ("stacks", .update): counted += 1
      case ("trail", .insert), ("trail", .update): logged += 1
      default: break
      }
    }
  }

  private var isOff = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .serverWentBack, .serverLies: isOff = true
    case .committed, .read, .confirmed, .lostPower, .copied: break
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    if isOff { return [] }
    var counts: [DeviceID: Counts] = [:]
    for entry in final.server.history
    where Workload.stacked.contains(entry.key.table) && !entry.id.isRescue
      && !Workload.isStrange(entry.device)
    {
      counts[entry.device, default: Counts()].add(entry)
    }
    return counts.sorted { "\($0.key)" < "\($1.key)" }.flatMap { device, count in
      Self.faults(of: count).map { Violation(oracle: Self.name, "device \(device) sent \($0)") }
    }
  }

  private static func faults(of count: Counts) -> [String] {
    var faults: [String] = []
    if count.counted > count.inserts + count.deletes {
      faults.append(
        "\(count.counted) changes of counters for \(count.inserts) inserts and \(count.deletes) "
          + "deletes of chips")
    }
    if count.logged > count.deletes {
      faults.append("\(count.logged) entries of the log for \(count.deletes) deletes of chips")
    }
    return faults
  }
}
