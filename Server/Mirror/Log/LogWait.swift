import Dispatch

/// A wait for the reader of the log, on another thread.
final class LogWait: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func end() { semaphore.signal() }

  /// Returns `true` if the wait ends in time. It blocks.
  func ends(within limit: Duration) -> Bool {
    semaphore.wait(timeout: .now() + .nanoseconds(Int(limit / .nanoseconds(1)))) == .success
  }
}
