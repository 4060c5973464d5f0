import Synchronization

/// Reports changed tables to the live queries of a file.
package final class ChangeHub: Sendable {
  typealias Listener = @Sendable (ChangedTables) -> Void

  private struct State {
    var next = 0
    var listeners: [Int: Listener] = [:]
    var follower: Task<Void, Never>?
  }

  private let state = Mutex(State())
  private let follow: @Sendable (ChangeHub) async -> Void

  /// - Parameter follow: reports changes by other processes, for as long as there are listeners.
  package init(follow: @escaping @Sendable (ChangeHub) async -> Void = { _ in }) {
    self.follow = follow
  }

  deinit { state.withLock { $0.follower?.cancel() } }

  /// Whether there are live queries.
  package var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

  /// Reports tables that have changed.
  package func report(_ changed: ChangedTables) {
    if case .some(let tables) = changed, tables.isEmpty { return }
    for listener in state.withLock({ Array($0.listeners.values) }) { listener(changed) }
  }

  func add(_ listener: @escaping Listener) -> Int {
    state.withLock { state in
      state.next += 1
      state.listeners[state.next] = listener
      if state.follower == nil {
        state.follower = Task { [weak self, follow] in
          if let self { await follow(self) }
        }
      }
      return state.next
    }
  }

  func remove(_ number: Int) {
    state.withLock { state in
      state.listeners[number] = nil
      guard state.listeners.isEmpty else { return }
      state.follower?.cancel()
      state.follower = nil
    }
  }
}
