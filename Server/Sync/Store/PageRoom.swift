import FerryHTTPServer
import FerryProtocol
import Synchronization

/// The memory for one page, in bytes, which a store takes when it begins to build the page.
///
/// Requests that wait for a connection hold none. If there is no memory, the store throws
/// ``StoreError/needsMemory``, the caller waits outside of the store, and asks again.
package final class PageRoom: Sendable {
  /// Above this share of the budget, pages of one account would be built one after the other.
  private static let shareOfBudget = 16

  private let budget: MemoryBudget
  private let account: String?
  private let bytes: Int
  private let grant = Mutex<MemoryGrant?>(nil)

  /// - Parameters:
  ///   - limits: A page has the bytes at which it is closed, and one record beyond them.
  ///   - account: The account that the memory counts for.
  package init(_ budget: MemoryBudget, _ limits: Limits, account: String?) {
    self.budget = budget
    self.account = account
    bytes = min(
      limits.pageBytes + limits.recordStateBytes, budget.counts.limit / Self.shareOfBudget)
  }

  /// Takes the memory at once. Returns whether it is there.
  package func take() -> Bool {
    grant.withLock { grant in
      if grant == nil { grant = budget.grantAtOnce(bytes, account: account) }
      return grant != nil
    }
  }

  /// Waits for the memory, a limited time. Returns whether it is there.
  package func wait() async -> Bool {
    guard let granted = await budget.grant(bytes, account: account) else { return false }
    grant.withLock { $0 = granted }
    return true
  }

  /// Returns the memory that was taken, which is free again when the returned object is released.
  package func passOn() -> MemoryGrant? {
    grant.withLock { grant in
      defer { grant = nil }
      return grant
    }
  }
}

extension PageRoom: Equatable {
  package static func == (left: PageRoom, right: PageRoom) -> Bool { left === right }
}
