import Foundation

/// The services of the machine for a client; a simulation replaces them.
public struct NetworkSurroundings: Sendable {
  /// The wall clock, seconds since 1970, for comparison with dates in `Retry-After`.
  public var now: @Sendable () -> Int64
  /// The source of the jitter of pauses.
  public var random: @Sendable () -> UInt64
  /// Waits; throws `CancellationError` when the task is cancelled.
  public var sleep: @Sendable (Duration) async throws -> Void
  /// The clock for the duration of requests, for the log.
  public var instant: @Sendable () -> ContinuousClock.Instant

  /// Creates custom surroundings.
  public init(
    now: @escaping @Sendable () -> Int64, random: @escaping @Sendable () -> UInt64,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.now = now
    self.random = random
    self.sleep = sleep
    self.instant = instant
  }

  /// The real machine.
  public static var system: NetworkSurroundings {
    NetworkSurroundings(
      now: { Int64(time(nil)) }, random: { .random(in: .min ... .max) },
      sleep: { try await Task.sleep(for: $0) })
  }
}
