import FerryCommandLine
import FerryConformance

/// The result of a round.
struct RoundReport: Sendable {
  let plan: RoundPlan
  let figures: Collector.Figures
  let injected: [FaultKind: Int]
  /// From the heal until all queues were empty; `nil` when they were not in time.
  let drain: Duration?
  let violations: [Violation]
  /// The directory in which a failure's evidence is.
  var evidence: String?

  var holds: Bool { violations.isEmpty }

  /// Kinds of fault in the round, in order, with their numbers.
  var faults: [(kind: FaultKind, count: Int)] {
    FaultKind.allCases.compactMap { kind in injected[kind].map { (kind, $0) } }
  }

  var faultCount: Int { injected.values.reduce(0, +) }

  var drainText: String { drain.map { "\(($0 / .seconds(1)).rounded(to: 1)) s" } ?? "–" }

  /// The facts of a failure: the command to repeat it, the findings, and the folder of the
  /// evidence.
  var failureLines: [String] {
    var lines = ["round \(plan.number) failed, seed \(plan.seed)", "  run again: \(plan.command)"]
    let shown = violations.prefix(20)
    lines += shown.map { "  \($0.description.escapedForTerminal)" }
    if violations.count > shown.count {
      lines.append("  and \(violations.count - shown.count) more")
    }
    if let evidence { lines.append("  evidence: \(evidence)") }
    return lines
  }

  var json: JSONText {
    .object([
      ("round", .int(plan.number)), ("nemesis", .string(plan.label)),
      ("seed", .string("\(plan.seed)")), ("devices", .int(plan.devices)),
      ("seconds", .double(plan.duration / .seconds(1))),
      ("committed", .int(figures.committed)), ("killed", .int(figures.killed)),
      ("refused", .int(figures.refused)), ("skipped", .int(figures.skipped)),
      ("operations", .int(figures.operations)), ("reads", .int(figures.reads)),
      ("faults", .object(faults.map { ($0.kind.rawValue, .int($0.count)) })),
      ("drainSeconds", drain.map { .double(($0 / .seconds(1)).rounded(to: 3)) } ?? .null),
      ("program", programJSON), ("holds", .bool(holds)),
      ("violations", .array(violations.map { .string($0.description) })),
      ("evidence", .string(orNull: evidence)), ("again", .string(plan.command)),
    ])
  }
}

extension RoundReport {
  /// The figures of the program on a mirror's tables.
  private var programJSON: JSONText {
    guard let program = plan.program else { return .null }
    return .object([
      ("committed", .int(figures.programCommitted)), ("store", .string(program.store.rawValue)),
      ("listed", .int(figures.listed)), ("migrations", .int(figures.migrations)),
    ])
  }
}

extension Double {
  /// Rounds to at most this many decimals.
  func rounded(to decimals: Int) -> Double {
    let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
    return (self * scale).rounded() / scale
  }
}
