import FerryConformance

/// The result of one run.
package struct WorldResult: Sendable {
  package var seed: UInt64
  package var options: WorldOptions
  package var violations: [Violation]
  package var traceHash: String
  package var counts: [TraceEvent.Kind: Int]
  /// Faults by chance.
  package var happened: [FaultName]
  package var plannedFaults: [PlannedFault]
  /// Operations recorded by users' transactions.
  package var committed: Int
  /// Microseconds.
  package var virtualTime: Int64
  package var steps: Int
  package var actors: [String]
  /// Empty unless they were asked for.
  package var events: [TraceEvent]

  /// Faults of each kind, by name.
  package var faultCounts: [(name: String, count: Int)] {
    var counts: [String: Int] = [:]
    for fault in happened { counts[fault.kind.rawValue, default: 0] += 1 }
    for fault in plannedFaults { counts[fault.kind.rawValue, default: 0] += 1 }
    return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}
