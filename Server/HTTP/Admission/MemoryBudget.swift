import Synchronization

/// Bytes of memory that the contents of all requests may take together, as they come and decoded.
package final class MemoryBudget: Sendable {
  /// In bytes.
  package let limit: Int
  private let taken = Atomic(0)

  package init(limit: Int) {
    self.limit = limit
  }

  /// Bytes in use.
  package var used: Int { taken.load(ordering: .relaxed) }

  /// Takes all of `count` bytes, or none.
  func reserve(_ count: Int) -> Bool {
    var before = used
    while count <= limit - before {
      let (exchanged, now) = taken.compareExchange(
        expected: before, desired: before + count, ordering: .relaxed)
      if exchanged { return true }
      before = now
    }
    return false
  }

  func release(_ count: Int) {
    taken.wrappingSubtract(count, ordering: .relaxed)
  }
}

/// What one request has taken of the budget, until it is forgotten. One thread uses it at a time.
final class MemoryShare: Sendable {
  private let budget: MemoryBudget
  private let taken = Atomic(0)

  init(of budget: MemoryBudget) {
    self.budget = budget
  }

  deinit { budget.release(count) }

  var count: Int { taken.load(ordering: .relaxed) }

  /// Has at least `wanted` bytes; false when the budget is used up.
  func grow(to wanted: Int) -> Bool {
    let count = count
    guard wanted > count else { return true }
    guard budget.reserve(wanted - count) else { return false }
    taken.store(wanted, ordering: .relaxed)
    return true
  }

  /// Keeps no more than `wanted` bytes.
  func shrink(to wanted: Int) {
    let count = count
    guard wanted < count else { return }
    taken.store(wanted, ordering: .relaxed)
    budget.release(count - wanted)
  }
}
