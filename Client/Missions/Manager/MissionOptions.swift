import FerryNetworking
import FerryProtocol
import Foundation

/// The options of a manager.
public struct MissionOptions: Sendable {
  /// The most missions fetched at once.
  public var missionsAtOnce = 1
  /// The most items of a mission fetched at once.
  public var itemsAtOnce = 4
  /// The number of versions kept of a mission, the one in use included.
  public var versionsKept = 2
  /// Bytes of the disk that stay free.
  public var spaceMargin: Int64 = 64 << 20
  /// The trusted public key, 32 bytes; without it the first signer's is trusted.
  public var signer: [UInt8]?
  /// The longest silence of a server before the request is repeated.
  public var silence: Duration = .seconds(30)
  /// True if content of published missions may come from private, loopback and link-local addresses
  /// other than the server's own. A publisher could otherwise make this device request services in
  /// the device's network.
  public var allowsPrivateAddresses = false
  /// Pauses between attempts while there is no connection; the attempts never run out.
  public var pauses = RetryPolicy(delayBase: .seconds(1), delayMax: .seconds(30), attemptsMax: nil)

  public init() {}
}

/// The services of the machine for a manager; tests replace them.
package struct MissionSurroundings: Sendable {
  /// The wall clock, milliseconds since 1970. May jump.
  package var wallClock: @Sendable () -> Int64
  /// A clock that only goes forward, from any start.
  package var steadyClock: @Sendable () -> Duration
  /// The source of the jitter of pauses.
  package var random: @Sendable () -> UInt64
  /// Waits; throws `CancellationError` when the task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// The executor of the manager's own tasks; `nil` for the pool.
  package var executor: (any TaskExecutor)?

  package init(
    wallClock: @escaping @Sendable () -> Int64, steadyClock: @escaping @Sendable () -> Duration,
    random: @escaping @Sendable () -> UInt64,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    executor: (any TaskExecutor)? = nil
  ) {
    self.wallClock = wallClock
    self.steadyClock = steadyClock
    self.random = random
    self.sleep = sleep
    self.executor = executor
  }

  /// The real machine.
  package static var system: MissionSurroundings {
    let start = ContinuousClock.now
    return MissionSurroundings(
      wallClock: {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
      },
      steadyClock: { ContinuousClock.now - start },
      random: { UInt64.random(in: .min ... .max) },
      sleep: { try await Task.sleep(for: $0) })
  }
}
