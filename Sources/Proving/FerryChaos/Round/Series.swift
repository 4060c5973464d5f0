import FerryCommandLine
import FerryLaboratory
import Foundation

/// Rounds one after another on one private PostgreSQL, each on a separate database.
struct Series: Sendable {
  let plans: [RoundPlan]
  /// The folder for the evidence of failures.
  let evidenceRoot: URL
  /// True if the evidence of successful rounds is kept as well.
  let keepsAll: Bool

  func run() async throws -> MatrixReport {
    let cluster = try await blocking { try PostgresCluster() }
    var report = MatrixReport()
    for plan in plans {
      try Task.checkCancellation()
      let round = try await run(plan, on: cluster)
      // A long run reports a failure at once; the whole of it comes at the end.
      if !round.holds && plan.number < plans.count {
        try TextOutput.standardError.lines(round.failureLines.prefix(3))
      }
      report.rounds.append(round)
    }
    return report
  }

  /// Returns one round behind a separate progress line.
  private func run(_ plan: RoundPlan, on cluster: PostgresCluster) async throws -> RoundReport {
    let bar = ProgressBar(
      "round \(plan.number)/\(plans.count) \(plan.label)", unit: .items("transactions"),
      total: Int64(plan.transactions))
    bar.update(completed: 0)
    defer { bar.finish() }
    return try await Round(
      plan: plan, cluster: cluster, evidenceRoot: evidenceRoot, keepsAll: keepsAll,
      progress: { bar.advance() }
    ).run()
  }
}
