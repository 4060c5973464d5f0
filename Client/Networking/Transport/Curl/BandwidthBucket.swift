#if SystemLibraries && !canImport(Darwin)
  /// A token bucket: credit grows with time up to a tenth of a second's worth.
  ///
  /// A part may exceed the credit; the next part waits until the debt is paid. So parts need not be
  /// cut to the credit. Over any time, no more is consumed than the rate, the credit and one part
  /// permit.
  struct BandwidthBucket: Sendable {
    private let rate: Double
    private var credit: Double
    private var updated: ContinuousClock.Instant

    /// Creates a bucket with full credit.
    init(bytesPerSecond: Int, now: ContinuousClock.Instant) {
      rate = Double(max(1, bytesPerSecond))
      credit = rate / 10
      updated = now
    }

    /// Returns the time until there is credit; `nil` if there is some.
    mutating func wait(at now: ContinuousClock.Instant) -> Duration? {
      refill(now)
      // A fraction of a byte does not count: otherwise the wait would approach the end without
      // reaching it.
      return credit >= min(1, rate / 10) ? nil : .seconds((min(1, rate / 10) - credit) / rate)
    }

    /// Consumes `count` bytes, even without credit for them.
    mutating func consume(_ count: Int, at now: ContinuousClock.Instant) {
      refill(now)
      credit -= Double(count)
    }

    private mutating func refill(_ now: ContinuousClock.Instant) {
      guard now > updated else { return }
      credit = min(rate / 10, credit + updated.duration(to: now) / .seconds(1) * rate)
      updated = now
    }
  }
#endif
