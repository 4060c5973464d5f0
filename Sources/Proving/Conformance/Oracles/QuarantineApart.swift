import FerryProtocol

/// Checks that operations in a device's quarantine have not reached the server's history.
///
/// Other checks complete it: ``AcknowledgedOperations`` for all other operations, every run for
/// pending ones, and ``Convergence`` for rejected rows that are still shown.
///
/// Another file with the same operations may have sent them before they were rejected here, or may
/// send them when the reason has gone. Those are left out. If the server was restored from a
/// backup, nothing is checked. The server may then reject re-uploaded operations that it had
/// accepted once, together with other operations of the same transaction.
package struct QuarantineApart: Oracle {
  package static let name = "quarantine-apart"

  private var logs = FileLogs()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    logs.see(event)
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    logs.see(final)
    guard !logs.lineage.wentBack else { return [] }
    var places: [OperationID: HistoryEntry] = [:]
    for entry in final.server.history { places[entry.id] = entry }
    return logs.files.flatMap { file in
      file.entries.compactMap { entry in
        guard entry.isQuarantined, !entry.isShared, let place = places[entry.operation.id]
        else { return nil }
        return Violation(
          oracle: Self.name, "\(file.device) also has \(place.place) in quarantine")
      }
    }
  }
}
