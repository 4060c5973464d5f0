import FerryHTTPServer
import FerryProtocol
import Synchronization

/// The sender of head moves to the listeners of spaces. An idle listener costs no task and no
/// timer: one timer serves them all.
package final class HeadHub: Sendable {
  private typealias Board = HeadFanOut<HTTPStream>

  private struct State {
    var board = Board()
    var isClosed = false
  }

  private let state = Mutex(State())
  /// Held while bytes are handed out, so each listener gets events in order. `state` is never held
  /// then: a server's thread takes it to report a closed stream.
  private let sending = Mutex(())
  private let store: any SyncStore
  private let turn: Duration
  private let sleep: @Sendable (Duration) async throws -> Void
  private let executor: (any TaskExecutor)?

  /// - Parameters:
  ///   - store: Reports the moves. The hub watches the spaces with listeners.
  ///   - turn: The time between two events of one space, at least; more with many listeners.
  ///   - sleep: Waits; throws on a stop.
  ///   - executor: Runs the timer; `nil` for the shared pool.
  package init(
    _ store: any SyncStore, turn: Duration = .milliseconds(10),
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    executor: (any TaskExecutor)? = nil
  ) {
    self.store = store
    self.turn = turn
    self.sleep = sleep
    self.executor = executor
  }

  /// Listeners of all spaces.
  package var listenerCount: Int { state.withLock { $0.board.listenerCount } }

  /// Sends a listener a space's head: at once, unless the head is `heard`, and at each move. The
  /// head is looked up after the listener is added and the space is watched, so no move between is
  /// missed.
  package func add(
    _ listener: HTTPStream, to space: SpaceSummary, heard: SequenceNumber?,
    lookUp: () async throws(StoreError) -> SpaceSummary?
  ) async throws(StoreError) {
    let place = state.withLock { state -> (number: Int, isFirst: Bool)? in
      if state.isClosed { return nil }
      let isFirst = !state.board.hasListeners(to: space.id)
      return (state.board.add(listener, to: space), isFirst)
    }
    guard let number = place?.number else { return listener.finish() }
    if place?.isFirst == true { store.heads.watch(space.id) }
    listener.onClose { [weak self] in self?.remove(number, from: space.id) }
    let current: SpaceSummary
    do {
      current = try await lookUp() ?? space
    } catch {
      remove(number, from: space.id)
      throw error
    }
    act { $0.see(current) }
    sending.withLock { _ in
      let greeting = state.withLock { state in
        state.board.greet(number, of: space.id, heard: heard)
      }
      if let greeting { Self.deliver(greeting) }
    }
  }

  private func remove(_ number: Int, from space: Int64) {
    // Watchers are counted, so a new listener meanwhile continues the watch of the space.
    if state.withLock({ $0.board.remove(number, from: space) }) { store.heads.unwatch(space) }
  }

  /// Passes on moves of the store's heads until they end.
  package func forward(_ moves: AsyncStream<HeadMove>) async {
    for await move in moves {
      guard let suspect = act({ $0.move(move) }) else { continue }
      // After a failure of the store, the heads come again when it is back.
      if let space = try? await store.space(named: suspect) { act { $0.replace(space) } }
    }
  }

  /// Sends a comment to all listeners again and again, until the task is cancelled.
  /// - Parameter check: Runs after each, since it may wait for the store. It ends the streams of
  ///   listeners without permission.
  package func sendHeartbeats(
    every interval: Duration, check: @Sendable () async -> Void = {}
  ) async {
    while (try? await sleep(interval)) != nil {
      heartbeat()
      await check()
    }
  }

  /// Sends a comment to all listeners.
  package func heartbeat() {
    sending.withLock { _ in
      let listeners = state.withLock { $0.board.listeners }
      Self.deliver(Board.Delivery(bytes: Board.heartbeat, listeners: listeners))
    }
  }

  /// Ends all streams; the stream of a later listener ends at once.
  package func close() {
    let listeners = state.withLock { state in
      state.isClosed = true
      return state.board.listeners
    }
    for listener in listeners { listener.finish() }
  }

  @discardableResult
  private func act(_ step: (inout Board) -> Board.Step) -> SpaceName? {
    let done = sending.withLock { _ in
      let done = state.withLock { step(&$0.board) }
      if let delivery = done.delivery { Self.deliver(delivery) }
      return done
    }
    if done.startsTurns {
      Task(executorPreference: executor) { await self.endTurns() }
    }
    return done.suspect
  }

  /// Ends turns as long as a window is open.
  private func endTurns() async {
    var goesOn = true
    while goesOn {
      // Cancelled or not, the windows have to end.
      try? await sleep(turn)
      goesOn = sending.withLock { _ in
        let end = state.withLock { $0.board.endTurn() }
        for delivery in end.deliveries { Self.deliver(delivery) }
        return end.goesOn
      }
    }
  }

  private static func deliver(_ delivery: Board.Delivery) {
    for listener in delivery.listeners { listener.send(delivery.bytes) }
  }
}
