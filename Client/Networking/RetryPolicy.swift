/// The rule for retries: exponential back-off with full jitter, and the server's requested pause.
///
/// A pure rule: randomness and time are arguments.
public struct RetryPolicy: Sendable, Equatable {
  /// The ceiling of the first delay; it doubles with each further failure.
  public var delayBase: Duration
  /// The highest ceiling.
  public var delayMax: Duration
  /// The longest obeyed `Retry-After` of a server.
  public var retryAfterMax: Duration
  /// The number of attempts, the first included; `nil` for no limit.
  public var attemptsMax: Int?

  /// Creates a policy; the defaults give up after about half a minute.
  public init(
    delayBase: Duration = .milliseconds(500), delayMax: Duration = .seconds(60),
    retryAfterMax: Duration = .seconds(600), attemptsMax: Int? = 6
  ) {
    self.delayBase = delayBase
    self.delayMax = delayMax
    self.retryAfterMax = retryAfterMax
    self.attemptsMax = attemptsMax
  }

  /// Returns the pause before the next attempt.
  ///
  /// - Parameters:
  ///   - failures: the number of failed attempts in a row, from 1.
  ///   - retryAfter: the server's requested pause: a lower bound, with up to `delayBase` of jitter
  ///     on top, so clients do not return at once.
  ///   - random: a uniformly random word.
  /// - Returns: `nil` to give up.
  public func delay(
    afterFailures failures: Int, retryAfter: Duration? = nil, random: UInt64
  ) -> Duration? {
    precondition(failures > 0, "the first failure is number 1")
    if givesUp(afterFailures: failures) { return nil }
    if let retryAfter {
      return min(max(retryAfter, .zero), retryAfterMax) + fraction(random, of: delayBase)
    }
    return fraction(random, of: ceiling(failures))
  }

  /// Returns true if no attempt follows after `failures` in a row.
  func givesUp(afterFailures failures: Int) -> Bool {
    attemptsMax.map { failures >= $0 } ?? false
  }

  /// Returns true if the same request may succeed later after this status.
  public static func isTransient(status: Int) -> Bool {
    switch status {
    case 408, 425, 429, 500, 502, 503, 504: true
    default: false
    }
  }

  /// Reads a `Retry-After` field: seconds or a date (RFC 9110 §10.2.3).
  ///
  /// - Parameters:
  ///   - field: the field's value.
  ///   - now: seconds since 1970.
  /// - Returns: The pause, zero for a date in the past, or `nil` if the field is neither.
  public static func retryAfter(_ field: String, now: Int64) -> Duration? {
    if !field.isEmpty, field.utf8.allSatisfy({ 48...57 ~= $0 }) {
      return .seconds(Int64(field.prefix(9)) ?? 0)
    }
    return HTTPDate.parse(field, now: now).map { .seconds(max(0, $0 - now)) }
  }

  private func ceiling(_ failures: Int) -> Duration {
    var ceiling = delayBase
    for _ in 1..<failures where ceiling < delayMax { ceiling *= 2 }
    return min(ceiling, delayMax)
  }

  /// Returns `random / 2^64` of `limit`, in whole nanoseconds.
  private func fraction(_ random: UInt64, of limit: Duration) -> Duration {
    let parts = limit.components
    let nanoseconds = parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000
    return .nanoseconds(Int64(random.multipliedFullWidth(by: UInt64(max(0, nanoseconds))).high))
  }
}
