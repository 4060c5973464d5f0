import Synchronization

/// The pauses of a watcher's two halves, by the rules of ``SharedBackOff``.
final class WatchPauses: Sendable {
  private struct State {
    var rule = SharedBackOff()
    /// Ends the pause of a waiting half.
    var ends: [SharedBackOff.Half: AsyncStream<Void>.Continuation] = [:]
  }

  private let state = Mutex(State())
  private let surroundings: ReplicaSurroundings

  init(_ surroundings: ReplicaSurroundings) { self.surroundings = surroundings }

  /// Records a successful sync.
  func succeed() { state.withLock { $0.rule.succeed() } }

  /// Records a working live connection: a waiting sync retries at once.
  func open() {
    let end = state.withLock { state in
      state.rule.open().flatMap { state.ends.removeValue(forKey: $0) }
    }
    end?.finish()
  }

  /// Records that the live connection has lived long enough to be trusted.
  func live() { state.withLock { $0.rule.live() } }

  /// Records a failure of a half, and returns when it should retry.
  ///
  /// - Throws: `CancellationError`.
  func rest(_ half: SharedBackOff.Half) async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    let failures = state.withLock { state in
      state.ends[half] = end
      return state.rule.fail(half)
    }
    defer {
      state.withLock { state in
        state.ends[half] = nil
        state.rule.resume(half)
      }
    }
    guard
      let delay = surroundings.watch.retry.delay(
        afterFailures: failures, random: surroundings.random())
    else { return }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [surroundings] in try await surroundings.sleep(delay) }
      group.addTask { for await _ in ended {} }
      defer { group.cancelAll() }
      try await group.next()
    }
    try Task.checkCancellation()
  }
}
