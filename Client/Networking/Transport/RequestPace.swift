/// Decides whether a body is too slow: a pure rule. A server that sends a byte only now and then
/// cannot hold a download for ever.
///
/// It measures consecutive windows of time; each of them needs enough bytes. A pause of this side
/// restarts the window.
package struct RequestPace {
  /// The least rate of downloads in bytes a second: a modem of 1990 is thirty times as fast.
  package static let downloadRateMin = 32

  private let rateMin: Int
  private let window: Duration
  private var began: ContinuousClock.Instant?
  private var receivedBefore = 0

  package init(rateMin: Int, window: Duration) {
    self.rateMin = rateMin
    self.window = window
  }

  /// Records a pause of this side: the time of the pause does not count.
  package mutating func rest() { began = nil }

  /// Returns the rest of the window; zero and less if too few bytes have arrived in it.
  ///
  /// - Parameter received: bytes of the body so far, compressed as they travel.
  package mutating func patience(received: Int, at now: ContinuousClock.Instant) -> Duration {
    guard let began else {
      self.began = now
      receivedBefore = received
      return window
    }
    let left = window - began.duration(to: now)
    if left > .zero { return left }
    let seconds = Double(window.components.seconds) + Double(window.components.attoseconds) / 1e18
    // A redirect restarts the count at zero.
    let came = received >= receivedBefore ? received - receivedBefore : received
    guard Double(came) >= Double(rateMin) * seconds else { return .zero }
    self.began = now
    receivedBefore = received
    return window
  }
}
