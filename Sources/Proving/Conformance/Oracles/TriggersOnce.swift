import FerryProtocol

/// Checks that the triggers of the user write to tracked tables once for each write of a user: only
/// the device that made a chip deletes it, so only this device logs the delete.
///
/// Not judged are devices whose file went back to an earlier state, or was copied: they may delete
/// boxes without the chips that they have sent. A hostile member may do the same. After the server
/// went back, nothing is judged.
package struct TriggersOnce: Oracle {
  package static let name = "triggers-once"

  /// The author devices of the chips.
  private var makers: [Name: String] = [:]
  /// The devices that committed operations on the tables.
  private var authors: [OperationID: String] = [:]
  private var doubtful: Set<String> = []
  private var isOff = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(let device, let operations):
      for operation in operations where Workload.stacked.contains(operation.key.table) {
        authors[operation.id] = device
        if operation.key.table == "chips", operation.kind == .insert {
          makers[operation.key.record] = device
        }
      }
    case .lostPower(let device, _): doubtful.insert(device)
    case .copied(let device, let original, _): doubtful.formUnion([device, original])
    case .serverWentBack, .serverLies: isOff = true
    case .read, .confirmed: break
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    let history = final.server.history
    if isOff || history.contains(where: { Workload.isStrange($0.device) }) { return [] }
    var names: [DeviceID: Set<String>] = [:]
    for entry in history {
      if let author = authors[entry.id] { names[entry.device, default: []].insert(author) }
    }
    return history.compactMap { entry in
      guard entry.key.table == "trail", let maker = makers[entry.key.record],
        let senders = names[entry.device], senders != [maker],
        doubtful.isDisjoint(with: senders.union([maker]))
      else { return nil }
      return Violation(
        oracle: Self.name,
        "\(senders.sorted().joined(separator: ", ")) logged the delete of chip "
          + "\(entry.key.record), which \(maker) made")
    }
  }
}
