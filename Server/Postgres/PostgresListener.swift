/// A listener for NOTIFY on its own connection and thread, which connects again when it breaks.
package final class PostgresListener: Sendable {
  /// The listener's events, in order, on its thread.
  package enum Event: Sendable, Equatable {
    /// All channels are listened to from now on. Notifications from before, at the start or during
    /// a gap, are lost: read the state now.
    case listening
    case notification(channel: String, payload: String)
    /// The connection broke or could not be made; another attempt follows.
    case disconnected(PostgresError)
  }

  private let wakePipe: WakePipe
  private let threads = ThreadGroup()

  /// Starts listening. Throws `invalidURL`; connection failures come as events.
  ///
  /// - Parameters:
  ///   - channels: names as in `pg_notify`, at most 63 bytes each.
  ///   - retryDelay: the pause after a first failure, doubled with each further one.
  ///   - retryDelayMax: the longest pause.
  ///   - onEvent: called on the listener's thread; it must not block for long.
  package init(
    url: String, channels: [String], retryDelay: Duration = .milliseconds(100),
    retryDelayMax: Duration = .seconds(5), onEvent: @escaping @Sendable (Event) -> Void
  ) throws(PostgresError) {
    let target = try ConnectionTarget(url)
    let wakePipe = try WakePipe()
    self.wakePipe = wakePipe
    threads.start(name: "postgres-listen") {
      let loop = ListenerLoop(
        target: target, channels: channels, wakePipe: wakePipe, onEvent: onEvent)
      loop.run(retryDelay: retryDelay, retryDelayMax: retryDelayMax)
    }
  }

  deinit { wakePipe.wake() }

  /// Disconnects. No event comes after it has returned.
  package func close() async {
    wakePipe.wake()
    await threads.wait()
  }
}
