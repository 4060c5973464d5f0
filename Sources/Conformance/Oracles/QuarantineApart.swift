import FerryProtocol

/// What a device holds in quarantine has not reached the server: nothing of it is in the history.
/// (That everything else has is ``AcknowledgedOperations``', that nothing stays pending is asked of
/// every run, and ``Convergence`` finds rows that were refused and are still shown.)
///
/// Another file that holds the same operations may have sent them before it was refused here, or
/// send them when the reason has gone: those are not looked at. Nor is anything where the server
/// was set back: what it had accepted once it may refuse when it is given back, together with
/// what it still has of the same transaction.
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
          oracle: Self.name, "\(file.device) has \(place.place) in quarantine, too")
      }
    }
  }
}
