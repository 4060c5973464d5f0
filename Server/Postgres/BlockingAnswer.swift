import Dispatch
import Synchronization

/// The result of work on another thread, for a thread that blocks until then.
final class BlockingAnswer<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let isThere = DispatchSemaphore(value: 0)

  func resume(with result: Result<Value, any Error>) {
    self.result.withLock { $0 = result }
    isThere.signal()
  }

  /// Returns `nil` if the result does not come in time.
  func wait(until deadline: DispatchTime) -> Result<Value, any Error>? {
    guard isThere.wait(timeout: deadline) == .success else { return nil }
    return result.withLock(\.self)
  }
}
