import FerryProtocol
import Synchronization

/// Tells every listener of head moves, each head of a space once and in order.
package final class HeadMoves: Sendable {
  private struct State {
    var newest: [Int64: SequenceNumber] = [:]
    var next = 0
    var listeners: [Int: AsyncStream<HeadMove>.Continuation] = [:]
    var isFinished = false

    mutating func tell(_ moves: [HeadMove]) {
      for move in moves {
        newest[move.space] = move.head
        for listener in listeners.values { listener.yield(move) }
      }
    }
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
      state.tell([move])
    }
  }

  /// Tells the heads as the store has them, also those that were told before, and those that went
  /// back: a failover may have lost commits. A head that was read a moment before another one was
  /// told does no harm: who hears a lower head looks it up.
  package func tellAgain(_ heads: [HeadMove]) {
    state.withLock { $0.tell(heads) }
  }

  /// Takes the heads as the store has them, and tells those that are others than were told last.
  package func correct(_ heads: [HeadMove]) {
    state.withLock { state in
      state.tell(heads.filter { $0.head != state.newest[$0.space] ?? 0 })
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
