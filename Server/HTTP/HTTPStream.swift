import Synchronization

/// A response body written over time, such as Server-Sent Events.
///
/// It costs no thread and no timer: while there is nothing to send, the connection is suspended.
/// The next `send` notices a closed peer, so send a heartbeat. A peer that closes only the sending
/// side counts as gone.
package final class HTTPStream: Sendable {
  /// The control of a stream's connection; weakly coupled, so a stream can exist before it.
  package protocol Outlet: Sendable {
    /// Suspends the connection; returns `false` if the server no longer allows it.
    func suspend() -> Bool
    /// Resumes a suspended connection.
    func resume()
    /// Cuts the connection off, in any state.
    func disconnect()
    /// Returns `true` if the peer has stopped sending.
    func isPeerGone() -> Bool
  }

  /// The next step of the connection.
  package enum Reading: Equatable {
    case bytes(Int)
    case suspended
    case end
    case failure
  }

  private struct State {
    var pending: [UInt8] = []
    var sent = 0
    var outlet: (any Outlet)?
    var isWaiting = false
    var isFinished = false
    var isClosed = false
    var isOver = false
    var observers: [@Sendable () -> Void] = []
    var roomWaiter: CheckedContinuation<Bool, Never>?
  }

  private let state = Mutex(State())
  private let capacity: Int
  private let isEndless: Bool

  /// - Parameters:
  ///   - capacity: Bytes that may wait for a slow reader.
  ///   - isEndless: Whether a stop of the server ends the stream; others may come to their end.
  package init(capacity: Int = 64 << 10, isEndless: Bool = true) {
    self.capacity = capacity
    self.isEndless = isEndless
  }

  /// Waits until half of the capacity is free. Returns `false` if the stream is closed. One writer
  /// calls it at a time.
  package func hasRoom() async -> Bool {
    await withCheckedContinuation { waiter in
      let answer = state.withLock { state -> Bool? in
        if state.isClosed || state.isFinished { return false }
        if state.pending.count - state.sent <= capacity / 2 { return true }
        precondition(state.roomWaiter == nil, "a stream has one writer")
        state.roomWaiter = waiter
        return nil
      }
      if let answer { waiter.resume(returning: answer) }
    }
  }

  /// Cuts the connection off: the rest of the content cannot be sent.
  package func abort() {
    state.withLock { state in
      state.isClosed = true
      state.pending = []
      state.sent = 0
      Self.answerWriter(&state)
      state.outlet?.disconnect()
    }
  }

  /// Ends the stream because the server stops, if it would never end by itself.
  func drain() {
    if isEndless { finish() }
  }

  /// Queues bytes; returns `false` if the stream is closed.
  ///
  /// A reader with more than `capacity` bytes outstanding is too slow: it is disconnected. (One
  /// message may be larger if nothing else waits.) May be called from any thread, also before the
  /// response was handed to the server.
  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    state.withLock { state in
      guard !state.isClosed && !state.isFinished else { return false }
      guard !bytes.isEmpty else { return true }
      let waiting = state.pending.count - state.sent
      guard waiting == 0 || waiting + bytes.count <= capacity else {
        state.isClosed = true
        state.pending = []
        state.sent = 0
        Self.answerWriter(&state)
        state.outlet?.disconnect()
        return false
      }
      if state.sent > waiting {
        // Bytes already sent to a steady reader must not pile up in front.
        state.pending.removeFirst(state.sent)
        state.sent = 0
      }
      state.pending.append(contentsOf: bytes)
      Self.wake(&state)
      return true
    }
  }

  /// Ends the stream after the queued bytes. Further calls change nothing.
  package func finish() {
    state.withLock { state in
      state.isFinished = true
      Self.answerWriter(&state)
      Self.wake(&state)
    }
  }

  /// True if nothing can be sent any more.
  package var isClosed: Bool {
    state.withLock { $0.isClosed || $0.isFinished }
  }

  /// Bytes in the queue for the reader.
  package var pendingBytes: Int {
    state.withLock { $0.pending.count - $0.sent }
  }

  /// Calls `observer` once when the stream is over: the peer is gone, the server stopped, or the
  /// last byte after `finish` was handed over. Calls it at once if this has happened already. It
  /// must not block: it may run on a thread of the server.
  package func onClose(_ observer: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      if !state.isOver { state.observers.append(observer) }
      return state.isOver
    }
    if isOver { observer() }
  }

  /// Binds the stream to a connection.
  package func attach(_ outlet: any Outlet) {
    state.withLock { state in
      // A stream carries one response.
      precondition(state.outlet == nil, "HTTPStream was answered twice")
      state.outlet = outlet
      if state.isClosed { outlet.disconnect() }
    }
  }

  /// Moves queued bytes into `buffer`, or suspends the connection until there are some.
  package func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
    state.withLock { state in
      guard !state.isClosed, let outlet = state.outlet else { return .failure }
      let available = state.pending.count - state.sent
      if available == 0 {
        if state.isFinished { return .end }
        state.isWaiting = outlet.suspend()
        return state.isWaiting ? .suspended : .failure
      }
      if outlet.isPeerGone() {
        state.isClosed = true
        Self.answerWriter(&state)
        return .failure
      }
      let count = min(available, buffer.count)
      buffer.copyBytes(from: state.pending[state.sent..<state.sent + count])
      state.sent += count
      if state.sent == state.pending.count {
        // An idle stream holds no memory.
        state.pending = []
        state.sent = 0
      }
      if state.pending.count - state.sent <= capacity / 2 { Self.answerWriter(&state) }
      return .bytes(count)
    }
  }

  /// Ends the stream: the response is over, or was never sent.
  package func connectionEnded() {
    let observers = state.withLock { state in
      defer { state.observers = [] }
      state.isOver = true
      state.isClosed = true
      state.pending = []
      state.sent = 0
      Self.answerWriter(&state)
      state.outlet = nil
      return state.observers
    }
    for observer in observers { observer() }
  }

  /// Resumes a writer that waits for room.
  private static func answerWriter(_ state: inout State) {
    state.roomWaiter?.resume(returning: !state.isClosed && !state.isFinished)
    state.roomWaiter = nil
  }

  private static func wake(_ state: inout State) {
    guard state.isWaiting else { return }
    state.isWaiting = false
    state.outlet?.resume()
  }
}
