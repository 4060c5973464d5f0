import Synchronization

/// The figures of a mirror in this process.
package struct MirrorGauge: Sendable, Equatable {
  /// Rows of programs that the space does not have as written.
  package var unsent: Int64
  /// Rows of the space that the tables cannot hold.
  package var deferred: Int64
  /// True if it has stopped itself.
  package var isStopped: Bool

  package init(unsent: Int64, deferred: Int64, isStopped: Bool) {
    (self.unsent, self.deferred, self.isStopped) = (unsent, deferred, isStopped)
  }
}

/// The figures of all mirrors in this process, by name, for `GET /metrics`.
package final class MirrorGauges: Sendable {
  private let gauges = Mutex<[String: MirrorGauge]>([:])

  package init() {}

  /// The figures after the last round of each mirror.
  package var all: [String: MirrorGauge] { gauges.withLock { $0 } }

  /// Replaces the figures of a mirror.
  package func show(_ gauge: MirrorGauge, of name: String) {
    gauges.withLock { $0[name] = gauge }
  }
}
