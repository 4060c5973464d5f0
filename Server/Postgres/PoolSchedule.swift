/// The kind of work on a connection: each kind has a share of the pool.
package enum PoolLane: Int, Sendable, CaseIterable {
  /// Checks of permissions: every request begins with one.
  case authentication
  /// Writes that a user waits for.
  case push
  /// Pages of changes, which may be many and large.
  case pull
  /// Background work: folding, pruning, matching.
  case upkeep
}

/// How the connections of a pool are divided, and how much may wait for them.
package struct PoolShares: Sendable, Equatable {
  /// Connections that are kept free for a lane.
  package var reserved: [PoolLane: Int]
  /// Work that may wait in each lane.
  package var waitingMax: Int
  /// How long it may wait; `nil` for as long as it takes.
  package var patience: Duration?

  /// All lanes wait in one line, for as long as it takes.
  package static let none = PoolShares(reserved: [:], waitingMax: .max, patience: nil)

  /// Returns the shares of a server's pool. A quarter at least belongs to all, so that no lane
  /// stands still; below four connections nothing is reserved for authentication.
  package static func standard(connections: Int) -> PoolShares {
    PoolShares(
      reserved: [
        .authentication: connections >= 4 ? max(1, connections / 8) : 0,
        .push: connections >= 3 ? max(1, connections * 3 / 8) : 0,
        .pull: connections / 4,
      ], waitingMax: 1_024, patience: .seconds(10))
  }
}

/// The schedule that picks the work for the next free connection; pure. In a lane work goes in the
/// order of its arrival. A lane may always use its reserved connections, and any free one of the
/// rest.
struct PoolSchedule<Job> {
  private struct Entry {
    let job: Job
    let arrival: Int
    let deadline: Duration?
  }

  /// Entries in the order of arrival; those before `first` are taken.
  private struct Line {
    var entries: [Entry?] = []
    var first = 0
    var running = 0

    var count: Int { entries.count - first }
    var head: Entry? { first < entries.count ? entries[first] : nil }

    mutating func removeFirst() -> Entry? {
      guard let entry = head else { return nil }
      entries[first] = nil
      first += 1
      if first > 64 && first * 2 > entries.count {
        entries.removeFirst(first)
        first = 0
      }
      return entry
    }
  }

  private let connections: Int
  private let shares: PoolShares
  private var lines = [Line](repeating: Line(), count: PoolLane.allCases.count)
  private var arrivals = 0

  init(connections: Int, shares: PoolShares) {
    self.connections = connections
    self.shares = shares
  }

  /// Whether nothing waits.
  var isEmpty: Bool { lines.allSatisfy { $0.count == 0 } }

  /// When ``expire(now:)`` has something to do, if nothing happens before.
  var nextDeadline: Duration? { lines.compactMap { $0.head?.deadline }.min() }

  /// Adds work to a line; returns `false` if too much waits.
  mutating func add(_ job: Job, lane: PoolLane, now: Duration) -> Bool {
    guard lines[lane.rawValue].count < shares.waitingMax else { return false }
    arrivals += 1
    lines[lane.rawValue].entries.append(
      Entry(job: job, arrival: arrivals, deadline: shares.patience.map { now + $0 }))
    return true
  }

  /// Returns the next work for a free connection; call ``finish(_:)`` when it is done.
  mutating func take() -> (job: Job, lane: PoolLane)? {
    let lane = PoolLane.allCases.filter { lines[$0.rawValue].head != nil && mayRun($0) }.min {
      (lines[$0.rawValue].head?.arrival ?? 0) < (lines[$1.rawValue].head?.arrival ?? 0)
    }
    guard let lane, let entry = lines[lane.rawValue].removeFirst() else { return nil }
    lines[lane.rawValue].running += 1
    return (entry.job, lane)
  }

  mutating func finish(_ lane: PoolLane) { lines[lane.rawValue].running -= 1 }

  /// Removes and returns work that has waited for too long.
  mutating func expire(now: Duration) -> [Job] {
    var expired: [Job] = []
    for index in lines.indices {
      while let deadline = lines[index].head?.deadline, deadline <= now,
        let entry = lines[index].removeFirst()
      {
        expired.append(entry.job)
      }
    }
    return expired
  }

  private func mayRun(_ lane: PoolLane) -> Bool {
    let running = lines.reduce(0) { $0 + $1.running }
    guard running < connections else { return false }
    if lines[lane.rawValue].running < shares.reserved[lane] ?? 0 { return true }
    let kept = PoolLane.allCases.filter { $0 != lane }.reduce(0) {
      $0 + max(0, (shares.reserved[$1] ?? 0) - lines[$1.rawValue].running)
    }
    return running + kept < connections
  }
}
