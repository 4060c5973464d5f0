/// All oracles on one run of one space.
package struct OracleBench {
  /// Violations reported by each oracle at the end; one bug often shows everywhere.
  private static let reportedMax = 10

  private var oracles: [any Oracle]

  /// Creates the oracles. Oracles of the final state come last, since their findings are the
  /// hardest to explain.
  package init() {
    oracles = [
      WholeTransactions(), MonotonicReads(), ReadYourWrites(), AcknowledgedOperations(),
      OwnOrder(), LaterThanSeen(), ReferenceState(), CounterSums(), PolicyValues(),
      QuarantineApart(),
      ConflictsAccounted(), OverrulingsReported(),
      NoSkippedChange(), ChildrenKept(), LossesListed(), TriggersOnce(), AnswersKept(),
      Convergence(),
    ]
  }

  /// Creates the oracles for any tables: not only for those of the simulator's workload.
  package init(ofMirrors: Void) {
    oracles = [
      AcknowledgedOperations(), OwnOrder(), LaterThanSeen(), QuarantineApart(), Convergence(),
    ]
  }

  /// The oracles' names, in order.
  package var names: [String] { oracles.map { type(of: $0).name } }

  package mutating func see(_ event: RunEvent) -> [Violation] {
    var found: [Violation] = []
    for index in oracles.indices { found += oracles[index].see(event) }
    return found
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var found: [Violation] = []
    for index in oracles.indices { found += oracles[index].judge(final).prefix(Self.reportedMax) }
    return found
  }
}
