import Synchronization

/// Admits work on a file until the owner suspends or closes the file (``WorkAdmission``).
///
/// Statements under way read ``isSuspended``, and end by themselves. Longer work, such as a sync,
/// runs in ``whileOpen(_:)``.
package final class WorkGate: Sendable {
  private struct State {
    var admission = WorkAdmission()
    var next = 0
    /// The stop signals of the work under way.
    var working: [Int: AsyncStream<Void>.Continuation] = [:]
    /// Stopped work without an end so far.
    var ending: [Int: StoppedWork] = [:]
    /// Callers waiting for the end of all stopped work.
    var waitingForEnd: [CheckedContinuation<Void, Never>] = []
    /// Callers waiting until work may begin.
    var waitingForStart: [Int: AsyncStream<Void>.Continuation] = [:]
  }

  private let state = Mutex(State())
  /// The same as in the state, without the lock.
  private let suspended = Atomic(false)

  package init() {}

  /// True if transactions must end. Any thread may ask at any time.
  package var isSuspended: Bool { suspended.load(ordering: .relaxed) }

  package var isClosed: Bool { state.withLock { $0.admission.refusal == .closed } }

  /// Throws ``StoppedWork`` if no work may begin.
  package func check() throws(StoppedWork) {
    if let refusal = state.withLock({ $0.admission.refusal }) { throw refusal }
  }

  // MARK: Stopping

  /// Admits no more work, and ends all work under way; ``ended()`` waits for the end.
  package func suspend() {
    state.withLock { state in
      guard state.admission.suspend() else { return }
      suspended.store(true, ordering: .relaxed)
      Self.stop(&state, .suspended)
    }
  }

  /// Admits work again.
  package func resume() {
    state.withLock { state in
      guard state.admission.resume() else { return }
      suspended.store(false, ordering: .relaxed)
      for waiter in state.waitingForStart.values { waiter.finish() }
    }
  }

  /// Closes the gate: no more work begins. Ends longer work under way; queued transactions still
  /// run.
  package func close() {
    state.withLock { state in
      if state.admission.close() { Self.stop(&state, .closed) }
      for waiter in state.waitingForStart.values { waiter.finish() }
    }
  }

  /// Returns when all stopped work has ended.
  package func ended() async {
    await withCheckedContinuation { waiter in
      let hasEnded = state.withLock { state in
        if !state.ending.isEmpty { state.waitingForEnd.append(waiter) }
        return state.ending.isEmpty
      }
      if hasEnded { waiter.resume() }
    }
  }

  private static func stop(_ state: inout State, _ reason: StoppedWork) {
    for (number, signal) in state.working {
      state.ending[number] = reason
      signal.finish()
    }
    state.working = [:]
  }

  // MARK: Working

  /// Returns when work may begin.
  ///
  /// - Throws: ``StoppedWork/closed``; `CancellationError`.
  package func opened() async throws {
    while true {
      let (signals, waiter) = AsyncStream<Void>.makeStream()
      let number: Int? = try state.withLock { state in
        if state.admission.refusal == .closed { throw StoppedWork.closed }
        if state.admission.refusal == nil { return nil }
        state.next += 1
        state.waitingForStart[state.next] = waiter
        return state.next
      }
      guard let number else { return }
      for await _ in signals {}
      state.withLock { _ = $0.waitingForStart.removeValue(forKey: number) }
      try Task.checkCancellation()
    }
  }

  /// Runs work; it is cancelled when the file is suspended or closed.
  ///
  /// - Throws: ``StoppedWork`` if it was cancelled or if no work may begin; the error of `body`.
  package func whileOpen<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    let (stop, signal) = AsyncStream<Void>.makeStream()
    let number = try begin(signal)
    do {
      let result = try await Self.run(body, until: stop)
      _ = end(number)
      return result
    } catch {
      throw end(number) ?? error
    }
  }

  /// Runs work, and cancels it when the signals end.
  private static func run<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T, until stop: AsyncStream<Void>
  ) async throws -> T {
    try await withThrowingTaskGroup(of: T?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        for await _ in stop {}
        return nil
      }
      defer { group.cancelAll() }
      while let result = try await group.next() {
        if let result { return result }
        group.cancelAll()
      }
      throw CancellationError()
    }
  }

  private func begin(_ signal: AsyncStream<Void>.Continuation) throws -> Int {
    try state.withLock { state in
      if let refusal = state.admission.refusal { throw refusal }
      state.next += 1
      state.working[state.next] = signal
      return state.next
    }
  }

  /// Records the end of work. Returns the reason if it was stopped.
  private func end(_ number: Int) -> StoppedWork? {
    state.withLock { state in
      state.working[number] = nil
      let reason = state.ending.removeValue(forKey: number)
      if state.ending.isEmpty {
        for waiter in state.waitingForEnd { waiter.resume() }
        state.waitingForEnd = []
      }
      return reason
    }
  }
}
