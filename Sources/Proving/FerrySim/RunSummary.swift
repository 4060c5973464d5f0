import FerryCommandLine
import FerrySimulation

/// The result of one run, as text and as JSON.
struct RunSummary {
  let result: WorldResult
  let replayCommand: String
  let elapsed: Duration
  let reportPath: String?
  /// A small failing part, after a search for it.
  var shrunk: Shrinker.Outcome?

  var lines: [String] {
    let seconds = elapsed / .seconds(1)
    let quickness = Double(result.virtualTime) / 1e6 / max(seconds, 1e-9)
    var lines = [
      "seed \(result.seed): \(result.options.devices) devices, \(result.committed) operations, "
        + "\(result.virtualTime / 1_000_000) s of virtual time in \(rounded(seconds)) s "
        + "(\(Int(quickness)) times as fast)",
      "trace \(result.traceHash)",
    ]
    let faults = result.faultCounts
    if !faults.isEmpty {
      lines += ["", "Faults and upgrades"] + SimCommand.plot(faults)
    }
    lines.append("")
    lines += result.violations.isEmpty ? ["No oracle found a violation."] : failure
    if let reportPath { lines.append("The report of the run: \(reportPath)") }
    return lines
  }

  private var failure: [String] {
    result.violations.map { "FAILED \($0)" } + ["Run it again: \(replayCommand)"]
  }

  /// The smallest part found with the same failure.
  var shrunkLines: [String] {
    guard let shrunk else { return [] }
    let title = [
      "",
      "The smallest part found that still fails (\(shrunk.runs) worlds tried), trace "
        + "\(shrunk.result.traceHash):",
    ]
    return title + shrunk.plan.lines.map { "  " + $0 }
      + shrunk.result.violations.prefix(1).map { "  then: \($0)" }
  }

  var json: JSONText {
    .object([
      ("seed", .string("\(result.seed)")), ("trace", .string(result.traceHash)),
      ("passed", .bool(result.violations.isEmpty)),
      ("devices", .int(result.options.devices)), ("operations", .int(result.committed)),
      ("virtual_seconds", .double(Double(result.virtualTime) / 1e6)),
      ("seconds", .double(elapsed / .seconds(1))),
      ("faults", .object(result.faultCounts.map { ($0.name, .int($0.count)) })),
      ("violations", .array(result.violations.map { .string($0.description) })),
      ("replay", .string(replayCommand)),
      ("shrunk", shrunk.map { .array($0.plan.lines.map { .string($0) }) } ?? .null),
      ("report", .string(orNull: reportPath)),
    ])
  }

  private func rounded(_ seconds: Double) -> Double { (seconds * 100).rounded() / 100 }
}

extension ReportContent {
  /// The events with a figure on the page.
  private static let shown: [TraceEvent.Kind] = [
    .sent, .applied, .buffered, .refused, .synced, .conflict, .exchanged,
  ]

  init(_ result: WorldResult, replayCommand: String) {
    let figures =
      [("operations", result.committed), ("virtual seconds", Int(result.virtualTime / 1_000_000))]
      + Self.shown.compactMap { kind in result.counts[kind].map { (kind.rawValue, $0) } }
    self.init(
      seed: result.seed, replayCommand: replayCommand,
      options: WorldOptions.Field.all.map { ($0.name, String($0.get(result.options))) },
      actors: result.actors, events: result.events,
      violations: result.violations.map(\.description),
      figures: figures.map { (name: $0.0, value: $0.1) },
      faults: result.faultCounts.map { (name: $0.name, value: $0.count) },
      traceHash: result.traceHash)
  }
}
