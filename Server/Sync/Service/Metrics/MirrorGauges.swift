import Synchronization

/// The figures of a mirror in this process.
package struct MirrorGauge: Sendable, Equatable {
  /// The log of PostgreSQL kept for a mirror.
  package struct Log: Sendable, Equatable {
    /// The kept log, in bytes; `nil` if it is lost.
    package var bytes: Int64?
    /// True if PostgreSQL promises to keep it.
    package var isSafe: Bool

    package init(bytes: Int64?, isSafe: Bool) { (self.bytes, self.isSafe) = (bytes, isSafe) }
  }

  package var space: String
  /// Rows of programs that the space does not have as written.
  package var unsent: Int64
  /// Rows of the space that the tables cannot hold.
  package var deferred: Int64
  /// True if it has stopped itself.
  package var isStopped: Bool
  /// Writes of programs on their way to the space, up to the largest counted number.
  package var captured: Int64 = 0
  /// The time of the oldest of these writes; `nil` if there are none. Times are milliseconds since
  /// 1970 by this machine's clock.
  package var capturedSince: Int64?
  /// The time since which the mirror knows of a change missing in the tables; `nil` if they have
  /// all.
  package var behindSince: Int64?
  /// The time of the last complete round; `nil` before the first.
  package var lastRound: Int64?
  /// Rows of devices refused by the tables, and returned.
  package var returned: Int64 = 0
  /// Writes of programs refused by the mirror's own file.
  package var rejected: Int64 = 0
  /// Views whose changes do not all reach the space.
  package var failingViews: Int64 = 0
  /// `nil` if triggers capture.
  package var log: Log?

  package init(space: String, unsent: Int64, deferred: Int64, isStopped: Bool) {
    (self.space, self.unsent, self.deferred) = (space, unsent, deferred)
    self.isStopped = isStopped
  }
}

/// The figures of all mirrors in this process, by name, for `GET /metrics`.
package final class MirrorGauges: Sendable {
  /// The most mirrors with samples of their own on one page; the first by name.
  package static let shownMax = 1_000

  private let gauges = Mutex<[String: MirrorGauge]>([:])

  package init() {}

  /// The figures after the last round of each mirror.
  package var all: [String: MirrorGauge] { gauges.withLock { $0 } }

  /// Replaces the figures of a mirror.
  package func show(_ gauge: MirrorGauge, of name: String) {
    gauges.withLock { $0[name] = gauge }
  }
}
