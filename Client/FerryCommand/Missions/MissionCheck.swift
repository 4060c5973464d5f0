import Ferry
import FerryCommandLine
import Synchronization

/// The command `ferry mission verify`: shows progress, and the findings even if the repair fails.
struct MissionCheck {
  let id: MissionID
  let isRepaired: Bool
  let asJSON: Bool

  func run(with manager: MissionManager) async throws -> MissionVerification {
    let contents = Set(try await manager.items(id).map(\.content))
    let bar = ProgressBar(
      "verify \(id)", unit: .bytes, total: contents.reduce(0) { $0 + $1.size })
    let found = Mutex<MissionVerification?>(nil)
    do {
      defer { bar.finish() }
      return try await manager.verify(id, repairing: isRepaired) { report in
        bar.update(completed: report.bytes)
        found.withLock { $0 = report }
      }
    } catch {
      guard error.kind == .offline else { throw error }
      if let report = found.withLock({ $0 }) { try printFindings(report) }
      throw CommandFailure(
        "mission \(id) is damaged, and could not be repaired", why: error.description,
        next: "run `ferry mission verify \(id) --repair` again when there is a connection",
        status: .unreachable, code: "mission_offline")
    }
  }

  /// Prints the findings.
  func printFindings(_ report: MissionVerification) throws {
    try TextOutput.standardOutput.lines(
      asJSON ? [MissionPresentation.json(id, report).text] : MissionPresentation.lines(id, report))
  }
}
