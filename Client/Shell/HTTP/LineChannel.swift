import Synchronization

/// Lines on their way to a page, one JSON object each. A newer result of a live query replaces an
/// unsent one, so a slow page costs little memory.
final class LineChannel: Sendable {
  private struct State {
    /// Lines in order; lines of a live query have its number.
    var lines: [(watch: Int64?, bytes: [UInt8])] = []
    var isOver = false
    var wake: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// Adds a line. A line of a live query replaces an earlier one.
  ///
  /// - Parameter isLast: true if the line ends the live query: the query's result stays before it.
  func send(_ bytes: [UInt8], ofWatch watch: Int64? = nil, isLast: Bool = false) {
    let wake = state.withLock { state -> (@Sendable () -> Void)? in
      if state.isOver { return nil }
      if let watch, !isLast { state.lines.removeAll { $0.watch == watch } }
      state.lines.append((isLast ? nil : watch, bytes))
      return state.wake
    }
    wake?()
  }

  /// Drops the lines of a live query after the page has left it.
  func drop(watch: Int64) { state.withLock { $0.lines.removeAll { $0.watch == watch } } }

  /// Ends the channel after the lines in it.
  func finish() {
    let wake = state.withLock { state in
      state.isOver = true
      return state.wake
    }
    wake?()
  }

  /// True if ``finish()`` was called.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// Sets the function to call after each change.
  func onChange(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

  /// Removes all lines. Returns them, and whether no further ones follow.
  func drain() -> (lines: [[UInt8]], isOver: Bool) {
    state.withLock { state in
      defer { state.lines = [] }
      return (state.lines.map(\.bytes), state.isOver)
    }
  }
}
