import Synchronization

/// The channels of one ``PostgresListener``. They may change at any time, also before it starts and
/// while it has no connection.
package final class PostgresChannels: Sendable {
  private struct State {
    var plan: ChannelPlan
    var isClosed = false
  }

  private let state: Mutex<State>
  let wakePipe: WakePipe

  /// - Parameter channels: Names as in `pg_notify`, at most 63 bytes each.
  package init(_ channels: Set<String> = []) throws(PostgresError) {
    state = Mutex(State(plan: ChannelPlan(channels)))
    wakePipe = try WakePipe()
  }

  /// The number of channels in force on the present connection.
  package var countInForce: Int { state.withLock { $0.plan.inForce.count } }

  /// Begins to listen. ``PostgresListener/Event/listening(_:)`` names the channel when
  /// notifications arrive; the caller reads the state then. It has no effect if the channel is
  /// listened to.
  package func listen(to channel: String) {
    if state.withLock({ $0.plan.listen(to: channel) }) { wakePipe.wake() }
  }

  /// Ends listening; notifications under way still arrive.
  package func unlisten(from channel: String) {
    if state.withLock({ $0.plan.unlisten(from: channel) }) { wakePipe.wake() }
  }

  /// Makes the listener do its work now.
  package func wake() { wakePipe.wake() }

  // MARK: The listener's side

  func close() {
    state.withLock { $0.isClosed = true }
    wakePipe.wake()
  }

  /// Resets the wake-up. Returns `false` if the listener was closed.
  func isOpenAfterWake() -> Bool {
    wakePipe.drain()
    return state.withLock { !$0.isClosed }
  }

  func disconnected() { state.withLock { $0.plan.disconnected() } }

  var changes: ChannelPlan.Changes { state.withLock { $0.plan.changes } }

  func made(_ changes: ChannelPlan.Changes) { state.withLock { $0.plan.made(changes) } }
}
