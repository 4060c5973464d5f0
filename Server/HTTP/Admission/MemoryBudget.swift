import Synchronization

/// The limit of the memory that the contents of all requests may take together, as they come and
/// decoded, in bytes.
///
/// Memory is taken for bytes that have arrived, never for announced ones. No account may hold more
/// than a quarter, and an eighth is reserved for contents of up to 64 KiB. So a few large or slow
/// contents do not keep out the small packets of all other senders.
package final class MemoryBudget: Sendable {
  /// Memory is taken in such steps, in bytes. Contents that fit in one may use all of the budget.
  package static let step = 64 << 10

  private struct State {
    var used = 0
    var accounts: [String: Int] = [:]
  }

  /// In bytes.
  package let limit: Int
  private let state = Mutex(State())

  package init(limit: Int) {
    self.limit = limit
  }

  /// Bytes in use.
  package var used: Int { state.withLock { $0.used } }

  /// Bytes that one account may hold.
  private var accountMax: Int { limit / 4 }
  /// Bytes that contents above ``step`` may hold together.
  private var largeMax: Int { limit - limit / 8 }

  /// Takes all of `count` bytes, or none.
  /// - Parameters:
  ///   - total: The bytes that the content holds with them.
  ///   - account: The sender; `nil` if the server does not distinguish senders.
  func reserve(_ count: Int, total: Int, account: String?) -> Bool {
    state.withLock { state in
      let ceiling = total <= Self.step ? limit : largeMax
      guard count <= ceiling - state.used else { return false }
      if let account {
        let held = state.accounts[account, default: 0]
        guard count <= accountMax - held else { return false }
        state.accounts[account] = held + count
      }
      state.used += count
      return true
    }
  }

  func release(_ count: Int, account: String?) {
    state.withLock { state in
      state.used -= count
      guard let account, let held = state.accounts[account] else { return }
      state.accounts[account] = held > count ? held - count : nil
    }
  }
}

/// The share of the budget that one request has taken, until it is forgotten. One thread uses it at
/// a time.
final class MemoryShare: Sendable {
  private let budget: MemoryBudget
  private let account: String?
  private let taken = Atomic(0)

  init(of budget: MemoryBudget, account: String?) {
    self.budget = budget
    self.account = account
  }

  deinit { budget.release(count, account: account) }

  var count: Int { taken.load(ordering: .relaxed) }

  /// Takes memory up to `wanted` bytes; returns `false` if the budget is used up.
  func grow(to wanted: Int) -> Bool {
    let count = count
    guard wanted > count else { return true }
    guard budget.reserve(wanted - count, total: wanted, account: account) else { return false }
    taken.store(wanted, ordering: .relaxed)
    return true
  }

  /// Keeps no more than `wanted` bytes.
  func shrink(to wanted: Int) {
    let count = count
    guard wanted < count else { return }
    taken.store(wanted, ordering: .relaxed)
    budget.release(count - wanted, account: account)
  }
}
