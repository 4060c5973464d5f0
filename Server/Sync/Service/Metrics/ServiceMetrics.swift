import FerryProtocol
import Synchronization

/// Counters of the server since the start.
package final class ServiceMetrics: Sendable {
  struct Counts: Sendable {
    var requests: [RequestKey: Int] = [:]
    var durations: [Route: Histogram] = [:]
    var bytesIn: [Route: Int] = [:]
    var bytesOut: [Route: Int] = [:]
    var packets: [String: Int] = [:]
    var operations = 0
    var conflicts = 0
    var pages = 0
    var changes = 0
    var batches = Histogram(bounds: [1, 2, 4, 8, 16, 32, 64])
    var storeErrors = 0
    var pruned = PrunedRows()
    var pruneRuns = 0
    var unreclaimed = 0
    /// Milliseconds for which history is kept at least, in the space that keeps the most.
    var historyAge: Int64?
  }

  struct RequestKey: Hashable, Sendable, Comparable {
    var route: String
    var method: String
    var status: Int

    static func < (left: RequestKey, right: RequestKey) -> Bool {
      (left.route, left.method, left.status) < (right.route, right.method, right.status)
    }
  }

  /// Seconds; the ends of the buckets of requests' durations.
  static let durationBounds = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  ]

  private let counts = Mutex(Counts())

  package init() {}

  var snapshot: Counts { counts.withLock { $0 } }

  /// Counts an answered request. Streams of events last as long as their listeners, so their
  /// durations are left out.
  func count(_ entry: RequestEntry) {
    let seconds = entry.duration / .seconds(1)
    counts.withLock { counts in
      let key = RequestKey(
        route: entry.route.rawValue, method: entry.knownMethod, status: entry.status)
      counts.requests[key, default: 0] += 1
      counts.bytesIn[entry.route, default: 0] += entry.bytesIn
      if entry.route != .events {
        counts.durations[entry.route, default: Histogram(bounds: Self.durationBounds)]
          .observe(seconds)
      }
    }
  }

  /// Counts sent bytes of an answer's content.
  func countSent(_ bytes: Int, from route: Route) {
    counts.withLock { $0.bytesOut[route, default: 0] += bytes }
  }

  /// Counts one transaction.
  func count(_ batch: IngestBatch, of packets: [IncomingPacket]) {
    var tally: [String: Int] = [:]
    var operations = 0
    var conflicts = 0
    for case .accepted(let receipt, let released) in batch.results {
      tally[receipt.status.rawValue, default: 0] += 1
      tally["released", default: 0] += released.count
      for receipt in [receipt] + released where receipt.status == .applied {
        operations += receipt.outcomes.count
        conflicts += receipt.outcomes.reduce(0) { $0 + $1.conflicts.count }
      }
    }
    tally["refused"] = batch.results.count { if case .refused = $0 { true } else { false } }
    counts.withLock { [tally] counts in
      counts.packets.merge(tally, uniquingKeysWith: +)
      counts.operations += operations
      counts.conflicts += conflicts
      counts.batches.observe(Double(packets.count))
    }
  }

  /// Counts a request without a route.
  func count(refused status: Int) {
    let key = RequestKey(route: Route.unknown.rawValue, method: "other", status: status)
    counts.withLock { $0.requests[key, default: 0] += 1 }
  }

  /// Counts a page of a pull list.
  func countPage(changes: Int) {
    counts.withLock { counts in
      counts.pages += 1
      counts.changes += changes
    }
  }

  /// Counts a run of the pruner.
  func count(_ run: PruneRun) {
    counts.withLock { counts in
      counts.pruned += run.rows
      counts.pruneRuns += 1
      counts.unreclaimed = run.unreclaimed
      counts.historyAge = run.historyAge
    }
  }

  func countStoreError() { counts.withLock { $0.storeErrors += 1 } }
}
