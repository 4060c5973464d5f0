import Synchronization

/// A gate for one caller at a time, in the order in which they come.
///
/// ```swift
/// let turn = AsyncTurn()
/// let saved = await turn.perform { await save() }
/// ```
package final class AsyncTurn: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  package init() {}

  /// Runs `body` once all earlier callers have ended. A cancelled task waits as well.
  package func perform<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    await begin()
    defer { end() }
    return try await body()
  }

  private func begin() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        defer { state.isTaken = true }
        if state.isTaken { state.waiting.append(continuation) }
        return !state.isTaken
      }
      if isFree { continuation.resume() }
    }
  }

  private func end() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if state.waiting.isEmpty {
        state.isTaken = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
