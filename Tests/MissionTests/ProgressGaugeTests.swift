import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("Progress", .hangLimit)
struct ProgressGaugeTests {
  @Test("progress never goes back, never exceeds the total, and reaches it once")
  func monotonic() {
    let total: Int64 = 10 << 20
    var gauge = ProgressGauge(total: total)
    var told: [Int64] = []
    let steps: [Int64] = [0, 1, 3 << 20, 1 << 20, 4 << 20, total, total + 5, total]
    for done in steps {
      if let progress = gauge.move(to: done, fetched: done) { told.append(progress.bytesDone) }
    }
    #expect(told == [0, 3 << 20, 4 << 20, total])
  }

  @Test("progress is reported in visible steps")
  func steps() {
    var gauge = ProgressGauge(total: 1 << 30)
    let told = (0...65_536).count { gauge.move(to: Int64($0) << 14, fetched: 0) != nil }
    #expect((400...600).contains(told))
  }

  @Test("the map is recorded after some bytes or some time, and only if it changed")
  func recording() {
    var rule = RecordRule(bytes: 0, now: .zero)
    let moments: [(bytes: Int64, now: Duration)] = [
      ((32 << 20) - 1, .milliseconds(999)), (32 << 20, .milliseconds(999)),
      (33 << 20, .milliseconds(1_998)), (33 << 20, .milliseconds(1_999)),
      (33 << 20, .seconds(9)),
    ]
    let isDue = moments.map { rule.isDue(bytes: $0.bytes, now: $0.now) }
    #expect(isDue == [false, true, false, true, false])
  }

  @Test("every byte that is kept resets the count of failures")
  func patience() {
    var patience = Patience(RetryPolicy(attemptsMax: 3))
    func givesUp(_ bytes: Int64) -> Bool {
      patience.delay(bytes, retryAfter: nil, random: 0) == nil
    }
    #expect(!givesUp(0))
    #expect(!givesUp(0))
    #expect(!givesUp(1))
    #expect(!givesUp(1))
    #expect(givesUp(1))
    let wish = patience.delay(2, retryAfter: .seconds(7), random: 0)
    #expect(wish == .seconds(7))
  }
}
