/// A listener for NOTIFY on a separate connection and thread. It connects again after a break.
package final class PostgresListener: Sendable {
  /// The listener's events, in order, on the listener's thread.
  package enum Event: Sendable, Equatable {
    /// These channels are listened to from now on, besides earlier ones of the same connection. The
    /// first event of a connection names all channels. Notifications from before, at the start or
    /// during a gap, are lost: read the state now.
    case listening([String])
    case notification(channel: String, payload: String)
    /// The connection broke or could not be made; another attempt follows.
    case disconnected(PostgresError)
  }

  /// The reason for a run of the listener's work.
  package enum Occasion: Sendable, Equatable {
    /// A new connection listens to all channels.
    case connected
    /// Notifications have arrived.
    case notified
    /// The pause is over, or ``PostgresChannels/wake()`` was called.
    case due
  }

  /// Work on the listener's connection between the notifications. Returns the pause until the next
  /// run. An error breaks the connection.
  package typealias Work = @Sendable (PostgresConnection, Occasion) throws -> Duration

  private let channels: PostgresChannels
  private let threads = ThreadGroup()

  /// Starts listening. Throws `invalidURL`; connection failures come as events.
  ///
  /// - Parameters:
  ///   - channels: Of this listener alone.
  ///   - preparation: SQL to run first on each connection.
  ///   - retryDelay: the pause after a first failure, doubled with each further one.
  ///   - retryDelayMax: the longest pause.
  ///   - connectLimit: the longest time to connect to each server of the URL.
  ///   - work: runs on the listener's thread; `nil` if only notifications matter.
  ///   - onEvent: called on the listener's thread; it must not block for long.
  package init(
    url: String, channels: PostgresChannels, preparation: String? = nil,
    retryDelay: Duration = .milliseconds(100), retryDelayMax: Duration = .seconds(5),
    connectLimit: Duration = .seconds(10), work: Work? = nil,
    onEvent: @escaping @Sendable (Event) -> Void
  ) throws(PostgresError) {
    let target = try ConnectionTarget(url)
    self.channels = channels
    threads.start(name: "postgres-listen") {
      let loop = ListenerLoop(
        target: target, channels: channels, preparation: preparation, connectLimit: connectLimit,
        work: work, onEvent: onEvent)
      loop.run(retryDelay: retryDelay, retryDelayMax: retryDelayMax)
    }
  }

  deinit { channels.close() }

  /// Disconnects. No event comes after it has returned.
  package func close() async {
    channels.close()
    await threads.wait()
  }
}
