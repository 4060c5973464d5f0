import Synchronization

/// Makes a client's requests wait for their turns.
final class RequestGate: Sendable {
  private struct State {
    var turns: RequestTurns
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    /// Requests with a turn, or with a cancelled task, before they waited.
    var early: Set<Int> = []
  }

  private let state: Mutex<State>

  /// Returns `nil` if there is no limit.
  init?(_ configuration: NetworkConfiguration) {
    let (limit, hostLimit) = (configuration.requestsMax, configuration.requestsPerHostMax)
    guard limit != nil || hostLimit != nil else { return nil }
    state = Mutex(State(turns: RequestTurns(limit: limit, hostLimit: hostLimit)))
  }

  /// Waits for a turn. The request ends it with the permit's ``RequestPermit/release()``.
  ///
  /// - Throws: kind `cancelled` if the task is cancelled.
  func enter(_ request: TransportRequest) async throws(NetworkError) -> RequestPermit {
    let host = (try? RequestAddress(request.url))?.host ?? ""
    let (number, mayRun) = state.withLock { $0.turns.enter(host) }
    let permit = RequestPermit { [self] in leave(number) }
    if mayRun { return permit }
    await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        let isEarly = state.withLock { state in
          if state.early.remove(number) != nil { return true }
          state.waiters[number] = continuation
          return false
        }
        if isEarly { continuation.resume() }
      }
    } onCancel: {
      wake(number)
    }
    if Task.isCancelled {
      permit.release()
      throw NetworkError(.cancelled, "the request was cancelled before its turn")
    }
    return permit
  }

  private func leave(_ number: Int) {
    let started = state.withLock { state in
      state.early.remove(number)
      return state.turns.leave(number)
    }
    for next in started { wake(next) }
  }

  /// Ends a request's wait; at once if it begins later.
  private func wake(_ number: Int) {
    let waiter = state.withLock { state in
      let waiter = state.waiters.removeValue(forKey: number)
      if waiter == nil { state.early.insert(number) }
      return waiter
    }
    waiter?.resume()
  }
}

/// A request's turn. It ends with ``release()``, or with the last reference.
final class RequestPermit: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>

  init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

  deinit { release() }

  /// Ends the turn, once.
  func release() {
    let body = body.withLock { body in
      defer { body = nil }
      return body
    }
    body?()
  }
}

extension TransportStream {
  /// Returns the same stream; it keeps a request's turn until the body ends or has no reader.
  func limited(by permit: RequestPermit?) -> TransportStream {
    guard let permit else { return self }
    let body = body.observed(part: { _ in }, end: { _ in permit.release() })
    return TransportStream(status: status, headers: headers, body: body)
  }
}
