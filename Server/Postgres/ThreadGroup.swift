import Foundation
import Synchronization

/// Threads whose end can be awaited.
package final class ThreadGroup: Sendable {
  private struct State {
    var running = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  package init() {}

  /// Starts a thread to run `body` once. The name shows in debuggers (15 bytes on Linux).
  package func start(name: String, _ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.running += 1 }
    let thread = Thread { [self] in
      body()
      ended()
    }
    thread.name = name
    thread.stackSize = 1 << 20
    thread.start()
  }

  /// Returns when no thread is running any more.
  package func wait() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.running > 0 { state.waiters.append(continuation) }
        return state.running == 0
      }
      if isOver { continuation.resume() }
    }
  }

  private func ended() {
    let waiters = state.withLock { state in
      state.running -= 1
      guard state.running == 0 else { return [CheckedContinuation<Void, Never>]() }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
