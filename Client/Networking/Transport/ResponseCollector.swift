import Synchronization

/// Collects a whole response in memory, within a limit.
package final class ResponseCollector: TransferSink {
  package typealias Outcome = Result<TransportResponse, TransportError>

  private struct State {
    var head: ResponseHead?
    var body: [UInt8] = []
    var outcome: Outcome?
    var waiter: CheckedContinuation<Outcome, Never>?
  }

  private let limit: Int
  private let state = Mutex(State())

  /// Creates a collector; it rejects a body of more than `limit` bytes.
  package init(limit: Int) { self.limit = limit }

  /// Waits for the end of the transfer begun by `start`.
  package func outcome(_ start: () -> Void) async -> Outcome {
    await withCheckedContinuation { waiter in
      let outcome = state.withLock { state in
        if state.outcome == nil { state.waiter = waiter }
        return state.outcome
      }
      if let outcome { waiter.resume(returning: outcome) } else { start() }
    }
  }

  package func receive(_ head: ResponseHead) {
    let announced = head.headers["Content-Length"].flatMap { Int($0) } ?? 0
    state.withLock { state in
      state.head = head
      // A false length costs only address space, within this bound.
      state.body.reserveCapacity(min(max(0, announced), limit, 16 << 20))
    }
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> Reception {
    state.withLock { state in
      guard bytes.count <= limit - state.body.count else {
        state.body = []
        return .refused(
          TransportError(.responseTooLarge, "the response is larger than \(limit) bytes"))
      }
      state.body.append(contentsOf: bytes)
      return .taken
    }
  }

  package func finish(_ failure: TransportError?) {
    state.withLock { state -> (@Sendable () -> Void)? in
      guard state.outcome == nil else { return nil }
      let outcome = Self.outcome(&state, failure)
      state.outcome = outcome
      guard let waiter = state.waiter else { return nil }
      state.waiter = nil
      return { waiter.resume(returning: outcome) }
    }?()
  }

  private static func outcome(_ state: inout State, _ failure: TransportError?) -> Outcome {
    defer { state.body = [] }
    if let failure { return .failure(failure) }
    guard let head = state.head else {
      return .failure(TransportError(.interrupted, "the exchange ended without a response"))
    }
    return .success(
      TransportResponse(status: head.status, headers: head.headers, body: state.body))
  }
}
