import Synchronization

/// The activity of a replica, with a report of each change to the program's listeners.
final class ActivityHub: Sendable {
  private struct State {
    var isClosed = false
    var activity = SyncActivity()
    var next = 0
    var listeners: [Int: AsyncStream<SyncActivity>.Continuation] = [:]
  }

  private let state = Mutex(State())

  /// Changes the activity, and reports it if it is another one now.
  func update(_ change: (inout SyncActivity) -> Void) {
    state.withLock { state in
      let before = state.activity
      change(&state.activity)
      guard state.activity != before else { return }
      for listener in state.listeners.values { listener.yield(state.activity) }
    }
  }

  /// Ends all streams after their last activity, and later ones after the present one.
  func close() {
    let listeners = state.withLock { state in
      state.isClosed = true
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish() }
  }

  /// Returns the present activity and each later one. A slow consumer gets the newest.
  func stream() -> AsyncStream<SyncActivity> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = state.withLock { state in
        state.next += 1
        state.listeners[state.next] = continuation
        continuation.yield(state.activity)
        if state.isClosed { continuation.finish() }
        return state.next
      }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { _ = $0.listeners.removeValue(forKey: number) }
      }
    }
  }
}
