/// An allowance with a steady inflow up to a burst; it may go below zero by as much; pure.
struct TokenBucket: Sendable, Equatable {
  /// The remaining amount; below zero, a debt.
  private(set) var level: Double
  private var updated: Duration

  /// Creates a full bucket.
  init(burst: Double, now: Duration) {
    level = burst
    updated = now
  }

  /// Consumes the amount if anything is left. Returns the time to wait otherwise.
  mutating func consume(_ amount: Double, rate: Double, burst: Double, now: Duration) -> Duration? {
    fill(rate: rate, burst: burst, now: now)
    guard level > 0 else { return .seconds((1 - level) / rate) }
    level -= amount
    return nil
  }

  /// Consumes the amount, even if nothing is left. The debt is bounded by the burst.
  mutating func force(_ amount: Double, rate: Double, burst: Double, now: Duration) {
    fill(rate: rate, burst: burst, now: now)
    level = max(-burst, level - amount)
  }

  /// Returns how long to wait until anything is left; `nil` if something is.
  mutating func wait(rate: Double, burst: Double, now: Duration) -> Duration? {
    consume(0, rate: rate, burst: burst, now: now)
  }

  /// Returns `true` after such a long time without use that the bucket may be dropped.
  mutating func isFull(rate: Double, burst: Double, now: Duration) -> Bool {
    fill(rate: rate, burst: burst, now: now)
    return level >= burst
  }

  private mutating func fill(rate: Double, burst: Double, now: Duration) {
    let (seconds, attoseconds) = max(.zero, now - updated).components
    level = min(burst, level + rate * (Double(seconds) + Double(attoseconds) * 1e-18))
    updated = max(updated, now)
  }
}
