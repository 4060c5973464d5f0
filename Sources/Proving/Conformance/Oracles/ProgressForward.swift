import FerryProtocol

/// Checks the progress of a mission being fetched: it never goes back and never exceeds the whole.
package struct ProgressForward: MissionOracle {
  package static let name = "progress-forward"

  private struct Run: Hashable {
    var device: String
    var mission: MissionID
  }

  private var reported: [Run: (version: Int64, done: Int64)] = [:]

  package init() {}

  package mutating func see(_ event: MissionRunEvent) -> [Violation] {
    switch event {
    case .progress(let device, let version, let done, let total):
      let run = Run(device: device, mission: version.mission)
      defer { reported[run] = (version.version, done) }
      let before = reported[run].map { $0.version == version.version ? $0.done : 0 } ?? 0
      guard done < before || done > total || done < 0 else { return [] }
      return [
        Violation(
          oracle: Self.name,
          "\(device): mission \(version.mission) is at \(done) of \(total) bytes, after \(before)")
      ]
    case .rested(let device, let mission):
      reported[Run(device: device, mission: mission)] = nil
    case .killed(let device), .wentBack(let device), .restored(let device, _, _):
      reported = reported.filter { $0.key.device != device }
    default: break
    }
    return []
  }
}
