/// All data of a report page about one run.
package struct ReportContent: Sendable {
  package var seed: UInt64
  /// The command to run it again.
  package var replayCommand: String
  /// Names and values of the run's options, in the order to show.
  package var options: [(name: String, value: String)]
  /// The actors in the order of their lanes: devices, then servers. Actors found only in events get
  /// lanes below these.
  package var actors: [String]
  /// In any order; the page sorts them by time and keeps the order of those at one time.
  package var events: [TraceEvent]
  /// The findings of the oracles; empty for a correct run. The text of a violation with a
  /// `TraceEvent.Kind.violation` event contains the event's detail: this links it to its moment.
  package var violations: [String]
  /// The figures of the run: operations, packets, exchanges, conflicts.
  package var figures: [(name: String, value: Int)]
  /// The number of injected faults of each kind.
  package var faults: [(name: String, value: Int)]
  /// The run's hash: equal for two runs of one seed.
  package var traceHash: String

  package init(
    seed: UInt64, replayCommand: String, options: [(name: String, value: String)],
    actors: [String], events: [TraceEvent], violations: [String],
    figures: [(name: String, value: Int)], faults: [(name: String, value: Int)] = [],
    traceHash: String
  ) {
    self.seed = seed
    self.replayCommand = replayCommand
    self.options = options
    self.actors = actors
    self.events = events
    self.violations = violations
    self.figures = figures
    self.faults = faults
    self.traceHash = traceHash
  }
}
