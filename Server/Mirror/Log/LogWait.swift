import Dispatch
import Synchronization

/// A wait for the reader of the log, on another thread.
final class LogWait: Sendable {
  private struct State {
    var hasEnded = false
    /// The task that waits.
    var listener: AsyncStream<Never>.Continuation?
  }

  private let state = Mutex(State())
  private let semaphore = DispatchSemaphore(value: 0)

  func end() {
    let listener = state.withLock { state in
      state.hasEnded = true
      return state.listener
    }
    listener?.finish()
    semaphore.signal()
  }

  /// Returns `true` if the wait ends in time. It blocks.
  func ends(within limit: Duration) -> Bool {
    semaphore.wait(timeout: .now() + .nanoseconds(Int(limit / .nanoseconds(1)))) == .success
  }

  /// Returns `true` if the wait ends in time, and before a cancellation of the task. It blocks no
  /// thread.
  func hasEnded(within limit: Duration) async -> Bool {
    let (stream, listener) = AsyncStream<Never>.makeStream()
    let hasEnded = state.withLock { state in
      state.listener = listener
      return state.hasEnded
    }
    if hasEnded { return true }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await _ in stream {} }
      group.addTask { try? await Task.sleep(for: limit) }
      await group.next()
      group.cancelAll()
    }
    return state.withLock { $0.hasEnded }
  }
}
