import FerryNetworking
import FerryTestSupport
import Testing

@Suite("The transfer rate of a body", .hangLimit)
struct RequestPaceTests {
  private let start = ContinuousClock.now

  private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

  @Test("a body of a byte a second is too slow at the end of a window")
  func dribble() {
    var pace = RequestPace(rateMin: 32, window: .seconds(30))
    #expect(pace.patience(received: 0, at: at(0)) == .seconds(30))
    for second in 1..<30 {
      #expect(pace.patience(received: second, at: at(second)) == .seconds(30 - second))
    }
    #expect(pace.patience(received: 30, at: at(30)) == .zero)
  }

  @Test("a body with enough bytes in each window can continue, and own pauses do not count")
  func enough() {
    var pace = RequestPace(rateMin: 32, window: .seconds(30))
    _ = pace.patience(received: 0, at: at(0))
    #expect(pace.patience(received: 960, at: at(30)) == .seconds(30))
    #expect(pace.patience(received: 1_920, at: at(60)) == .seconds(30))
    pace.rest()
    #expect(pace.patience(received: 1_920, at: at(1_000)) == .seconds(30))
    #expect(pace.patience(received: 1_921, at: at(1_030)) == .zero)
  }

  @Test("a redirect, which counts from zero again, is not a negative rate")
  func redirect() {
    var pace = RequestPace(rateMin: 1, window: .seconds(10))
    _ = pace.patience(received: 5_000, at: at(0))
    #expect(pace.patience(received: 100, at: at(10)) == .seconds(10))
  }
}
