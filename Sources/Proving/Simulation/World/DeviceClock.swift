/// A device's wall clock: off by some amount, too quick or too slow, and set by hand at times.
struct DeviceClock {
  /// 2027-01-15, milliseconds since 1970.
  static let start: Int64 = 1_800_000_000_000

  /// Milliseconds ahead.
  var offset: Int64
  /// Millionths by which it is too quick.
  var drift: Int64
  /// The step of the clock's time, milliseconds.
  var step: Int64

  /// Returns milliseconds since 1970 when the world's time is `now`, microseconds.
  func wall(at now: Int64) -> Int64 {
    let exact = max(0, Self.start + now / 1_000 + offset + now / 1_000 * drift / 1_000_000)
    return exact - exact % step
  }
}

/// Wall time skipped by all devices: months without any action.
// SAFETY: touched on the scheduler's thread only.
final class SkippedTime: @unchecked Sendable {
  var milliseconds: Int64 = 0
}
