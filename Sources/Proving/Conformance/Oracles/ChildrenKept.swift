import FerryProtocol

/// Checks that rows which no user deletes are there in the end. Users move them from parents before
/// they delete the parents. So only a device could delete them along with a parent.
///
/// Not judged are the rows of a device whose file went back to an earlier state, or was copied. It
/// may move its rows once more, from the parents of then. After the server went back, nothing is
/// judged.
package struct ChildrenKept: Oracle {
  package static let name = "children-kept"

  /// The author devices of the rows.
  private var makers: [RecordKey: String] = [:]
  private var doubtful: Set<String> = []
  private var isOff = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(let device, let operations):
      for operation in operations
      where operation.kind == .insert && operation.key.table == Workload.loans {
        makers[operation.key] = device
      }
    case .lostPower(let device, _): doubtful.insert(device)
    case .copied(let device, let original, _): doubtful.formUnion([device, original])
    case .serverWentBack: isOff = true
    case .read, .confirmed, .serverLies: break
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    if isOff { return [] }
    return makers.sorted { $0.key < $1.key }.compactMap { key, maker in
      if doubtful.contains(maker) || final.server.records[key]?.isAlive ?? false { return nil }
      return Violation(
        oracle: Self.name, "\(key) of \(maker) is gone, although no user has deleted it")
    }
  }
}
