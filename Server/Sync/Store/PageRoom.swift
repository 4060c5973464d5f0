import FerryHTTPServer
import FerryProtocol
import Synchronization

/// The memory for one answer, in bytes, reserved when a store begins to read the answer's data.
///
/// Requests in the queue for a connection hold none. Without memory, the store throws
/// ``StoreError/needsMemory``. The caller waits outside of the store, and asks again.
package final class PageRoom: Sendable {
  /// Above this share of the budget, answers of one account would be built one after the other.
  private static let shareOfBudget = 16

  /// The memory of this task's answer; `nil` if it is not counted.
  @TaskLocal static var current: PageRoom?

  private let budget: MemoryBudget
  private let account: String?
  private let bytes: Int
  private let grant = Mutex<MemoryGrant?>(nil)

  /// - Parameters:
  ///   - bytes: The memory for the answer and for the data behind it.
  ///   - account: The account to charge.
  package init(_ budget: MemoryBudget, bytes: Int, account: String?) {
    self.budget = budget
    self.account = account
    self.bytes = min(bytes, budget.counts.limit / Self.shareOfBudget)
  }

  /// Runs a body whose reads of a store take this memory.
  package func run<Value>(_ body: () async -> Value) async -> Value {
    await Self.$current.withValue(self, operation: body)
  }

  /// Returns a call that first reserves the memory of this task. It returns `nil` without memory: a
  /// connection without memory to use has not failed.
  static func taking<Source, Value>(
    _ body: @escaping @Sendable (Source) throws -> Value
  ) -> @Sendable (Source) throws -> Value? {
    let room = current
    return { source in room?.reserve() ?? true ? try body(source) : nil }
  }

  /// Reserves the memory at once. Returns `true` on success.
  package func reserve() -> Bool {
    grant.withLock { grant in
      if grant == nil { grant = budget.grantAtOnce(bytes, account: account) }
      return grant != nil
    }
  }

  /// Waits for the memory, a limited time. Returns whether it is there.
  package func wait() async -> Bool {
    if reserve() { return true }
    guard let granted = await budget.grant(bytes, account: account) else { return false }
    grant.withLock { $0 = granted }
    return true
  }

  /// Returns the reserved memory, which is free again when the returned object is released.
  package func passOn() -> MemoryGrant? {
    grant.withLock { grant in
      defer { grant = nil }
      return grant
    }
  }
}

extension Optional {
  /// Returns the value of a call of ``PageRoom/taking(_:)``.
  func orNeedsMemory() throws(StoreError) -> Wrapped {
    guard let self else { throw .needsMemory }
    return self
  }
}
