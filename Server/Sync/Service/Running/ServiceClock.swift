import Foundation

/// The two clocks read by the server; a test provides others.
package struct ServiceClock: Sendable {
  /// Milliseconds since 1970. May jump.
  package var wall: @Sendable () -> Int64
  /// Time since some moment; never goes back.
  package var uptime: @Sendable () -> Duration

  package init(
    wall: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Duration
  ) {
    self.wall = wall
    self.uptime = uptime
  }

  /// This machine's clocks.
  package static let system = ServiceClock(
    wall: {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    },
    uptime: {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    })
}
