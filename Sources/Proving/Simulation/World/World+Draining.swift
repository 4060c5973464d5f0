import FerryConformance
import FerryProtocol

extension World {
  /// Returns whether every device has all changes and the server has every device's operations.
  /// Devices with an older schema are upgraded now.
  func isDrained() -> Bool {
    var isDrained = true
    for device in devices {
      device.process?.upgrade()
      device.process?.arrangeOddTables()
      if isDrained && whatIsLeft(on: device) != nil { isDrained = false }
    }
    // A report of an outcome is no operation: it moves no head.
    return requestMissions(isDrained: isDrained) && bundlesLeft().isEmpty
  }

  /// Returns the work left to drain, for a person.
  func whatIsLeft() -> String {
    let left = devices.compactMap { device in
      whatIsLeft(on: device).map { "\(device.name): \($0)" }
    }
    return "after \(options.livenessSeconds) s without faults: "
      + (left + missionsLeft() + bundlesLeft()).joined(separator: "; ")
  }

  private func orphans(in space: SpaceName) -> Int {
    (try? server.storage.evidence(of: space).orphans.count) ?? 0
  }

  private func whatIsLeft(on device: SimulatedDevice) -> String? {
    guard device.isUp else { return "it does not run" }
    guard device.process?.isUpgraded ?? false else { return "its tables are of an earlier version" }
    if device.setting.hasOdd, !(device.process?.areOddTablesArranged ?? false) {
      return "it lacks tables that another device defines"
    }
    for ledger in device.ledgers {
      if let left = whatIsLeft(on: device, ledger) {
        return device.ledgers.count == 1 ? left : "\(ledger.space): \(left)"
      }
    }
    if let mirror = device.mirror {
      return device.look(at: device.ledgers[0], isApart: false) { mirror.left(in: $0) } ?? nil
    }
    return nil
  }

  private func whatIsLeft(
    on device: SimulatedDevice, _ ledger: SimulatedDevice.Ledger
  ) -> String? {
    guard let evidence = device.progress(of: ledger), evidence.epoch != nil else {
      return "it has not synced yet"
    }
    guard server.generation != nil, let newest = try? server.storage.newest(in: ledger.space)
    else { return "no server" }
    if evidence.unconfirmed > 0 { return "\(evidence.unconfirmed) operations are pending" }
    // Whether orphans may be left is for the oracle to judge.
    let refused = evidence.refused - evidence.blocked
    if refused > 0, refused > orphans(in: ledger.space) {
      let records = device.look(at: ledger, isApart: false, ReplicaEvidence.refusedRecords) ?? []
      return "refused records: \(records.prefix(5).joined(separator: ", "))"
    }
    if evidence.refreshing > 0 { return "\(evidence.refreshing) records are to be fetched" }
    if evidence.unreconciled > 0 { return "\(evidence.unreconciled) tables are to be compared" }
    if evidence.waiting > 0 { return "\(evidence.waiting) changes wait" }
    if evidence.applied != newest.head {
      return "it is at \(evidence.applied), the server at \(newest.head)"
    }
    if evidence.anchor != newest.anchor {
      return "it is at \(newest.head) of a history that is gone"
    }
    // The server may have confirmed them before it was restored from a backup.
    return evidence.pendingCount > 0 ? "\(evidence.pendingCount) operations are kept" : nil
  }
}
