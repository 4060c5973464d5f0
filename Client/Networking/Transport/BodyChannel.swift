import Synchronization

/// Passes a body from the transport's thread to one consumer, with a bounded buffer.
package final class BodyChannel: TransferSink {
  package typealias Head = Result<ResponseHead, TransportError>
  package typealias Part = Result<[UInt8]?, TransportError>

  private struct State {
    var head: Head?
    var headWaiter: CheckedContinuation<Head, Never>?
    var buffer: [UInt8] = []
    var partWaiter: CheckedContinuation<Part, Never>?
    var isFull = false
    var isEnded = false
    var failure: TransportError?
  }

  private let capacity: Int
  private let state = Mutex(State())

  /// Creates a channel; it pauses the transfer while it has `capacity` bytes or more. So many bytes
  /// are lost if the process is killed.
  package init(capacity: Int = 64 << 10) { self.capacity = capacity }

  /// Waits for the head of the transfer begun by `start`.
  package func head(_ start: () -> Void) async -> Head {
    await withCheckedContinuation { waiter in
      let head = state.withLock { state in
        if state.head == nil { state.headWaiter = waiter }
        return state.head
      }
      if let head { waiter.resume(returning: head) } else { start() }
    }
  }

  /// Waits for the next part of the body; calls `goOn` when a paused transfer has room again.
  package func next(_ goOn: () -> Void) async -> Part {
    await withCheckedContinuation { waiter in
      let (part, wasFull) = state.withLock { state in
        defer { state.isFull = false }
        let part = Self.next(&state)
        if part == nil {
          precondition(state.partWaiter == nil, "a body has one consumer")
          state.partWaiter = waiter
        }
        return (part, state.isFull)
      }
      if let part { waiter.resume(returning: part) }
      if wasFull { goOn() }
    }
  }

  package func receive(_ head: ResponseHead) {
    let waiter = state.withLock { state -> CheckedContinuation<Head, Never>? in
      guard state.head == nil else { return nil }
      state.head = .success(head)
      defer { state.headWaiter = nil }
      return state.headWaiter
    }
    waiter?.resume(returning: .success(head))
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> Reception {
    let (reception, waiter) = state.withLock { state in
      if state.isEnded {
        let failure = TransportError(.cancelled, "the response has no reader any more")
        return (Reception.refused(failure), CheckedContinuation<Part, Never>?.none)
      }
      if state.partWaiter == nil && state.buffer.count >= capacity {
        state.isFull = true
        return (.full, nil)
      }
      defer { state.partWaiter = nil }
      if state.partWaiter == nil { state.buffer.append(contentsOf: bytes) }
      return (.taken, state.partWaiter)
    }
    waiter?.resume(returning: .success(Array(bytes)))
    return reception
  }

  package func finish(_ failure: TransportError?) { end(failure, keepsBuffer: true) }

  /// Cancels the consumer: drops buffered bytes, and a waiting consumer gets kind `cancelled`.
  package func cancel(_ failure: TransportError) { end(failure, keepsBuffer: false) }

  private func end(_ failure: TransportError?, keepsBuffer: Bool) {
    let (headWaiter, head, partWaiter, part) = state.withLock { state in
      if !keepsBuffer { state.buffer = [] }
      if !state.isEnded {
        state.isEnded = true
        state.failure = failure
      }
      if state.head == nil {
        state.head = .failure(
          failure ?? TransportError(.interrupted, "the exchange ended without a response"))
      }
      defer { (state.headWaiter, state.partWaiter) = (nil, nil) }
      let part = state.partWaiter == nil ? nil : Self.next(&state)
      return (state.headWaiter, state.head, state.partWaiter, part)
    }
    if let head { headWaiter?.resume(returning: head) }
    if let part { partWaiter?.resume(returning: part) }
  }

  /// Returns the consumer's next part; `nil` if it must wait. A failure is returned once.
  private static func next(_ state: inout State) -> Part? {
    if !state.buffer.isEmpty {
      defer { state.buffer = [] }
      return .success(state.buffer)
    }
    guard state.isEnded else { return nil }
    defer { state.failure = nil }
    return state.failure.map { .failure($0) } ?? .success(nil)
  }
}
