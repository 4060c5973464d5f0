import FerryPlatform

/// The kind of work on a connection: each kind has a share of the pool.
package enum PoolLane: Int, Sendable, CaseIterable {
  /// Checks of permissions: every request begins with one.
  case authentication
  /// Writes with a waiting user.
  case push
  /// Pages of changes, which may be many and large.
  case pull
  /// Background work: folding, pruning, matching.
  case upkeep
}

/// The division of a pool's connections, and the limits of waiting work.
package struct PoolShares: Sendable, Equatable {
  /// Connections reserved for a lane.
  package var reserved: [PoolLane: Int]
  /// Work that may wait in each lane.
  package var waitingMax: Int
  /// The longest wait; `nil` for as long as it takes.
  package var patience: Duration?
  /// Connections of a lane not available to a single user, so another user's work begins at once.
  package var others = 0

  /// All lanes wait in one line, for as long as it takes.
  package static let none = PoolShares(reserved: [:], waitingMax: .max, patience: nil)

  /// Returns the shares of a server's pool. At least a quarter belongs to all lanes, so each one
  /// makes progress. A pool with fewer than four connections reserves none for authentication, and
  /// one user may use all of them.
  package static func standard(connections: Int) -> PoolShares {
    PoolShares(
      reserved: [
        .authentication: connections >= 4 ? max(1, connections / 8) : 0,
        .push: connections >= 3 ? max(1, connections * 3 / 8) : 0,
        .pull: connections / 4,
      ], waitingMax: 1_024, patience: .seconds(10), others: connections >= 4 ? 1 : 0)
  }
}

/// The schedule of work for the next free connection; pure.
///
/// In a lane the users take turns, then the spaces of a user, and the work of one space goes in the
/// order of arrival. A lane may always use its reserved connections, and any free one of the rest.
/// If too much waits, the newest work of the user with most is refused.
struct PoolSchedule<Job> {
  private struct Entry {
    let job: Job
    let flow: WorkFlow
    let arrival: Int
    let deadline: Duration?
  }

  private struct Line {
    var waiting = FairQueue<Entry>()
    var running = FlowCounts()
  }

  private let connections: Int
  private let shares: PoolShares
  private var lines = [Line](repeating: Line(), count: PoolLane.allCases.count)
  private var arrivals = 0

  init(connections: Int, shares: PoolShares) {
    self.connections = connections
    self.shares = shares
  }

  /// True if nothing waits.
  var isEmpty: Bool { lines.allSatisfy { $0.waiting.isEmpty } }

  /// Work in the queues of all lanes.
  var waitingCount: Int { lines.reduce(0) { $0 + $1.waiting.count } }

  /// When ``expire(now:)`` has something to do, if nothing happens before.
  var nextDeadline: Duration? {
    lines.flatMap { $0.waiting.heads }.compactMap(\.deadline).min()
  }

  /// Adds work to a lane. Returns the work without room if too much waits: the new one, or one of a
  /// user with more.
  mutating func add(_ job: Job, lane: PoolLane, flow: WorkFlow = .own, now: Duration) -> Job? {
    arrivals += 1
    let entry = Entry(
      job: job, flow: flow, arrival: arrivals, deadline: shares.patience.map { now + $0 })
    lines[lane.rawValue].waiting.add(entry, to: flow.path)
    guard lines[lane.rawValue].waiting.count > shares.waitingMax else { return nil }
    return lines[lane.rawValue].waiting.removeHeaviest()?.job
  }

  /// Returns the next work for a free connection; call ``finish(_:_:)`` when it is done.
  mutating func dequeue() -> (job: Job, lane: PoolLane, flow: WorkFlow)? {
    var next: (lane: PoolLane, arrival: Int)?
    for lane in PoolLane.allCases where !lines[lane.rawValue].waiting.isEmpty && mayRun(lane) {
      let (line, limits) = (lines[lane.rawValue], limits(of: lane))
      guard let head = line.waiting.next(where: { limits.allow($0, beside: line.running) }),
        head.arrival < next?.arrival ?? .max
      else { continue }
      next = (lane, head.arrival)
    }
    guard let lane = next?.lane else { return nil }
    let (running, limits) = (lines[lane.rawValue].running, limits(of: lane))
    guard
      let entry = lines[lane.rawValue].waiting.removeNext(where: {
        limits.allow($0, beside: running)
      })
    else { return nil }
    lines[lane.rawValue].running.begin(entry.flow.user)
    return (entry.job, lane, entry.flow)
  }

  mutating func finish(_ lane: PoolLane, _ flow: WorkFlow) {
    lines[lane.rawValue].running.end(flow.user)
  }

  /// Removes and returns work after too long a wait.
  mutating func expire(now: Duration) -> [Job] {
    lines.indices.flatMap { index in
      lines[index].waiting.removeHeads { $0.deadline.map { $0 <= now } ?? false }.map(\.job)
    }
  }

  private func mayRun(_ lane: PoolLane) -> Bool {
    let running = lines.reduce(0) { $0 + $1.running.all }
    guard running < connections else { return false }
    if lines[lane.rawValue].running.all < shares.reserved[lane] ?? 0 { return true }
    let kept = PoolLane.allCases.filter { $0 != lane }.reduce(0) {
      $0 + max(0, (shares.reserved[$1] ?? 0) - lines[$1.rawValue].running.all)
    }
    return running + kept < connections
  }

  /// Returns how much of a lane's work may run, in all and of one user.
  private func limits(of lane: PoolLane) -> FlowLimits {
    let reserved = PoolLane.allCases.filter { $0 != lane }.reduce(0) {
      $0 + (shares.reserved[$1] ?? 0)
    }
    return FlowLimits(all: connections, user: max(1, connections - reserved - shares.others))
  }
}
