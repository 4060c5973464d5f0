import Conformance

/// Tells the oracles what happens, in the order in which each device saw it.
actor Collector {
  private var oracles = OracleBench()
  private let chronicle: Chronicle
  private(set) var violations: [Violation] = []
  private(set) var figures = Figures()

  /// What was counted.
  struct Figures: Sendable, Equatable {
    var committed = 0
    /// Killed by a fault before they had committed.
    var killed = 0
    /// Which SQLite refused, for the work of others that came in between.
    var refused = 0
    /// Which found nothing to do.
    var skipped = 0
    var operations = 0
    var reads = 0
  }

  init(_ chronicle: Chronicle) { self.chronicle = chronicle }

  /// Something happened that the oracles are told of.
  func see(_ event: RunEvent) {
    switch event {
    case .committed(_, let operations):
      figures.committed += 1
      figures.operations += operations.count
    case .read: figures.reads += 1
    default: break
    }
    add(oracles.see(event))
  }

  /// Looks at what is left when all has drained.
  func judge(_ final: FinalEvidence) { add(oracles.judge(final)) }

  /// A violation that the harness itself has seen.
  func add(_ violation: Violation) { add([violation]) }

  func count(_ change: @Sendable (inout Figures) -> Void) { change(&figures) }

  private func add(_ found: [Violation]) {
    for violation in found { chronicle.note("VIOLATION", violation.description) }
    violations += found
  }
}
