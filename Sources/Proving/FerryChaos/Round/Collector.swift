import FerryConformance

/// Reports events to the oracles, in the order in which each device saw them.
actor Collector {
  private var oracles: OracleBench
  private let chronicle: Chronicle
  private(set) var violations: [Violation] = []
  private(set) var figures = Figures()

  /// Counts of events.
  struct Figures: Sendable, Equatable {
    var committed = 0
    /// Transactions killed by a fault before they had committed.
    var killed = 0
    /// Transactions refused by SQLite because of other work in between.
    var refused = 0
    /// Transactions without rows to act on.
    var skipped = 0
    var operations = 0
    var reads = 0
    /// Transactions of the program whose commit it knows.
    var programCommitted = 0
    /// Migrations of the company's tables.
    var migrations = 0
    /// Rows listed by a mirror because one side cannot hold them.
    var listed = 0
  }

  init(_ chronicle: Chronicle, _ oracles: OracleBench = OracleBench()) {
    (self.chronicle, self.oracles) = (chronicle, oracles)
  }

  /// Passes an event to the oracles.
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

  /// Passes the state after draining to the oracles.
  func judge(_ final: FinalEvidence) { add(oracles.judge(final)) }

  /// Adds a violation seen by the harness itself.
  func add(_ violation: Violation) { add([violation]) }

  func count(_ change: @Sendable (inout Figures) -> Void) { change(&figures) }

  private func add(_ found: [Violation]) {
    for violation in found { chronicle.append("VIOLATION", violation.description) }
    violations += found
  }
}
