/// Whether a body comes too slowly: a pure rule, by which a server that sends a byte now and then
/// cannot hold a download for ever.
///
/// It looks at windows of time one after another, in each of which enough has to come. A rest that
/// this side takes begins a window again.
package struct RequestPace {
  /// What downloads have to bring, bytes a second: a modem of 1990 brings thirty times as much.
  package static let downloadRateMin = 32

  private let rateMin: Int
  private let window: Duration
  private var began: ContinuousClock.Instant?
  private var receivedBefore = 0

  init(rateMin: Int, window: Duration) {
    self.rateMin = rateMin
    self.window = window
  }

  /// A rest of this side: the time does not count.
  mutating func rest() { began = nil }

  /// How long the window goes on; zero and less when too little has come in it.
  ///
  /// - Parameter received: bytes of the body so far, as they came over the wire.
  mutating func patience(received: Int, at now: ContinuousClock.Instant) -> Duration {
    guard let began else {
      self.began = now
      receivedBefore = received
      return window
    }
    let left = window - began.duration(to: now)
    if left > .zero { return left }
    let seconds = Double(window.components.seconds) + Double(window.components.attoseconds) / 1e18
    // A redirect begins to count from zero.
    let came = received >= receivedBefore ? received - receivedBefore : received
    guard Double(came) >= Double(rateMin) * seconds else { return .zero }
    self.began = now
    receivedBefore = received
    return window
  }
}
