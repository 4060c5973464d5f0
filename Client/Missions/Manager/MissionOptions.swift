import FerryProtocol
import Foundation
import Networking

/// How a manager goes about it.
public struct MissionOptions: Sendable {
  /// Missions that are fetched at once (seed row S4.3: one after another).
  public var missionsAtOnce = 1
  /// Items of a mission that are fetched at once.
  public var itemsAtOnce = 4
  /// Versions of a mission that are kept, the one in use included.
  public var versionsKept = 2
  /// Bytes of the disk that stay free.
  public var spaceMargin: Int64 = 64 << 20
  /// The public key whose signatures count, 32 bytes; without it the first signer's is trusted.
  public var signer: [UInt8]?
  /// How long a server may say nothing before it is asked again.
  public var silence: Duration = .seconds(30)
  /// Pauses between attempts as long as there is no connection; its attempts are never used up.
  public var pauses = RetryPolicy(delayBase: .seconds(1), delayMax: .seconds(30), attemptsMax: nil)

  public init() {}
}

/// What a manager takes from the machine that it runs on; tests give it their own.
package struct MissionSurroundings: Sendable {
  /// The wall clock, milliseconds since 1970. May jump.
  package var wallClock: @Sendable () -> Int64
  /// A clock that only goes forward, from any start.
  package var steadyClock: @Sendable () -> Duration
  /// Where the jitter of pauses comes from.
  package var random: @Sendable () -> UInt64
  /// Waits; throws `CancellationError` when the task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// Where the manager's own tasks run; `nil` for the pool.
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

  /// This machine.
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
