import FerryProtocol
import Synchronization

/// The publisher of head moves: each listener receives each head of a space once and in order. It
/// also records the spaces whose moves this node needs.
package final class HeadMoves: Sendable {
  private struct State {
    var watch = HeadWatch()
    var newest: [Int64: SequenceNumber] = [:]
    var next = 0
    var listeners: [Int: AsyncStream<HeadMove>.Continuation] = [:]
    var isFinished = false

    mutating func send(_ moves: [HeadMove]) {
      for move in moves {
        newest[move.space] = move.head
        for listener in listeners.values { listener.yield(move) }
      }
    }
  }

  private let state = Mutex(State())

  private let onChange: @Sendable (HeadWatch.Change) -> Void

  /// Creates a publisher for one process, without channels.
  package convenience init() { self.init { _ in } }

  /// - Parameter onChange: Applies changes of the needed channels, in order. It must not block.
  init(onChange: @escaping @Sendable (HeadWatch.Change) -> Void) { self.onChange = onChange }

  /// Returns the moves from now on, until ``finish()``. Drops none: a space may be quiet
  /// afterwards, and the last move would be missing.
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

  /// Passes a move on, unless it or a later one was passed on before.
  package func publish(_ move: HeadMove) {
    state.withLock { state in
      guard move.head > state.newest[move.space] ?? 0 else { return }
      state.send([move])
    }
  }

  /// Passes on the heads as the store has them, even if known before or lower: a failover may have
  /// lost commits. A head may be read just before a newer one is passed on. This does no harm: a
  /// listener looks up a lower head.
  package func republish(_ heads: [HeadMove]) {
    state.withLock { $0.send(heads) }
  }

  /// Applies the heads as the store has them, and passes on those different from the last ones.
  package func correct(_ heads: [HeadMove]) {
    state.withLock { state in
      state.send(heads.filter { $0.head != state.newest[$0.space] ?? 0 })
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

  // MARK: Needed spaces

  /// All needed spaces, by identifier.
  var neededSpaces: [Int64] { state.withLock { $0.watch.spaces } }

  /// Returns the needed spaces of these channels, by identifier.
  func neededSpaces(on channels: [String]) -> [Int64] {
    state.withLock { $0.watch.spaces(on: channels) }
  }

  func needs(_ space: Int64) -> Bool { state.withLock { $0.watch.needs(space) } }

  /// Adds a watcher of a space. The first head is passed on, even if it is lower than an earlier
  /// one: moves were missed while the space was not needed.
  package func watch(_ space: Int64) {
    change { state in
      if !state.watch.needs(space) { state.newest[space] = nil }
      return state.watch.watch(space)
    }
  }

  /// Removes a watcher.
  package func unwatch(_ space: Int64) {
    change { state in
      let change = state.watch.unwatch(space)
      if !state.watch.needs(space) { state.newest[space] = nil }
      return change
    }
  }

  /// Records a write of this node to a space.
  func markWritten(_ space: Int64) { change { $0.watch.markWritten(space) } }

  /// Applies a change within the lock, so the channels change in the same order.
  private func change(_ edit: (inout State) -> HeadWatch.Change?) {
    state.withLock { state in
      if let change = edit(&state) { onChange(change) }
    }
  }
}
