import FerryProtocol
import Synchronization

/// Tells every listener of head moves, each head of a space once and in order.
package final class HeadMoves: Sendable {
  private struct State {
    var newest: [Int64: SequenceNumber] = [:]
    var next = 0
    var listeners: [Int: AsyncStream<HeadMove>.Continuation] = [:]
    var isFinished = false
  }

  private let state = Mutex(State())

  package init() {}

  /// Moves from now on, until ``finish()``. None is left out: the last one of a space that is
  /// quiet afterwards would be missed for good.
  package func stream() -> AsyncStream<HeadMove> {
    AsyncStream { continuation in
      let id = state.withLock { state -> Int? in
        guard !state.isFinished else { return nil }
        state.next += 1
        state.listeners[state.next] = continuation
        return state.next
      }
      guard let id else { return continuation.finish() }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { $0.listeners[id] = nil }
      }
    }
  }

  /// Passes a move on, unless it or a later one was told before.
  package func tell(_ move: HeadMove) {
    state.withLock { state in
      guard move.head > state.newest[move.space] ?? 0 else { return }
      state.newest[move.space] = move.head
      for listener in state.listeners.values { listener.yield(move) }
    }
  }

  /// Tells the heads as they are, also those that were told before.
  func tellAgain(_ heads: [HeadMove]) {
    state.withLock { state in
      for move in heads {
        let head = max(move.head, state.newest[move.space] ?? 0)
        state.newest[move.space] = head
        for listener in state.listeners.values {
          listener.yield(HeadMove(space: move.space, head: head))
        }
      }
    }
  }

  /// Ends all streams.
  package func finish() {
    let listeners = state.withLock { state in
      defer { state.listeners = [:] }
      state.isFinished = true
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish() }
  }
}
