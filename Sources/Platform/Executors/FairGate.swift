import Synchronization

/// A gate for a number of callers at the same time. The others wait in turns of their flows.
///
/// ```swift
/// let gate = FairGate(FlowLimits(all: 3))
/// let flow = WorkFlow.current
/// guard await gate.enter(flow.path) else { throw .busy }
/// defer { gate.leave(flow.path) }
/// ```
package final class FairGate: Sendable {
  private struct Waiter {
    let user: String
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var waiting = FairQueue<Waiter>()
    var running = FlowCounts()

    mutating func begin(_ user: String, _ limits: FlowLimits) -> Bool {
      guard limits.allow(user, beside: running) else { return false }
      running.begin(user)
      return true
    }
  }

  private let limits: FlowLimits
  private let waitingMax: Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - limits: Callers at once, in all and of one user.
  ///   - waitingMax: Callers that may wait. Above it, a caller of the user with most is refused.
  package init(_ limits: FlowLimits, waitingMax: Int = 1_024) {
    self.limits = limits
    self.waitingMax = waitingMax
  }

  /// Callers in the queue.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Callers of one user in the queue.
  package func waitingCount(of user: String) -> Int {
    state.withLock { $0.waiting.count(of: user) }
  }

  /// Waits for the caller's turn; a cancelled task waits as well. Returns `false` if too many wait;
  /// otherwise the caller calls ``leave(_:)`` when it is done.
  ///
  /// - Parameter path: The caller's flow, from the user inwards (``FairQueue``).
  package func enter(_ path: [String]) async -> Bool {
    let user = path.first ?? ""
    if state.withLock({ $0.begin(user, limits) }) { return true }
    return await withCheckedContinuation { continuation in
      let refused = state.withLock { state -> Waiter? in
        let waiter = Waiter(user: user, continuation: continuation)
        // Somebody may have left meanwhile.
        if state.begin(user, limits) {
          continuation.resume(returning: true)
          return nil
        }
        state.waiting.add(waiter, to: path)
        return state.waiting.count > waitingMax ? state.waiting.removeHeaviest() : nil
      }
      refused?.continuation.resume(returning: false)
    }
  }

  /// Ends a caller's turn.
  package func leave(_ path: [String]) {
    let next = state.withLock { state -> Waiter? in
      state.running.end(path.first ?? "")
      let running = state.running
      let next = state.waiting.removeNext { limits.allow($0, beside: running) }
      if let next { state.running.begin(next.user) }
      return next
    }
    next?.continuation.resume(returning: true)
  }
}

/// The limits of work at the same time.
package struct FlowLimits: Sendable, Equatable {
  /// Of all users together.
  package var all: Int
  /// Of one user. The server's own work has no such limit.
  package var user: Int

  package init(all: Int, user: Int? = nil) {
    self.all = all
    self.user = user ?? all
  }

  /// Returns whether a user's work may start.
  package func allow(_ user: String, beside running: FlowCounts) -> Bool {
    running.all < all && (user.isEmpty || running.count(of: user) < self.user)
  }
}

/// The running work, by user; pure.
package struct FlowCounts: Sendable, Equatable {
  /// Of all users together.
  package private(set) var all = 0
  private var users: [String: Int] = [:]

  package init() {}

  package func count(of user: String) -> Int { users[user] ?? 0 }

  package mutating func begin(_ user: String) {
    all += 1
    users[user, default: 0] += 1
  }

  package mutating func end(_ user: String) {
    all -= 1
    let count = count(of: user)
    users[user] = count > 1 ? count - 1 : nil
  }
}
