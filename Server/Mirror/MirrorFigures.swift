import FerryPlatform
import FerryPostgres
import FerrySQLite
import FerrySyncClient
import Synchronization

extension Mirror {
  /// The work of a running mirror that is left, and the rows refused so far.
  package struct Figures: Sendable, Equatable {
    package var unsent: Int64
    package var deferred: Int64
    package var isStopped: Bool
    /// Writes of programs on their way to the space, at most ``countedMax``.
    package var captured: Int64
    /// The time of the oldest of them; `nil` if there are none. Times are milliseconds since 1970 by
    /// this machine's clock.
    package var capturedSince: Int64?
    /// The time since which the mirror knows of a change missing in the tables; `nil` if they have
    /// all.
    package var behindSince: Int64?
    /// The time of the last complete round; `nil` before the first.
    package var lastRound: Int64?
    /// Rows of devices refused by the tables, and returned, since the mirror was opened.
    package var returned: Int64
    /// Writes of programs refused by the mirror's own file, since the mirror was opened.
    package var rejected: Int64
    /// Views whose changes do not all reach the space.
    package var failingViews: Int64
    /// The log kept by PostgreSQL for the mirror; `nil` if triggers capture.
    package var log: KeptLog?

    /// The most counted writes: a count reads each of them.
    static let countedMax: Int64 = 100_000
  }
}

/// Counts and times of a mirror in this process, between rounds.
final class MirrorTally: Sendable {
  private struct State {
    var returned: Int64 = 0
    var rejected: Int64 = 0
    var behindSince: Int64?
    var lastRound: Int64?
    var log: Mirror.KeptLog?
    var logReadAt: ContinuousClock.Instant?
  }

  /// The pause between two looks at the kept log.
  private static let logPause = Duration.seconds(10)

  private let state = Mutex(State())

  func add(returned: Int = 0, rejected: Int = 0) {
    state.withLock {
      $0.returned += Int64(returned)
      $0.rejected += Int64(rejected)
    }
  }

  /// Returns the figures after a round.
  ///
  /// - Parameters:
  ///   - counts: the counts of PostgreSQL and of the file.
  ///   - isComplete: whether the round has carried all rows.
  func figures(
    _ counts: MirrorLook.Counts, isStopped: Bool, isComplete: Bool, at now: Int64
  ) -> Mirror.Figures {
    state.withLock { state in
      if isComplete { state.lastRound = now }
      state.behindSince = counts.isBehind ? state.behindSince ?? now : nil
      return Mirror.Figures(
        unsent: counts.unsent, deferred: counts.deferred, isStopped: isStopped,
        captured: counts.captured, capturedSince: counts.capturedAge.map { now - $0 },
        behindSince: state.behindSince, lastRound: state.lastRound, returned: state.returned,
        rejected: state.rejected, failingViews: counts.failingViews, log: state.log)
    }
  }

  /// Reads the kept log again, unless it was read just before.
  ///
  /// - Parameter isStopped: whether the mirror has stopped itself: the log has just been released.
  func readLog(isStopped: Bool, _ read: () throws -> Mirror.KeptLog?) rethrows {
    let clock = ContinuousClock()
    let isDue = state.withLock { state in
      isStopped || state.logReadAt.map { $0.duration(to: clock.now) >= Self.logPause } ?? true
    }
    guard isDue else { return }
    let log = try read()
    state.withLock { ($0.log, $0.logReadAt) = (log, clock.now) }
  }
}

extension MirrorLook {
  /// The counts of a mirror's left work.
  struct Counts: Sendable, Equatable {
    var unsent: Int64
    var deferred: Int64
    var captured: Int64
    /// The age of the oldest captured write, in milliseconds.
    var capturedAge: Int64?
    /// True if the tables lack a change known to the mirror.
    var isBehind: Bool
    var failingViews: Int64
  }

  func counts(_ connection: PostgresConnection) throws -> Counts {
    let (waiting, head) =
      try openFile().flatMap { file in
        try ReplicaSnapshot.read(file) { (Int64(try $0.rejectedCount()), try $0.head()) }
      } ?? (0, 0)
    let row = try connection.query(
      PostgresStatement(
        "mirror_figures",
        """
        SELECT (SELECT count(*) FROM ferry_mirror.unsent WHERE mirror = $1),
          (SELECT count(*) FROM ferry_mirror.deferred WHERE mirror = $1), c.count,
          (extract(epoch FROM clock_timestamp() - c.at) * 1000)::bigint,
          coalesce((SELECT applied FROM ferry_mirror.mirrors WHERE number = $1), 0),
          (SELECT count(*) FROM ferry_mirror.views WHERE mirror = $1 AND reason <> '')
        FROM (SELECT count(*) AS count, min(at) AS at FROM (
          SELECT at FROM ferry_mirror.captured WHERE mirror = $1 ORDER BY xid, id LIMIT $2) w) c
        """), [.int8(ledger.number), .int8(Mirror.Figures.countedMax)]
    ).first
    return Counts(
      unsent: try row?.int8(0) ?? 0, deferred: (try row?.int8(1) ?? 0) + waiting,
      captured: try row?.int8(2) ?? 0, capturedAge: try row?.ifPresent(3, as: Int64.self),
      isBehind: try row?.int8(4) ?? 0 < head, failingViews: try row?.int8(5) ?? 0)
  }
}

extension MirrorRounds {
  /// - Parameter isComplete: whether a round has carried all rows.
  func figures(isStopped: Bool, isComplete: Bool = false) async throws -> Mirror.Figures {
    let (look, tally, ledger, sides) = (look, sides.tally, ledger, sides)
    let counts = try await pool.run { connection in
      if sides.reader != nil {
        try tally.readLog(isStopped: isStopped) {
          try MirrorLog.kept(ledger.number, isStopped: isStopped, connection)
        }
      }
      return try look.counts(connection)
    }
    return tally.figures(
      counts, isStopped: isStopped, isComplete: isComplete, at: SystemClock.milliseconds())
  }
}
