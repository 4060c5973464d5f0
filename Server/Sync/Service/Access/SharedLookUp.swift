import Synchronization

/// One look-up in the store for all simultaneous callers.
///
/// A look-up answers only callers that came before it began. So each caller sees all data committed
/// before the call, and one caller at a time asks the store.
///
/// ```swift
/// let hadTokens = SharedLookUp<Bool>()
/// let isGuarded = try await hadTokens.value { () throws(StoreError) in
///   try await store.hasEverHadTokens()
/// }
/// ```
final class SharedLookUp<Value: Sendable>: Sendable {
  private enum Turn {
    /// The caller looks up, for all callers in the queue by then.
    case leads
    case has(Result<Value, StoreError>)
  }

  private typealias Waiting = CheckedContinuation<Turn, Never>

  private struct State {
    var isRunning = false
    var waiting: [Waiting] = []
  }

  private let state = Mutex(State())

  /// Callers in the queue for the look-up after the current one.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Returns the result of `lookUp`, or of another caller's look-up. Throws the error of this
  /// look-up.
  func value(
    _ lookUp: () async throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let turn = await withCheckedContinuation { (caller: Waiting) in
      let leads = state.withLock { state in
        defer { state.isRunning = true }
        if state.isRunning { state.waiting.append(caller) }
        return !state.isRunning
      }
      if leads { caller.resume(returning: .leads) }
    }
    switch turn {
    case .leads: return try await lead(lookUp)
    case .has(let answer): return try answer.get()
    }
  }

  private func lead(
    _ lookUp: () async throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let others = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    let answer: Result<Value, StoreError>
    do {
      answer = .success(try await lookUp())
    } catch {
      answer = .failure(error)
    }
    // The store may have refused a cancelled caller alone: then the others ask again.
    let isShared = (try? answer.get()) != nil || !Task.isCancelled
    let next = state.withLock { state -> Waiting? in
      if !isShared { state.waiting.insert(contentsOf: others, at: 0) }
      state.isRunning = !state.waiting.isEmpty
      return state.isRunning ? state.waiting.removeFirst() : nil
    }
    next?.resume(returning: .leads)
    if isShared { for other in others { other.resume(returning: .has(answer)) } }
    return try answer.get()
  }
}
