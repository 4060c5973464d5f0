import Foundation

/// What a client takes from the machine that it runs on; a simulation gives it its own.
public struct NetworkSurroundings: Sendable {
  /// The wall clock, seconds since 1970: what dates in `Retry-After` are compared with.
  public var now: @Sendable () -> Int64
  /// Where the jitter of pauses comes from.
  public var random: @Sendable () -> UInt64
  /// Waits; throws `CancellationError` when the task is cancelled.
  public var sleep: @Sendable (Duration) async throws -> Void

  /// Surroundings of one's own.
  public init(
    now: @escaping @Sendable () -> Int64, random: @escaping @Sendable () -> UInt64,
    sleep: @escaping @Sendable (Duration) async throws -> Void
  ) {
    self.now = now
    self.random = random
    self.sleep = sleep
  }

  /// This machine.
  public static var system: NetworkSurroundings {
    NetworkSurroundings(
      now: { Int64(time(nil)) }, random: { .random(in: .min ... .max) },
      sleep: { try await Task.sleep(for: $0) })
  }
}
