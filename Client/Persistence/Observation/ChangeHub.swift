import Synchronization

/// Reports changed tables to the live queries of a file.
package final class ChangeHub: Sendable {
  /// A live query.
  struct Listener: Sendable {
    /// Receives the changed tables.
    let report: @Sendable (ChangedTables) -> Void
    /// True if the content of a table's changed rows can spare a run.
    let needsRows: @Sendable (_ table: String) -> Bool
    /// Ends the query, because the file was closed.
    let close: @Sendable () -> Void
  }

  private struct State {
    var next = 0
    var listeners: [Int: Listener] = [:]
    var follower: Task<Void, Never>?
    /// The version of the file at the last look.
    var seen: Int64?
  }

  private let state: Mutex<State>
  private let version: @Sendable () async throws -> Int64?
  private let pause: @Sendable () async throws -> Void

  /// - Parameters:
  ///   - seen: the version of the file before the first query.
  ///   - version: returns a number that changes when another process changes the file; `nil` when
  ///     the file is closed.
  ///   - pause: waits between two looks at it. It is called only while there are listeners.
  package init(
    seen: Int64? = nil, version: @escaping @Sendable () async throws -> Int64?,
    pause: @escaping @Sendable () async throws -> Void
  ) {
    state = Mutex(State(seen: seen))
    self.version = version
    self.pause = pause
  }

  deinit { state.withLock { $0.follower?.cancel() } }

  /// True if there are live queries.
  package var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

  /// Returns true if the content of a table's changed rows can spare a run of a live query.
  func needsRows(of table: String) -> Bool {
    state.withLock { Array($0.listeners.values) }.contains { $0.needsRows(table) }
  }

  /// Reports changed tables.
  package func report(_ changed: ChangedTables) {
    if case .some(let tables) = changed, tables.isEmpty { return }
    for listener in state.withLock({ Array($0.listeners.values) }) { listener.report(changed) }
  }

  /// Ends all live queries. Later ones end with the error of their read.
  package func close() {
    let listeners = state.withLock { state in
      state.follower?.cancel()
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.close() }
  }

  func add(_ listener: Listener) -> Int {
    state.withLock { state in
      state.next += 1
      state.listeners[state.next] = listener
      if state.follower == nil {
        state.follower = Task { [weak self] in await self?.watchFile() }
      }
      return state.next
    }
  }

  /// Reports changes by other processes, until the task is cancelled.
  private func watchFile() async {
    while !Task.isCancelled {
      do {
        guard let now = try await version() else { return }
        // The first look may come after a commit missing from the first results.
        let isNew = state.withLock { state in
          defer { state.seen = now }
          return state.seen != now
        }
        if isNew { report(.unknown) }
      } catch {
        // The next look may succeed.
      }
      guard (try? await pause()) != nil else { return }
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
