import Synchronization

/// The limit of the memory for all requests together, in bytes: their contents as they come and
/// decoded, the data loaded for them, and their answers. ``MemoryLedger`` has the rules.
///
/// Memory for a content is reserved for bytes that have arrived, never for announced ones.
package final class MemoryBudget: Sendable {
  /// Memory of contents is taken in such steps, in bytes.
  package static let step = 64 << 10
  /// The time for which work waits for memory by default.
  package static let patienceStandard = Duration.seconds(10)

  /// The use of a budget.
  package struct Counts: Sendable, Equatable {
    /// Bytes of the whole budget.
    package var limit = 0
    /// Bytes in use.
    package var used = 0
    /// The part of contents and answers on their way.
    package var transfers = 0
    /// Requests for work in the queue.
    package var waiting = 0
    /// Requests since the start without memory.
    package var refused = 0

    package init() {}
  }

  private struct State {
    var ledger: MemoryLedger<Int>
    var waiters: [Int: CheckedContinuation<Bool, Never>] = [:]
    var nextTicket = 0
    var refused = 0
  }

  private let state: Mutex<State>
  private let patience: Duration

  /// - Parameters:
  ///   - limit: In bytes.
  ///   - patience: The time for which work waits for memory.
  package init(limit: Int, patience: Duration = MemoryBudget.patienceStandard) {
    state = Mutex(State(ledger: MemoryLedger(limit: limit)))
    self.patience = patience
  }

  package var counts: Counts {
    state.withLock { state in
      var counts = Counts()
      counts.limit = state.ledger.limit
      counts.used = state.ledger.used
      counts.transfers = state.ledger.transfers
      counts.waiting = state.ledger.waiting
      counts.refused = state.refused
      return counts
    }
  }

  /// Bytes in use.
  package var used: Int { state.withLock { $0.ledger.used } }

  // MARK: Transfers

  /// True if transfers need most of their share: stalled ones give way.
  var isScarce: Bool {
    state.withLock { $0.ledger.transfers >= $0.ledger.transferMax / 4 * 3 }
  }

  /// Returns memory for an answer; `nil` if there is none. It is free again when the returned
  /// object is released.
  package func transfer(_ count: Int, account: String?) -> MemoryShare? {
    let share = MemoryShare(of: self, account: account)
    return share.grow(to: count) ? share : nil
  }

  /// Reserves all of `count` bytes for a transfer, or none.
  ///
  /// - Parameters:
  ///   - total: All bytes of the transfer, with these.
  ///   - account: The sender; `nil` if the server does not distinguish senders.
  func reserve(_ count: Int, total: Int, account: String?) -> Bool {
    state.withLock { state in
      let isAdmitted = state.ledger.admitTransfer(count, total: total, account: account)
      if !isAdmitted { state.refused += 1 }
      return isAdmitted
    }
  }

  func release(_ count: Int, account: String?) {
    resume { $0.endTransfer(count, account: account) }
  }

  // MARK: Work

  /// Returns memory for work at once; `nil` if it would have to wait.
  package func grantAtOnce(_ bytes: Int, account: String?) -> MemoryGrant? {
    state.withLock { state in
      let grant = state.ledger.grant(bytes, account: account)
      return state.ledger.admitAtOnce(grant) ? MemoryGrant(self, grant) : nil
    }
  }

  /// Waits for memory for work, a limited time; `nil` if there is none. The memory is free again
  /// when the returned object is released.
  package func grant(_ bytes: Int, account: String?) async -> MemoryGrant? {
    let (ticket, grant) = state.withLock { state in
      state.nextTicket += 1
      return (state.nextTicket, state.ledger.grant(bytes, account: account))
    }
    let isGranted = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let verdict = state.withLock { state in
          let verdict = state.ledger.admit(grant, ticket: ticket)
          if verdict == .waits { state.waiters[ticket] = continuation }
          if verdict == .refused { state.refused += 1 }
          return verdict
        }
        switch verdict {
        case .granted: continuation.resume(returning: true)
        case .refused: continuation.resume(returning: false)
        case .waits:
          Task.detached { [weak self, patience] in
            try? await Task.sleep(for: patience)
            self?.withdraw(ticket, isTurnedAway: true)
          }
          if Task.isCancelled { withdraw(ticket, isTurnedAway: false) }
        }
      }
    } onCancel: {
      withdraw(ticket, isTurnedAway: false)
    }
    return isGranted ? MemoryGrant(self, grant) : nil
  }

  fileprivate func release(_ grant: MemoryLedger<Int>.Grant) {
    resume { $0.release(grant) }
  }

  private func withdraw(_ ticket: Int, isTurnedAway: Bool) {
    var waiter: CheckedContinuation<Bool, Never>?
    resume { ledger in
      ledger.withdraw(ticket, isTurnedAway: isTurnedAway).granted
    } also: { state in
      waiter = state.waiters.removeValue(forKey: ticket)
      if waiter != nil { state.refused += 1 }
    }
    waiter?.resume(returning: false)
  }

  /// Changes the ledger, and resumes the requests that get memory by it.
  private func resume(
    _ change: (inout MemoryLedger<Int>) -> [Int], also: (inout State) -> Void = { _ in }
  ) {
    let granted = state.withLock { state in
      let tickets = change(&state.ledger)
      let granted = tickets.compactMap { state.waiters.removeValue(forKey: $0) }
      also(&state)
      return granted
    }
    for waiter in granted { waiter.resume(returning: true) }
  }
}

/// Memory for work, until the object is released.
package final class MemoryGrant: Sendable {
  private let budget: MemoryBudget
  private let grant: MemoryLedger<Int>.Grant

  fileprivate init(_ budget: MemoryBudget, _ grant: MemoryLedger<Int>.Grant) {
    (self.budget, self.grant) = (budget, grant)
  }

  deinit { budget.release(grant) }
}

/// The memory reserved by one request, until it is released. One thread uses it at a time.
package final class MemoryShare: Sendable {
  private let budget: MemoryBudget
  private let account: String?
  private let taken = Atomic(0)

  init(of budget: MemoryBudget, account: String?) {
    self.budget = budget
    self.account = account
  }

  deinit { budget.release(count, account: account) }

  var count: Int { taken.load(ordering: .relaxed) }

  /// Reserves memory up to `wanted` bytes; returns `false` if the budget is used up.
  func grow(to wanted: Int) -> Bool {
    let count = count
    guard wanted > count else { return true }
    guard budget.reserve(wanted - count, total: wanted, account: account) else { return false }
    taken.store(wanted, ordering: .relaxed)
    return true
  }

  /// Releases all memory above `wanted` bytes.
  func shrink(to wanted: Int) {
    let count = count
    guard wanted < count else { return }
    taken.store(wanted, ordering: .relaxed)
    budget.release(count - wanted, account: account)
  }
}
