import FerryPlatform
import FerryProtocol

/// The share of exported traces.
package struct TraceRatio: Sendable, Equatable {
  package static let whole = 1_000_000

  /// Traces of a million.
  package let millionths: Int

  /// Reads a number between 0 and 1 with at most six digits after the point; `nil` for others.
  package init?(_ text: String) {
    let parts = text.parts(at: ".")
    guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }),
      text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E }),
      let units = Int(parts[0]), units <= 1, parts.count == 1 || parts[1].utf8.count <= 6
    else { return nil }
    let digits = parts.count == 2 ? parts[1] : "0"
    let rest = Int(digits + String(repeating: "0", count: 6 - digits.utf8.count)) ?? 0
    millionths = units * Self.whole + rest
    guard millionths <= Self.whole else { return nil }
  }
}

/// The choice of traces; pure.
///
/// A caller can keep its trace out, but never in. The choice depends on a secret number, not on the
/// caller's flag alone, and on a rate. All requests of a trace get the same answer from a process
/// unless the rate is reached.
package struct TraceSampler: Sendable {
  package enum Choice: Sendable, Equatable {
    case sampled
    /// The caller does not want it, or the ratio leaves it out.
    case left
    /// The rate is reached.
    case limited
  }

  private let ratio: TraceRatio
  private let secret: (UInt64, UInt64)
  /// The time of one request, by the rate.
  private let interval: Duration
  /// The end of the reserved time.
  private var taken = Duration.zero

  /// - Parameter perSecond: Requests a second at most; as many may come at once.
  package init(ratio: TraceRatio, perSecond: Int, random: () -> UInt64) {
    self.ratio = ratio
    secret = (random(), random())
    interval = .seconds(1) / max(1, perSecond)
  }

  /// - Parameter now: On a monotonic clock.
  package mutating func choose(
    _ trace: TraceID, isSampledByCaller: Bool, now: Duration
  ) -> Choice {
    guard isSampledByCaller, isKept(trace) else { return .left }
    let start = max(taken, now)
    guard start - now <= .seconds(1) - interval else { return .limited }
    taken = start + interval
    return .sampled
  }

  private func isKept(_ trace: TraceID) -> Bool {
    if ratio.millionths == TraceRatio.whole { return true }
    // No caller sees the result, so the function need not be one of cryptography.
    let mixed = Self.mix(Self.mix(trace.high ^ secret.0) ^ trace.low ^ secret.1)
    return mixed < UInt64.max / UInt64(TraceRatio.whole) * UInt64(ratio.millionths)
  }

  /// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
  private static func mix(_ value: UInt64) -> UInt64 {
    var value = value &+ 0x9E37_79B9_7F4A_7C15
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }
}
